"""Names that exist and cannot be called: collectives over several ranks, and the barrier."""

from __future__ import annotations

from typing import Any, NoReturn

from neuroncore.errors import UnsupportedError
from neuroncore.surface import version_tuple

_ONE_AFTER_THE_OTHER = (
    "the cores of a launch run one after the other here between two nisa.sendrecv, and no check "
    "models the order of a barrier"
)
_NO_OTHER_RANK = "one rank runs here, without another to exchange data with"

# module, name, first and last version that have it
_NAMES = (
    ("nki.isa", "core_barrier", "0.2", "0.6"),
    ("nki.collectives", "ReplicaGroup", "0.2", "0.6"),
    ("nki.collectives", "all_gather", "0.2", "0.6"),
    ("nki.collectives", "all_gather_v", "0.6", "0.6"),
    ("nki.collectives", "all_reduce", "0.2", "0.6"),
    ("nki.collectives", "all_to_all", "0.2", "0.6"),
    ("nki.collectives", "all_to_all_v", "0.3", "0.6"),
    ("nki.collectives", "collective_permute", "0.2", "0.6"),
    ("nki.collectives", "collective_permute_implicit", "0.2", "0.6"),
    (
        "nki.collectives",
        "collective_permute_implicit_current_processing_rank_id",
        "0.2",
        "0.6",
    ),
    ("nki.collectives", "collective_permute_implicit_reduce", "0.2", "0.6"),
    ("nki.collectives", "rank_id", "0.2", "0.6"),
    ("nki.collectives", "reduce_scatter", "0.2", "0.6"),
)


class Unsupported:
    """A function of the language that raises UnsupportedError when it is called."""

    def __init__(self, module: str, name: str, version: str) -> None:
        self.__name__ = name
        self.__module__ = module
        self.version = version
        self.__doc__ = f"Not supported: {self.reason}."

    @property
    def reason(self) -> str:
        return _ONE_AFTER_THE_OTHER if self.__module__ == "nki.isa" else _NO_OTHER_RANK

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedError(
            f"{self.__module__}.{self.__name__} is not supported: {self.reason}",
            expected="a kernel of one core" if self.__module__ == "nki.isa" else "one rank",
            got=f"{self.__name__}(…)",
            hint="leave it out where nl.num_programs(0) is 1, as public kernels do",
            rule=f"NKI {self.version}: {self.__module__}.{self.__name__}",
        )

    def __repr__(self) -> str:
        return f"<{self.__module__}.{self.__name__}, not supported>"


def unsupported(module: str, version: str) -> dict[str, Unsupported]:
    """The names of a module that are not supported in this version."""
    return {
        name: Unsupported(module, name, version)
        for owner, name, first, last in _NAMES
        if owner == module and version_tuple(first) <= version_tuple(version) <= version_tuple(last)
    }
