"""The switch: which language answers `import nki`."""

from typing import TYPE_CHECKING

from neuroncore.lazy_names import lazy_names
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

# Programs and timelines are imported where they are used.
__getattr__, _ = lazy_names(__name__, {"execution.estimate": "estimate program_of"})
