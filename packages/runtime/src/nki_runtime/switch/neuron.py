"""The vendor's own package as a backend: names lead to what is installed, not to us.

Whether a package that is not ours answers to a name is found without importing it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from neuroncore.errors import UnsupportedError
from neuroncore.machine.backend import Choice
from nki_runtime.switch.errors import VendorPackageError

_NOTHING: Mapping[str, ModuleType] = {}


def find_real(root: str, imported: Mapping[str, ModuleType] = _NOTHING) -> str | None:
    """Where the package `root` comes from, or None when no package of that name can be imported.

    `imported` is what sys.modules contains beneath our switches. A bare folder (a namespace
    package, without an origin) does not count: Python, too, lets any regular package win over one.
    """
    if root in imported:
        module = imported[root]
        return getattr(module, "__file__", None) or f"sys.modules[{root!r}] (no file)"
    spec = _find_spec(root, None)
    return spec.origin if spec is not None else None


def _find_spec(name: str, path: Iterable[str] | None) -> ModuleSpec | None:
    """importlib.util.find_spec, but blind to sys.modules, where our own modules may lie."""
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec = find(name, path) if find is not None else None
        if spec is not None:
            return spec
    return None


UNKNOWN_VERSION = "installed"
"""Choice.nki when the vendor's package does not say its version."""


@dataclass(frozen=True, slots=True)
class NeuronBackend:
    """Hands over to `nki` (or `neuronxcc.nki`) of the AWS Neuron SDK."""

    name: str = "neuron"
    top_level: str = "nki"
    tops: tuple[str, ...] = ("nki", "neuronxcc.nki")

    @property
    def versions(self) -> tuple[str, ...]:
        """The one installed version; empty when there is none."""
        found = _installed_version()
        return () if found is None else (found,)

    @property
    def default_version(self) -> str:
        return self.require(None)

    def require(self, wanted: str | None) -> str:
        """The installed NKI version. Raises VendorPackageError if absent or not `wanted`."""
        found = _installed_version()
        if found is None:
            raise VendorPackageError(
                "vendor package not installed: backend 'neuron' hands over to the AWS Neuron SDK",
                expected="an importable package nki (0.2 and later) or neuronxcc (0.1)",
                got="neither",
                hint="install the SDK's nki package on a machine of the Neuron family, or run here "
                'with backend="beta2" (import nki) or backend="beta1" (import neuronxcc.nki)',
                rule="AWS Neuron setup guide",
            )
        if wanted is None or found in (UNKNOWN_VERSION, wanted) or found.startswith(f"{wanted}."):
            return found
        raise VendorPackageError(
            f"the installed vendor package is not NKI {wanted}",
            expected=f"NKI {wanted}",
            got=f"NKI {found}",
            hint=f'leave nki= away, install that version, or use backend="beta2", nki="{wanted}"',
        )

    def modules(self, choice: Choice) -> Mapping[str, ModuleType]:
        """None: the vendor's modules answer by themselves."""
        return {}

    def is_kernel(self, obj: object) -> bool:
        return type(obj).__module__.partition(".")[0] in {"nki", "neuronxcc"}

    def simulate(self, kernel: Any, choice: Choice) -> Any:
        """The vendor's simulator: nki.simulate from 0.3 on, simulate_kernel in 0.1."""
        if find_real("nki") is None:
            old = importlib.import_module("neuronxcc.nki")
            return partial(old.simulate_kernel, kernel)
        run = getattr(importlib.import_module("nki"), "simulate", None)
        if run is None:
            raise UnsupportedError(
                f"the vendor's NKI {choice.nki} has no nki.simulate",
                expected="NKI 0.3 or later",
                hint='call the kernel itself, or simulate with backend="beta2"',
                rule="NKI: nki.simulate",
            )
        return run(kernel)


NEURON = NeuronBackend()


def _installed_version() -> str | None:
    if find_real("nki") is None:
        return "0.1" if find_real("neuronxcc") is not None else None
    from importlib.metadata import PackageNotFoundError, version  # 20 ms

    try:
        return version("nki")
    except PackageNotFoundError:
        return UNKNOWN_VERSION
