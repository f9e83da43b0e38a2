"""The switch: which language answers `import nki`."""

TYPE_CHECKING = False  # of `typing`; under `python -m`, an import here may find a user's file
if TYPE_CHECKING:
    from nki_runtime.execution.estimate import estimate, program_of
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

_MODULES = {
    "execution.estimate": "estimate program_of",
    "execution.simulate": "Simulation simulate",
    "switch.errors": "BackendError ChoiceError ShadowError SwitchError UnknownBackendError "
    "VendorPackageError",
    "switch.registry": "backends",
    "switch.switch": "Switch",
    "switch.use": "Alias alias current use",
}


def __getattr__(name: str) -> object:
    from neuroncore.lazy_names import lazy_names

    return lazy_names(__name__, _MODULES)[0](name)


def __dir__() -> list[str]:
    return sorted(__all__)
