"""The NKI 0.1 language on the machine.

Under the switch of nki-runtime this answers `import neuronxcc.nki`. Without it, `nki`, `nl`, `nisa`
and `nt` are the same modules:

    from nki_beta1 import nki, nl
"""

from typing import Any

from nki_beta1.backend import BACKEND, Beta1
from nki_beta1.launch.kernel import DEFAULT, Kernel
from nki_beta1.tensor.tile import Tile

_MODULES = {"nki": "", "nl": ".language", "nisa": ".isa", "nt": ".typing"}

__all__ = ["BACKEND", "Beta1", "Kernel", "Tile", "nisa", "nki", "nl", "nt"]


def __getattr__(name: str) -> Any:
    """`nki`, `nl`, `nisa` and `nt`, built at their first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return BACKEND.modules(DEFAULT)[f"neuronxcc.nki{_MODULES[name]}"]
