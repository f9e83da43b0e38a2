"""Watching a run without touching instructions or kernels.

Two channels: the machine's (instructions and memory) and the language's (values of source
expressions, loops). A watcher overrides the methods it needs; a core without watchers pays nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from neuroncore.source_location import Place

if TYPE_CHECKING:
    from neuroncore.errors import Violation
    from neuroncore.instructions import Call
    from neuroncore.memory import Storage, View
    from nki_dtypes import DType


class Event(NamedTuple):
    """One instruction with the views it works on."""

    call: Call
    views: Mapping[str, View | Any]
    place: Place | None = None
    name: str | None = None
    mask: np.ndarray | None = None
    """Where 0.1 runs an instruction on a whole tile and keeps a part: the elements of the result
    that are kept (bool, its shape). What the others are made of counts as not read."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A source expression had this value while `kernel` ran, inside these loops.

    `run` distinguishes launches; `loops` maps a loop variable to the bounds of its range.
    """

    place: Place
    value: Any
    kernel: str
    run: int
    loops: Mapping[str, tuple[int, int]] = field(default_factory=dict)


class Watcher:
    """Receives events; every method may be left as it is."""

    needs_values: bool = True
    """Whether it reads the content of tensors. Where no watcher of a core does, instructions are
    planned and checked and not executed (NeuronCore.computes)."""

    def launched(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """A kernel is about to run with these arguments; its arrays are tensors by now."""

    def allocated(self, storage: Storage) -> None:
        """A tensor was created."""

    def shared(self, storage: Storage) -> None:
        """Another program of the launch has come to where this tensor was created."""

    def register(self, cell: View) -> None:
        """A virtual register came to be, of which `cell` is the element."""

    def number_read(self, cell: View) -> None:
        """The kernel goes on with the number that `cell`, the element of a register or scalar,
        holds now; no compile-time number."""

    def will(self, event: Event) -> None:
        """The instruction is legal and about to run."""

    def did(self, event: Event) -> None:
        """The instruction has run."""

    def told(self, consumer: Place | None, producers: Sequence[Place | None]) -> None:
        """A kernel said that an instruction runs after others, regardless of data (depends_on,
        with_schedule).
        """

    def moved(
        self,
        dst: View,
        src: View | None,
        at: np.ndarray | None = None,
        of: np.ndarray | None = None,
    ) -> None:
        """A language filled elements of `dst` without an instruction, from `src` or a constant.

        `at` and `of` are row-major element numbers inside the views, in pairs; None: all of them.
        """

    def shown(self, view: View) -> None:
        """A language shows a tensor to its user, without an instruction."""

    def unsupported(self, function: str, why: Violation, place: Place | None, sure: bool) -> None:
        """A language ran a function that documents say a device does not; `sure` is False where
        others say that it does."""

    def received(self, dst: View, src: View) -> None:
        """Another core of the launch filled `dst` with what its `src` held."""
        self.moved(dst, src)

    def arrived(self, data: View) -> None:
        """Both cores of the launch have reached a barrier: what they have done with the tensor
        comes before all that they do with it from now on."""

    def iteration(self, loop: str, place: Place | None) -> None:
        """A program begins an iteration of the device loop at a place."""

    def state_changed(self, loop: str, what: str, place: Place | None) -> None:
        """The body of a device loop did to a Python object what differs from turn to turn
        (`count[0] is changed`), at a place. Python runs the body once (NKI 0.7)."""

    def wrapped(self, dtype: DType, place: Place | None) -> None:
        """The sum, difference or product of scalars at a place did not fit their dtype."""

    def returned(self, value: Any) -> None:
        """A program of the launch ended with this value, its tensors not yet exported."""

    def ended(self, value: Any) -> None:
        """All programs of the launch have run; this value is about to be exported."""

    def evaluated(self, evaluation: Evaluation) -> None:
        """The language evaluated an expression (only under a language that reports them)."""


class Tracing(Protocol):
    """The receiver of a core's instructions while the body of a device loop is traced
    (neuroncore.machine.loop_trace)."""

    watchers: tuple[Watcher, ...]
    names: dict[str, Place | None]
    is_open: bool

    def note_instruction(
        self, event: Event, execute: Callable[..., Any], operands: Iterable[Any]
    ) -> None: ...

    def note(self, action: Callable[[], None], is_placed: bool = False) -> None: ...


WATCHERS: ContextVar[tuple[Watcher, ...]] = ContextVar(
    "neuroncore.machine.observe.WATCHERS", default=()
)
"""Who watches every core that this thread makes from now on."""


_everywhere: list[Watcher] = []


def watching() -> tuple[Watcher, ...]:
    """The watchers in force."""
    return (*_everywhere, *WATCHERS.get())


def watch_everywhere(*watchers: Watcher) -> None:
    """Let `watchers` see the kernels of every thread, for the rest of the process (nki-run)."""
    _everywhere.extend(watchers)


@contextmanager
def watched_by(*watchers: Watcher) -> Iterator[None]:
    """Let `watchers` see every kernel that runs inside the block, beside those there already."""
    token = WATCHERS.set((*WATCHERS.get(), *watchers))
    try:
        yield
    finally:
        WATCHERS.reset(token)
