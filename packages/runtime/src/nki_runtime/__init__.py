"""The switch: which language answers `import nki`."""

from typing import TYPE_CHECKING, Any

from nki_runtime.execution.simulate import Simulation, simulate
from nki_runtime.switch.errors import (
    BackendError,
    ChoiceError,
    ShadowError,
    SwitchError,
    UnknownBackendError,
    VendorPackageError,
)
from nki_runtime.switch.registry import backends
from nki_runtime.switch.switch import Switch
from nki_runtime.switch.use import Alias, alias, current, use

if TYPE_CHECKING:
    from nki_runtime.execution.estimate import estimate, program_of

__all__ = [
    "Alias",
    "BackendError",
    "ChoiceError",
    "ShadowError",
    "Simulation",
    "Switch",
    "SwitchError",
    "UnknownBackendError",
    "VendorPackageError",
    "alias",
    "backends",
    "current",
    "estimate",
    "program_of",
    "simulate",
    "use",
]


def __getattr__(name: str) -> Any:
    """`estimate` and `program_of`, imported with programs and timelines where they are used."""
    if name not in ("estimate", "program_of"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from nki_runtime.execution import estimate

    return getattr(estimate, name)
