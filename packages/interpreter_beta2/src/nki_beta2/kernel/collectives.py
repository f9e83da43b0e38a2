"""nki.collectives: groups of ranks as values, and functions that need another rank."""

from __future__ import annotations

from typing import Any, NoReturn

from neuroncore.errors import UnsupportedError
from neuroncore.machine.launch import running
from neuroncore.machine.registers import VirtualRegister
from neuroncore.notes import note_without_effect
from neuroncore.surface import version_tuple

_NO_OTHER_RANK = "one rank runs here, without another to exchange data with"

_SINCE = {
    **dict.fromkeys(
        ("all_gather", "all_reduce", "all_to_all", "collective_permute",
         "collective_permute_implicit", "collective_permute_implicit_reduce",
         "collective_permute_implicit_current_processing_rank_id", "reduce_scatter"),
        "0.2",
    ),
    "all_gather_v": "0.6",
    "all_to_all_v": "0.3",
}  # fmt: skip
"""The functions of nki.collectives that exchange data, and the first version that has each."""


class Unsupported:
    """A function of nki.collectives that raises UnsupportedError when it is called."""

    def __init__(self, name: str, version: str) -> None:
        self.__name__ = name
        self.__module__ = "nki.collectives"
        self.version = version
        self.__doc__ = f"Not supported: {_NO_OTHER_RANK}."

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedError(
            f"{self.__module__}.{self.__name__} is not supported: {_NO_OTHER_RANK}",
            expected="one rank", got=f"{self.__name__}(…)",
            hint="leave it out where there is one rank, as public kernels do",
            rule=f"NKI {self.version}: {self.__module__}.{self.__name__}",
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"<{self.__module__}.{self.__name__}, not supported>"


class ReplicaGroup:
    """Groups of ranks that exchange data: lists of rank numbers without a rank in two of them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._given = args, tuple(sorted(kwargs.items()))
        for name, value in kwargs.items():
            setattr(self, name, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReplicaGroup) and self._given == other._given

    __hash__ = object.__hash__


def rank_id(name: str | None = None) -> VirtualRegister:
    """A register with the number of this rank, which is 0: one rank runs here."""
    register = VirtualRegister(running("nki.collectives.rank_id").core)
    register.set(0)
    note_without_effect("nki.collectives.rank_id", "one rank runs here", "NKI: nki.collectives")
    return register


def collectives(version: str) -> dict[str, Any]:
    """The names of nki.collectives in a version."""
    exchanging = {
        name: Unsupported(name, version)
        for name, first in _SINCE.items()
        if version_tuple(first) <= version_tuple(version)
    }
    return {"ReplicaGroup": ReplicaGroup, "rank_id": rank_id, **exchanging}
