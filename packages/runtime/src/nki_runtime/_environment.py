"""What the environment variables ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from neuroncore.errors import LaunchError
from neuroncore.surface import VERSIONS
from neuroncore.targets import resolve_target
from nki_runtime._choice import DEFAULT_BACKEND, Wish
from nki_runtime.errors import ChoiceError

_YES_NO = {"1": True, "0": False, "true": True, "false": False}


def read_environment(environ: Mapping[str, str]) -> list[Wish]:
    """The wishes in `environ`; an empty variable counts as absent.

    NKI_RUNTIME=beta1|beta2|neuron, NKI_RUNTIME_VERSION=0.1…0.6,
    NEURON_PLATFORM_TARGET_OVERRIDE=trn1|inf2|gen2, trn2|gen3, trn3|gen4, NKI_PRECISE_FP=0|1, and
    NKI_SIMULATOR=1, which asks for a simulated language where NKI_RUNTIME does not name one.
    Raises ChoiceError for a value that the variable does not take [NKI environment variables].
    """
    said = {name: environ[name] for name in _READERS if environ.get(name)}
    read = {name: _READERS[name](name, value) for name, value in said.items()}
    simulated = DEFAULT_BACKEND if read.get("NKI_SIMULATOR") else None
    wish = Wish(
        backend=read.get("NKI_RUNTIME", simulated),
        nki=read.get("NKI_RUNTIME_VERSION"),
        target=read.get("NEURON_PLATFORM_TARGET_OVERRIDE"),
        options={"precise": read["NKI_PRECISE_FP"]} if "NKI_PRECISE_FP" in read else {},
        source=" ".join(f"{n}={v}" for n, v in said.items() if n.startswith("NKI_RUNTIME"))
        or "the environment",
    )
    return [wish] if said else []


def _read_text(name: str, value: str) -> str:
    return value


def _read_version(name: str, value: str) -> str:
    if value not in VERSIONS:
        raise ChoiceError(
            f"{name} names no version we know", expected=" or ".join(VERSIONS), got=repr(value)
        )
    return value


def _read_yes_no(name: str, value: str) -> bool:
    if value.lower() not in _YES_NO:
        raise ChoiceError(f"{name} is neither on nor off", expected="1 or 0", got=repr(value))
    return _YES_NO[value.lower()]


def _read_target(name: str, value: str) -> str:
    try:
        return resolve_target(value).name
    except LaunchError as unknown:
        raise ChoiceError(
            f"{name} names no generation we know", expected=unknown.expected, got=repr(value)
        ) from None


_READERS: dict[str, Callable[[str, str], Any]] = {
    "NKI_RUNTIME": _read_text,
    "NKI_RUNTIME_VERSION": _read_version,
    "NEURON_PLATFORM_TARGET_OVERRIDE": _read_target,
    "NKI_PRECISE_FP": _read_yes_no,
    "NKI_SIMULATOR": _read_yes_no,
}
