"""Names of tensors in findings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from neuroncore.machine import launch
from neuroncore.memory import Storage, View
from neuroncore.program.ir.naming import assigned_name
from neuroncore.source_location import Place
from neuroncore.spec import Spec


class Named(Protocol):
    """A tensor's own name, and the line that made it."""

    name: str
    place: Place | None


def label(storage: Named) -> str:
    """The label of a tensor: its own name, the variable it was assigned to, or neither."""
    return storage.name or assigned_name(storage.place) or "the tensor"


def described(storage: Storage) -> str:
    """Shape, dtype and memory: (128, 512), float32, SBUF."""
    return f"{storage.shape}, {storage.dtype}, {storage.space.name.upper()}"


@dataclass(slots=True)
class _Line:
    """An expression that makes tensors, in one program."""

    made: int = 0


class Made(NamedTuple):
    """Which of the tensors that one expression made: in a loop, in a comprehension.

    As text " (3rd of 8 made there)", of those so far; nothing while there is one.
    """

    line: _Line
    number: int

    def __str__(self) -> str:
        made = self.line.made
        return "" if made < 2 else f" ({_ordinal(self.number)} of {made} made there)"


class Lines:
    """Counts the tensors that each expression makes; every program of a launch begins anew."""

    def __init__(self) -> None:
        self._program: object = None
        self._lines: dict[Place | None, _Line] = {}
        self._known: dict[int, tuple[Place | None, _Line]] = {}
        """The same by id of the place, which the entry keeps alive: hashing one takes longer."""

    def made(self, storage: Storage) -> Made:
        """Count a tensor that has been allocated."""
        running = launch.RUNNING.get()
        program = None if running is None else (running.number, running.program)
        if program != self._program:
            self._program, self._lines, self._known = program, {}, {}
        place = storage.place
        known = self._known.get(id(place))
        if known is None:
            known = self._known[id(place)] = place, self._lines.setdefault(place, _Line())
        line = known[1]
        line.made += 1
        return Made(line, line.made)


def _ordinal(number: int) -> str:
    teens = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def tensors_in(value: Any) -> Iterator[View]:
    """The tensors of a value that a kernel returns, however deep."""
    return (view for _, view in launch.tensors_in(value, ""))


def merged_dims(spec: Spec) -> list[tuple[int, int]]:
    """(size, stride) of the free dimensions, contiguous ones merged."""
    dims: list[tuple[int, int]] = []
    for size, stride in zip(spec.shape[1:], spec.strides[1:], strict=True):
        if size == 1:
            continue
        if dims and dims[-1][1] == size * stride:
            dims[-1] = dims[-1][0] * size, stride
        else:
            dims.append((size, stride))
    return dims
