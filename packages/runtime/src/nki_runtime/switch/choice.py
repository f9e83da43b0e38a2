"""The choice of backend, version, target and options, from every place that requests some.

Explicit arguments win over the enclosing switch, that over the environment, that over the default.
Each of the three is a `ChoiceRequest`; what a request leaves open the next one decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from neuroncore.errors import LaunchError
from neuroncore.machine.backend import Backend, Choice
from neuroncore.options import FRONTENDS, Options, make_options
from neuroncore.surface import VERSIONS
from neuroncore.targets import resolve_target
from nki_runtime.switch.errors import ChoiceError
from nki_runtime.switch.neuron import NEURON
from nki_runtime.switch.registry import loadable

DEFAULT_BACKEND = "beta2"
DEFAULT_TARGET = "trn2"


@dataclass(frozen=True, slots=True)
class ChoiceRequest:
    """The settings that one place requests; None for the others."""

    backend: str | None = None
    nki: str | None = None
    target: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    source: str = "use()"
    """The place, for messages: "use()", or the name of an environment variable."""


def request_of(choice: Choice) -> ChoiceRequest:
    """The enclosing switch as a request: it has an opinion on everything."""
    options = {f.name: getattr(choice.options, f.name) for f in fields(Options)}
    return ChoiceRequest(choice.backend, choice.nki, choice.target, options, "the enclosing use()")


def choose(requests: Sequence[ChoiceRequest], registry: Mapping[str, Backend]) -> Choice:
    """The choice that `requests`, most important first, add up to.

    Raises ChoiceError for unknown names, LaunchError for an unknown option or
    target, VendorPackageError when the vendor's package is wanted and is not there.
    """
    backend, nki = _choose_language(requests, registry)
    target = next((w.target for w in requests if w.target is not None), DEFAULT_TARGET)
    options = Options()
    for request in reversed(requests):
        options = make_options(options, dict(request.options))
    return Choice(backend.name, nki, resolve_target(target).name, options)


def _choose_language(
    requests: Sequence[ChoiceRequest], registry: Mapping[str, Backend]
) -> tuple[Backend, str]:
    """The most important backend, in the most important version that is meant for it."""
    speaks = next((i for i, w in enumerate(requests) if w.backend is not None), len(requests))
    name = requests[speaks].backend if speaks < len(requests) else DEFAULT_BACKEND
    versions = [(i, w) for i, w in enumerate(requests) if w.nki is not None]
    if versions and versions[0][0] < speaks:
        return _language_of(versions[0][1], str(name), registry)
    backend = registry[str(name)]
    if versions and versions[0][0] == speaks:
        return backend, _version(backend, versions[0][1], registry)
    for _, request in versions:
        # A less important place may have meant another language, without contradiction.
        if backend is not NEURON and request.nki in backend.versions:
            return backend, str(request.nki)
    return backend, backend.default_version


def _language_of(
    request: ChoiceRequest, otherwise: str, registry: Mapping[str, Backend]
) -> tuple[Backend, str]:
    """For a version without a language: the one in question if it speaks it, else who does."""
    backend = registry.get(otherwise)
    if backend is None or (backend is not NEURON and request.nki not in backend.versions):
        others = [b for b in loadable(registry) if _is_language(b) and request.nki in b.versions]
        backend = others[0] if len(others) == 1 else registry[otherwise]
    return backend, _version(backend, request, registry)


def _version(backend: Backend, request: ChoiceRequest, registry: Mapping[str, Backend]) -> str:
    if backend is NEURON:
        return NEURON.require(request.nki)
    if request.nki in backend.versions:
        return str(request.nki)
    speakers = [b.name for b in loadable(registry) if _is_language(b) and request.nki in b.versions]
    newest = f"{VERSIONS[-1]} is the newest version modelled here"
    hint = f"backend {' or '.join(map(repr, speakers))} speaks it" if speakers else newest
    if isinstance(request.nki, float | int):
        hint = f'versions are strings: nki="{request.nki}"'
    raise ChoiceError(
        f"backend {backend.name!r} does not speak NKI {request.nki} "
        f"(requested by {request.source})",
        expected=f"one of {', '.join(backend.versions)}",
        got=repr(request.nki),
        hint=hint,
    )


def _is_language(backend: Backend) -> bool:
    """Whether a version alone may mean it: not the vendor's package, not a generator of kernels."""
    return backend is not NEURON and getattr(backend, "is_language", True)


def describe(choice: Choice) -> str:
    """A choice in a few words: language, version, device, and options that are not the default."""
    default = Options()
    changed = [
        f"{f.name}={getattr(choice.options, f.name)!r}"
        for f in fields(Options)
        if getattr(choice.options, f.name) != getattr(default, f.name)
    ]
    said = f"{choice.backend} {choice.nki} on {choice.target}"
    return f"{said} with {', '.join(changed)}" if changed else said


_YES_NO = {"1": True, "0": False, "true": True, "false": False}


def read_environment(environ: Mapping[str, str]) -> list[ChoiceRequest]:
    """The requests in `environ`; an empty variable counts as absent.

    NKI_RUNTIME=beta1|beta2|neuron, NKI_RUNTIME_VERSION=0.1…0.7,
    NEURON_PLATFORM_TARGET_OVERRIDE=trn1|inf2|gen2, trn2|gen3, trn3|gen4, NKI_PRECISE_FP=0|1,
    NKI_COMPILER_FRONTEND=tracer|parser|custom, and NKI_SIMULATOR=1, which requests a simulated
    language where NKI_RUNTIME does not name one.
    Raises ChoiceError for a value that the variable does not take [NKI environment variables].
    """
    said = {name: environ[name] for name in _READERS if environ.get(name)}
    read = {name: _READERS[name](name, value) for name, value in said.items()}
    simulated = DEFAULT_BACKEND if read.get("NKI_SIMULATOR") else None
    request = ChoiceRequest(
        backend=read.get("NKI_RUNTIME", simulated),
        nki=read.get("NKI_RUNTIME_VERSION"),
        target=read.get("NEURON_PLATFORM_TARGET_OVERRIDE"),
        options={option: read[name] for name, option in _OPTIONS.items() if name in read},
        source=" ".join(f"{n}={v}" for n, v in said.items() if n.startswith("NKI_RUNTIME"))
        or "the environment",
    )
    return [request] if said else []


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


def _read_frontend(name: str, value: str) -> str:
    if value not in FRONTENDS:
        raise ChoiceError(
            f"{name} names no frontend", expected=" or ".join(FRONTENDS), got=repr(value)
        )
    return FRONTENDS[value]


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
    "NKI_COMPILER_FRONTEND": _read_frontend,
    "NKI_SIMULATOR": _read_yes_no,
}
_OPTIONS = {"NKI_PRECISE_FP": "precise", "NKI_COMPILER_FRONTEND": "frontend"}
"""The variables that set an option."""
