"""nki.collectives: groups of ranks as values, and functions that need another rank.

One rank runs here. What exchanges data is rejected when it is called, after its arguments have been
checked; the first half of a split collective of 0.7 exchanges none and is accepted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from inspect import BoundArguments, Parameter, Signature
from math import prod
from typing import Any, NoReturn

from neuroncore.enums import MemorySpace
from neuroncore.errors import (
    AttributeValueError,
    KernelError,
    MemorySpaceError,
    ShapeError,
    SignatureError,
    UnsupportedError,
    Violation,
)
from neuroncore.isa.handles import Handle, handle_at
from neuroncore.machine.launch import running
from neuroncore.machine.registers import VirtualRegister
from neuroncore.memory import View
from neuroncore.notes import note_without_effect
from neuroncore.surface import version_tuple

_NO_OTHER_RANK = "one rank runs here, without another to exchange data with"
_PRIORITY_SINCE, _NAME_SINCE, _SPLIT_SINCE = (0, 4), (0, 5), (0, 7)

_V = "srcs, dsts, replica_group, metadata_tensor, recv_counts_known=False, has_rdispls=False"
_EXCHANGES = {
    "all_reduce": ("0.2", "srcs, dsts, replica_group, op"),
    "all_gather": ("0.2", "srcs, dsts, replica_group, collective_dim"),
    "reduce_scatter": ("0.2", "srcs, dsts, replica_group, collective_dim, op"),
    "all_to_all": ("0.2", "srcs, dsts, replica_group, collective_dim"),
    "all_to_all_v": ("0.3", _V),
    "all_gather_v": ("0.6", _V),
    "collective_permute": ("0.2", "srcs, dsts, source_target_pairs"),
    "collective_permute_implicit":
        ("0.2", "srcs_by_channel, dsts_by_channel, replica_group, channel_ids=[0]"),
    "collective_permute_implicit_reduce": (
        "0.2",
        "srcs0_by_channel, srcs1_by_channel, dsts_by_channel, replica_group, op, channel_ids=[0]",
    ),
}  # fmt: skip
"""The functions that exchange data: the first version that has each, and its parameters before
`priority` (from 0.4 on) and `name` (from 0.5 on) [stubs of 0.2 to 0.6, pages of 0.7]."""

_RING = "collective_permute_implicit_current_processing_rank_id"
_SPLIT = ("all_to_all_v", "all_gather_v")
"""The collectives that 0.7 splits into a prepare and a trigger."""


def _signature(function: str, parameters: str, version: tuple[int, int]) -> Signature:
    """The parameters of a function in a version; from 0.7 on most are documented to return a
    handle."""
    words = [*parameters.split(", ")]
    if version >= _PRIORITY_SINCE and function != _RING:
        words.append("priority=None")
    if version >= _NAME_SINCE:
        words.append("name=None")
    return Signature([_parameter(word) for word in words])


_DEFAULTS = {"None": None, "False": False, "[0]": [0], "0": 0, "1": 1, "": Parameter.empty}


def _parameter(word: str) -> Parameter:
    name, _, default = word.partition("=")
    return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=_DEFAULTS[default])


class Collective:
    """A function of nki.collectives; it has the signature of its version."""

    def __init__(self, name: str, version: str, signature: Signature) -> None:
        self.__name__ = name
        self.__module__ = "nki.collectives"
        self.__signature__ = signature
        self.version = version

    @property
    def path(self) -> str:
        """Its full name."""
        return f"{self.__module__}.{self.__name__}"

    @property
    def rule(self) -> str:
        """The page that documents it."""
        return f"NKI {self.version}: {self.path}"

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> BoundArguments:
        """The arguments by name. Raises SignatureError for others than the version has."""
        try:
            bound = self.__signature__.bind(*args, **kwargs)
        except TypeError as wrong:
            words = ", ".join(self.__signature__.parameters)
            raise SignatureError(
                str(wrong), expected=f"{self.__name__}({words})", instruction=self.path,
                rule=self.rule,
            ) from None  # fmt: skip
        bound.apply_defaults()
        return bound

    def __repr__(self) -> str:
        return f"<{self.path}>"


class Unsupported(Collective):
    """One that needs another rank: it raises UnsupportedError when it is called."""

    __doc__ = f"Not supported: {_NO_OTHER_RANK}."

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        given = self.bind(args, kwargs).arguments
        if self.__name__ in _SPLIT and version_tuple(self.version) >= _SPLIT_SINCE:
            _check_buffers(self, given)
        self.exchange()

    def exchange(self) -> NoReturn:
        """Raise UnsupportedError: here would other ranks change values."""
        raise UnsupportedError(
            f"{self.path} is not supported: {_NO_OTHER_RANK}",
            expected="one rank", got=f"{self.__name__}(…)",
            hint="leave it out where there is one rank, as public kernels do", rule=self.rule,
        )  # fmt: skip


# -- split collectives


@dataclass(slots=True)
class _Slot:
    """The slot that all prepares of a program share: the last one, and whether it is completed."""

    prepare: Handle
    collective: str
    is_triggered: bool = False

    @property
    def is_occupied(self) -> bool:
        return not self.is_triggered and self.prepare.is_of_running_program


_slot: ContextVar[_Slot | None] = ContextVar("nki_beta2.kernel.collectives.slot", default=None)


class Prepare(Collective):
    """The first half of a split collective: it reads the metadata alone, and changes no value."""

    def __call__(self, *args: Any, **kwargs: Any) -> Handle:
        core = running(self.path).core
        given = self.bind(args, kwargs).arguments
        _check_buffers(self, given)
        last = _slot.get()
        if last is not None and last.is_occupied:
            raise AttributeValueError(
                "a second prepare before the trigger of the first",
                expected=f"{last.collective}_trigger first: prepares of any kind share one slot",
                got=f"the prepare at {last.prepare.place}", instruction=self.path, rule=self.rule,
            )  # fmt: skip
        if core.target.generation > 3:
            core.unsupported(self.path, _switch(self), sure=False)
        note_without_effect(self.path, "it reads the metadata and changes no tensor", self.rule)
        handle = handle_at(sys._getframe(1))
        _slot.set(_Slot(handle, self.__name__.removesuffix("_prepare")))
        return handle


def _switch(function: Prepare) -> Violation:
    return Violation(
        UnsupportedError, "NeuronSwitch instances (Trn3 UltraServer) do not split this collective",
        expected=f"{function.__name__.removesuffix('_prepare')} there", rule=function.rule,
    )  # fmt: skip


class Trigger(Unsupported):
    """The second half: it reads the sources and writes the destinations, which needs ranks."""

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        running(self.path)
        handle = self.bind(args, kwargs).arguments["prepare_instr"]
        collective, slot = self.__name__.removesuffix("_trigger"), _slot.get()
        if slot is None or slot.prepare is not handle or slot.collective != collective:
            raise SignatureError(
                f"prepare_instr is not what the last {collective}_prepare returned",
                expected=f"what {collective}_prepare returned", got=repr(handle)[:80],
                operand="prepare_instr", position=0, instruction=self.path, rule=self.rule,
            )  # fmt: skip
        if slot.is_triggered:
            raise AttributeValueError(
                "a second trigger of one prepare", expected="one trigger after each prepare",
                got=f"the prepare at {handle.place}", instruction=self.path, rule=self.rule,
            )  # fmt: skip
        slot.is_triggered = True
        self.exchange()


# -- what variable-length collectives document of their arguments


_MEASURED = "measured with nki 0.7.0b1: graph inputs and outputs are rejected"


def _check_buffers(function: Collective, given: dict[str, Any]) -> None:
    for wrong in _violations(function, given):
        wrong.instruction, wrong.rule = function.path, wrong.rule or function.rule
        raise wrong


def _violations(function: Collective, given: dict[str, Any]) -> Iterator[KernelError]:
    for name in ("srcs", "dsts"):
        views = given[name]
        if not isinstance(views, (list, tuple)) or len(views) != 1:
            yield AttributeValueError(
                f"{name} holds {len(views) if isinstance(views, (list, tuple)) else 'no list of'} "
                "tensors", expected="a list of one tensor", got=repr(views)[:80], operand=name,
            )  # fmt: skip
        elif not isinstance(views[0], View) or views[0].spec.space is not MemorySpace.shared_hbm:
            yield MemorySpaceError(
                f"the tensor of {name} is not in shared HBM",
                expected="a tensor of the kernel, made with buffer=nl.shared_hbm",
                got=repr(views[0])[:80], operand=name, rule=_MEASURED,
                hint="copy an argument into one with nisa.dma_copy",
            )  # fmt: skip
    if given["has_rdispls"]:
        yield UnsupportedError(
            "receive displacements are for ranks of several nodes", expected="has_rdispls=False",
            got="has_rdispls=True, and one rank runs here", operand="has_rdispls",
        )  # fmt: skip
    elif function.__name__.startswith("all_to_all_v"):
        yield from _size(given)


def _size(given: dict[str, Any]) -> Iterator[KernelError]:
    """Without displacements the source of rank s goes to slot s of the destination."""
    ranks = given["replica_group"].num_ranks if isinstance(
        given["replica_group"], ReplicaGroup) else None  # fmt: skip
    src, dst = given["srcs"][0], given["dsts"][0]
    if ranks is not None and prod(dst.shape) != ranks * prod(src.shape):
        yield ShapeError(
            f"dst has {prod(dst.shape)} elements for {ranks} ranks with {prod(src.shape)} each",
            expected=f"{ranks * prod(src.shape)} elements", got=repr(dst), operand="dsts",
            rule="measured with nki 0.7.0b1: one slot of the size of src per rank",
        )  # fmt: skip


class ReplicaGroup:
    """Groups of ranks that exchange data: lists of rank numbers without a rank in two of them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._given = args, tuple(sorted(kwargs.items()))
        for name, value in kwargs.items():
            setattr(self, name, value)

    @property
    def num_ranks(self) -> int | None:
        """How many ranks a group has; None where that cannot be read from the arguments."""
        args, named = self._given
        given = [value for value in (*args, *(v for _, v in named)) if isinstance(value, list)]
        first = given[0][0] if given and given[0] else None
        return len(first) if isinstance(first, (list, tuple)) else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReplicaGroup) and self._given == other._given

    __hash__ = object.__hash__


