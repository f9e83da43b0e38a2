"""The switch: which language answers `import nki`."""

from nki_runtime._alias import Alias, alias
from nki_runtime._estimate import estimate, program_of
from nki_runtime._simulate import Simulation, simulate
from nki_runtime._switch import Switch
from nki_runtime._use import current, use
from nki_runtime.errors import (
    BackendError,
    ChoiceError,
    ShadowError,
    SwitchError,
    UnknownBackendError,
    VendorPackageError,
)
from nki_runtime.registry import backends

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
