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

_SINCE = {
    "nki.isa": {"core_barrier": "0.2"},
    "nki.collectives": {
        **dict.fromkeys(
            ("ReplicaGroup", "all_gather", "all_reduce", "all_to_all", "collective_permute",
             "collective_permute_implicit", "collective_permute_implicit_reduce",
             "collective_permute_implicit_current_processing_rank_id", "rank_id",
             "reduce_scatter"),
            "0.2",
        ),
        "all_gather_v": "0.6",
        "all_to_all_v": "0.3",
    },
}  # fmt: skip
"""The names of a module, and the first version that has each."""


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
        for name, first in _SINCE[module].items()
        if version_tuple(first) <= version_tuple(version)
    }