def rank_id(name: str | None = None) -> VirtualRegister:
    """A register with the number of this rank, which is 0: one rank runs here."""
    register = VirtualRegister(running("nki.collectives.rank_id").core)
    register.set(0)
    note_without_effect("nki.collectives.rank_id", "one rank runs here", "NKI: nki.collectives")
    return register


def _rank_id_before_0_5() -> VirtualRegister:
    return rank_id()


def collectives(version: str) -> dict[str, Any]:
    """The names of nki.collectives in a version."""
    number = version_tuple(version)
    found: dict[str, Any] = {
        name: Unsupported(name, version, _signature(name, parameters, number))
        for name, (first, parameters) in _EXCHANGES.items()
        if version_tuple(first) <= number
    }
    ring = "iteration_id, replica_group, channel_id=0" + (
        ", num_channels=1" if number == (0, 2) else ""
    )
    found[_RING] = Unsupported(_RING, version, _signature(_RING, ring, number))
    if number >= _SPLIT_SINCE:
        for name in _SPLIT:
            first, second = f"{name}_prepare", f"{name}_trigger"
            found[first] = Prepare(first, version, _signature(first, _V, number))
            words = Signature([_parameter("prepare_instr"), _parameter("name=None")])
            found[second] = Trigger(second, version, words)
    ranks: Callable[..., Any] = rank_id if number >= _NAME_SINCE else _rank_id_before_0_5
    return {"ReplicaGroup": ReplicaGroup, "rank_id": ranks, **found}
