"""Ranges that know while they are iterated: their loop may have no `for` in the kernel's text.

`list(map(body, nl.affine_range(2)))` runs `body` for every number as a loop does. So each number
that is given notes where in the kernel it was asked for: the loop runs as long as that place is
still in it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

import numpy as np

from neuroncore.errors import AccessError
from nki_beta1._loops import frames_of_the_kernel, is_in_turn
from nki_beta1._not_an_array import NotAnArray
from nki_beta1._specials import NoAttributeError, refuse, refuse_equality


class LoopRange(Sequence[int], NotAnArray):
    """`nl.affine_range(…)` in a kernel: the numbers of a `range`; `turns` has it while it runs."""

    __slots__ = ("_name", "_numbers", "_turns")

    def __init__(self, name: str, numbers: range, turns: list[Turn]) -> None:
        self._name, self._numbers, self._turns = name, numbers, turns

    def __iter__(self) -> Iterator[int]:
        return _given(Turn(repr(self)), self._numbers, self._turns)

    def __reversed__(self) -> Iterator[int]:
        return _given(Turn(repr(self)), self._numbers[::-1], self._turns)

    @property
    def start(self) -> int:
        return self._numbers.start

    @property
    def stop(self) -> int:
        return self._numbers.stop

    @property
    def step(self) -> int:
        return self._numbers.step

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, key: Any) -> Any:
        try:
            found = self._numbers[key]
        except (IndexError, TypeError) as wrong:
            refuse(self, f"a range of a loop indexed with {key!r}: {wrong}", NoNumberError)
        return LoopRange(self._name, found, self._turns) if isinstance(found, range) else found

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, np.ndarray):
            return refuse_equality(self, "==", other)
        return self._numbers == (other._numbers if isinstance(other, LoopRange) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        refuse(self, f"a range of a loop has no attribute {name!r}", NoAttributeError)

    def __hash__(self) -> int:
        return hash(self._numbers)

    def __repr__(self) -> str:
        return f"nl.{self._name}{repr(self._numbers).removeprefix('range')}"


class NoNumberError(AccessError, IndexError):
    """A number that a range does not have."""


class Turn:
    """A turn of a loop: which, and where the frames stood that asked for its number."""

    __slots__ = ("above", "asked", "at", "loop")

    def __init__(self, loop: str) -> None:
        self.loop = loop
        self.asked: FrameType | None = None
        self.at = 0
        self.above: list[tuple[FrameType, int]] = []

    @property
    def places(self) -> list[tuple[FrameType | None, int]]:
        """The frame that asked and its bytecode offset; of a generator, who asked that, too."""
        return [(self.asked, self.at), *self.above]


def _given(turn: Turn, numbers: range, turns: list[Turn]) -> Iterator[int]:
    turns.append(turn)
    try:
        for number in numbers:
            turn.asked = asked = sys._getframe(1)
            turn.at = asked.f_lasti
            if asked.f_code.co_flags & _IS_GENERATOR:
                turn.above = _asking(asked.f_back)
            yield number
    finally:
        turns.remove(turn)
        turn.asked = None
        turn.above.clear()


_IS_GENERATOR = inspect.CO_GENERATOR


def _asking(frame: FrameType | None) -> list[tuple[FrameType, int]]:
    """The frame that asks a generator, which may be a generator's, up to one that is not."""
    found = []
    while frame is not None:
        found.append((frame, frame.f_lasti))
        if not frame.f_code.co_flags & _IS_GENERATOR:
            break
        frame = frame.f_back
    return found


def running_loop(turns: list[Turn]) -> str | None:
    """The innermost loop of which the running program is in a turn."""
    if not turns:
        return None
    frames = list(frames_of_the_kernel())
    for turn in reversed(turns):
        for asked, at in turn.places:
            if any(asked is frame and is_in_turn(frame, at) for frame in frames):
                return turn.loop
    return None
