"""Ranges that track their iterations: their loop may have no `for` in the kernel's text.

`list(map(body, nl.affine_range(2)))` runs `body` for every number as a loop does. Each number
records the place in the kernel that requested it: the loop runs as long as that place is in it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

import numpy as np

from neuroncore.errors import AccessError
from nki_beta1.loops.bytecode import frames_of_the_kernel, is_in_iteration
from nki_beta1.values.special_methods import NoAttributeError, NotAnArray, reject, reject_equality


class LoopRange(Sequence[int], NotAnArray):
    """`nl.affine_range(…)` in a kernel: the numbers of a `range`; `turns` has it while it runs."""

    __slots__ = ("_iterations", "_name", "_numbers")

    def __init__(self, name: str, numbers: range, iterations: list[Iteration]) -> None:
        self._name, self._numbers, self._iterations = name, numbers, iterations

    def __iter__(self) -> Iterator[int]:
        return _counted(Iteration(repr(self)), self._numbers, self._iterations)

    def __reversed__(self) -> Iterator[int]:
        return _counted(Iteration(repr(self)), self._numbers[::-1], self._iterations)

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
            reject(self, f"a range of a loop indexed with {key!r}: {wrong}", NoNumberError)
        return LoopRange(self._name, found, self._iterations) if isinstance(found, range) else found

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, np.ndarray):
            return reject_equality(self, "==", other)
        return self._numbers == (other._numbers if isinstance(other, LoopRange) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        reject(self, f"a range of a loop has no attribute {name!r}", NoAttributeError)

    def __hash__(self) -> int:
        return hash(self._numbers)

    def __repr__(self) -> str:
        return f"nl.{self._name}{repr(self._numbers).removeprefix('range')}"


class NoNumberError(AccessError, IndexError):
    """A number that a range does not have."""


class Iteration:
    """An iteration of a loop, and the frames that requested its number with their positions."""

    __slots__ = ("above", "asked", "at", "loop")

    def __init__(self, loop: str) -> None:
        self.loop = loop
        self.asked: FrameType | None = None
        self.at = 0
        self.above: list[tuple[FrameType, int]] = []

    @property
    def places(self) -> list[tuple[FrameType | None, int]]:
        """The requesting frame and its bytecode offset, and the frames that run a generator."""
        return [(self.asked, self.at), *self.above]


def _counted(iteration: Iteration, numbers: range, iterations: list[Iteration]) -> Iterator[int]:
    iterations.append(iteration)
    try:
        for number in numbers:
            iteration.asked = asked = sys._getframe(1)
            iteration.at = asked.f_lasti
            if asked.f_code.co_flags & _IS_GENERATOR:
                iteration.above = _asking(asked.f_back)
            yield number
    finally:
        iterations.remove(iteration)
        iteration.asked = None
        iteration.above.clear()


_IS_GENERATOR = inspect.CO_GENERATOR


def _asking(frame: FrameType | None) -> list[tuple[FrameType, int]]:
    """The frames that run a generator, up to the first that is not a generator's."""
    found = []
    while frame is not None:
        found.append((frame, frame.f_lasti))
        if not frame.f_code.co_flags & _IS_GENERATOR:
            break
        frame = frame.f_back
    return found


def running_loop(iterations: list[Iteration]) -> str | None:
    """The innermost loop of which the running program is in an iteration."""
    if not iterations:
        return None
    frames = list(frames_of_the_kernel())
    for iteration in reversed(iterations):
        for asked, at in iteration.places:
            if any(asked is frame and is_in_iteration(frame, at) for frame in frames):
                return iteration.loop
    return None
