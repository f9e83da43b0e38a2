"""Results of instructions: a picture, a histogram and counts of each, in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from neuroncore.machine.observe import Event
from neuroncore.machine.results import shown
from neuroncore.memory import View
from neuroncore.program import assigned_name
from neuroncore.source_location import Place
from nki_dtypes import DType, finfo
from nki_scope.document import Columns

MOST_RESULTS = 2000
"""Results of a launch that are kept where nothing else is requested: the first ones."""
SIDE, BINS, LARGE = 32, 24, 1e30
BLOCK_BYTES = 1 << 19
"""Results of one shape that are summarised together; larger ones are summarised one by one."""
COUNTED = 8192
"""Elements of a histogram; of larger results, evenly spaced ones."""
CELLS = 160 * SIDE * SIDE
"""Cells of all pictures together; with more results each has fewer."""
INPUT = -1
NAN, INF, NEGATIVE_INF, UNWRITTEN, LEVELS = 255, 254, 253, 252, 251
"""How a picture says what is not a finite number, worst last; below are levels from least to
greatest."""


Source = str | tuple[str, Place | None]
"""The name of a result, or the name and the place of its storage, where its variable is looked up
once the kernel has run."""


class _Label(NamedTuple):
    """What a result is, beside its elements."""

    number: int
    """In the order of the instructions and of their results."""
    step: int
    """The number of its instruction; INPUT for an argument of the kernel."""
    source: Source
    first: tuple[int, ...]
    """The index of its first element in the tensor; () where it is the whole tensor."""
    dtype: DType | str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The result of one instruction: counts over all of it, a picture of evenly spaced blocks."""

    label: _Label
    shape: tuple[int, ...]
    least: float
    greatest: float
    mean: float
    nans: int
    infinite: int
    unwritten: int
    """Elements that nothing has written, or made of such; they are not among the numbers."""
    histogram: list[int]
    picture: np.ndarray
    """Levels, at most SIDE by SIDE."""


@dataclass(frozen=True, slots=True)
class _Summary:
    """The same of a result of finite numbers, with the elements that are drawn and counted."""

    label: _Label
    shape: tuple[int, ...]
    least: float
    greatest: float
    mean: float
    cells: np.ndarray

    def snapshot(self) -> Snapshot:
        """With the picture and the histogram of the elements that are kept."""
        counts = _histogram(self.cells.ravel(), self.least, self.greatest)
        picture = _levels(self.cells, self.least, self.greatest)
        return Snapshot(
            self.label, self.shape, self.least, self.greatest, self.mean, 0, 0, 0, counts, picture
        )


def _summaries(labels: Sequence[_Label], stack: np.ndarray) -> Iterator[Snapshot | _Summary]:
    """Each array of a stack in few elements; one with numbers that are not finite, or too large
    for a float32 sum, has a snapshot at once."""
    if not labels:
        return
    count, *shape = stack.shape
    table = stack.astype(np.float32, copy=False).reshape(count, shape[0] if shape[1:] else 1, -1)
    least, greatest = table.min((1, 2)), table.max((1, 2))
    with np.errstate(all="ignore"):
        total = table.sum((1, 2))
    rows, columns = _grid(table.shape[1:])
    cells = table[:, rows[:, np.newaxis], columns]
    is_finite = np.isfinite(least) & np.isfinite(greatest) & np.isfinite(total)
    size = table[0].size
    for n, label in enumerate(labels):
        yield _Summary(
            label, tuple(shape), float(least[n]), float(greatest[n]), float(total[n]) / size,
            cells[n],
        ) if is_finite[n] else _snapshot(label, stack[n], None)  # fmt: skip


class _Batch:
    """Copies of results of one shape and dtype, in memory that is used again and again."""

    def __init__(self, array: np.ndarray) -> None:
        count = max(1, BLOCK_BYTES // array.nbytes)
        self._stack = np.empty((count, *array.shape), array.dtype)
        self._labels: list[_Label] = []

    def add(self, label: _Label, array: np.ndarray) -> bool:
        """Copy a result; whether the memory is full."""
        self._stack[len(self._labels)] = array
        self._labels.append(label)
        return len(self._labels) == len(self._stack)

    def summarised(self) -> Iterator[Snapshot | _Summary]:
        """Forget the copies; the summaries."""
        labels, self._labels = self._labels, []
        yield from _summaries(labels, self._stack[: len(labels)])


@dataclass(slots=True)
class Snapshots:
    """The results of one launch."""

    most: int = MOST_RESULTS
    """How many of them are kept: the first ones."""
    steps: int = 0
    parameters: tuple[str, ...] = ()
    """Names of the inputs, in order, once the kernel has run."""
    _num_inputs: int = 0
    _num_kept: int = 0
    _left_out: Counter[Source] = field(default_factory=Counter)
    """How many results of a tensor are not kept."""
    _kept: list[Snapshot | _Summary] = field(default_factory=list)
    _batches: dict[tuple[tuple[int, ...], np.dtype], _Batch] = field(default_factory=dict)

    def note(self, event: Event, unwritten: Callable[[View], np.ndarray | None]) -> None:
        """Keep the results of an instruction, or count them."""
        is_kept = self._num_kept < self.most
        for operand in event.call.record.outputs:
            view = event.views.get(operand)
            if not isinstance(view, View):
                continue
            storage = view.storage
            source = storage.name, storage.place
            if is_kept:
                self._keep_view(self.steps, source, view, unwritten(view))
            else:
                self._left_out[source] += 1
        self.steps += 1

    def input(self, view: View) -> None:
        """Keep an argument of the kernel, as it is before the first instruction."""
        self._keep_view(INPUT, f"input {self._num_inputs}", view)
        self._num_inputs += 1

    def compare(self, name: str, found: np.ndarray, reference: np.ndarray) -> None:
        """Keep how far a result is from what it should be, in units of its last place."""
        what = f"{name}, ulps from the reference"
        label = _Label(self._num_kept, self.steps, what, (), "ulps")
        self._keep(label, _ulps(found, reference))

    def _keep_view(
        self, step: int, source: Source, view: View, unwritten: np.ndarray | None = None
    ) -> None:
        label = _Label(self._num_kept, step, source, _first(view), view.spec.dtype)
        found = view.array if view.spec.indirect is None else shown(view)
        self._keep(label, found, unwritten)

    def _keep(self, label: _Label, array: np.ndarray, unwritten: np.ndarray | None = None) -> None:
        self._num_kept += 1
        if unwritten is not None or not array.size:
            self._kept.append(_snapshot(label, array, unwritten))
        elif array.nbytes > BLOCK_BYTES:
            self._kept += _summaries([label], array[np.newaxis])
        else:
            key = array.shape, array.dtype
            batch = self._batches.get(key) or self._batches.setdefault(key, _Batch(array))
            if batch.add(label, array):
                self._kept += batch.summarised()

    def _snapshots(self) -> list[Snapshot]:
        """All that is kept, in order."""
        for batch in self._batches.values():
            self._kept += batch.summarised()
        self._kept.sort(key=lambda each: each.label.number)
        return [s.snapshot() if isinstance(s, _Summary) else s for s in self._kept]

    def section(self, columns: Columns) -> dict[str, Any]:
        """The document, with the pictures in one column."""
        kept = self._snapshots()
        left_out: Counter[str] = Counter()
        for source, count in self._left_out.items():
            left_out[_name(source)] += count
        reduced = 1
        while sum(s.picture[::reduced, ::reduced].size for s in kept) > CELLS and reduced < 8:
            reduced *= 2
        pictures = [_reduced(s.picture, reduced) for s in kept]
        levels = [p.ravel() for p in pictures] or [np.zeros(0, int)]
        return {
            "left": dict(left_out), "most": self.most,
            "levels": LEVELS,
            "pictures": columns.add(np.concatenate(levels).tolist()),
            "results": [
                {
                    "step": s.label.step,
                    "tensor": _input_name(_name(s.label.source), self.parameters),
                    "first": s.label.first, "shape": s.shape, "dtype": str(s.label.dtype),
                    "least": s.least, "greatest": s.greatest, "mean": s.mean, "nans": s.nans,
                    "infinite": s.infinite, "unwritten": s.unwritten, "histogram": s.histogram,
                    "rows": picture.shape[0], "columns": picture.shape[1],
                }
                for s, picture in zip(kept, pictures, strict=True)
            ],
        }  # fmt: skip


def _name(source: Source) -> str:
    if isinstance(source, str):
        return source
    given, place = source
    return given or assigned_name(place) or "tensor"


def _input_name(name: str, parameters: Sequence[str]) -> str:
    """The name that an input has as a parameter; any other as it is."""
    return {f"input {n}": parameter for n, parameter in enumerate(parameters)}.get(name, name)


def _first(view: View) -> tuple[int, ...]:
    """The index of a view's first element in its tensor; () for a view of all of it."""
    shape = view.storage.shape
    if view.spec.shape == tuple(shape) or view.spec.indirect is not None:
        return ()
    return tuple(int(n) for n in np.unravel_index(view.offset, shape))


def _ulps(found: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """|found - reference| over the distance of numbers of that size in the dtype of `found`."""
    exact = np.asarray(reference, np.float64)
    if found.dtype.kind in "biu":
        return np.abs(found.astype(np.float64) - exact)
    kind = finfo(found.dtype)
    with np.errstate(all="ignore"):
        size = np.exp2(np.floor(np.log2(np.maximum(np.abs(exact), kind.tiny))))
        far = np.abs(found.astype(np.float64) - exact) / (size * kind.eps)
    return np.where(found.astype(np.float64) == exact, 0, far)  # equal infinities


def _snapshot(label: _Label, array: np.ndarray, unwritten: np.ndarray | None) -> Snapshot:
    table = array.astype(np.float32, copy=False)
    values = table if unwritten is None else table[~unwritten]
    is_finite = np.isfinite(values)
    finite = values.ravel() if is_finite.all() else values[is_finite]
    nans = 0 if finite.size == values.size else int(np.isnan(values).sum())
    least, greatest = (float(f()) if finite.size else 0.0 for f in (finite.min, finite.max))
    counts = _histogram(finite[:: -(-finite.size // COUNTED) or 1], least, greatest)
    mean = float(finite.mean(dtype=np.float64)) if finite.size else 0.0
    return Snapshot(
        label, array.shape, least, greatest, mean, nans,
        values.size - finite.size - nans, table.size - values.size, counts,
        _picture(table, unwritten, least, greatest),
    )  # fmt: skip


def _histogram(finite: np.ndarray, least: float, greatest: float) -> list[int]:
    """How many numbers are in each of BINS intervals of one width from least to greatest."""
    if not finite.size:
        return [0] * BINS
    width = (greatest - least) / BINS or 1.0
    wide = np.float32 if max(-least, greatest) < LARGE else np.float64  # no difference overflows
    bins = ((finite.astype(wide, copy=False) - wide(least)) * wide(1 / width)).astype(np.int32)
    counts = np.bincount(bins, minlength=BINS)
    counts[BINS - 1] += counts[BINS:].sum()
    return counts[:BINS].tolist()


def _picture(
    values: np.ndarray, unwritten: np.ndarray | None, least: float, greatest: float
) -> np.ndarray:
    """The level of the first element of each block, or the worst mark of any element of it."""
    table = values.reshape(len(values) if values.ndim > 1 else 1, -1)
    starts = _grid(table.shape)
    levels = _levels(table[np.ix_(*starts)], least, greatest)
    marks = _marks(table, unwritten)
    if marks is not None:
        worst = _worst(marks, starts)
        levels = np.where(worst, worst, levels)
    return levels


def _levels(cells: np.ndarray, least: float, greatest: float) -> np.ndarray:
    """Levels of elements, 0 of what is not finite."""
    width = (greatest - least) or 1.0
    chosen = cells.astype(np.float64)
    return np.rint((np.where(np.isfinite(chosen), chosen, least) - least) / width * LEVELS).astype(
        int
    )


def _grid(shape: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """The rows and columns in which the blocks of a picture start."""
    rows, columns = shape
    return _starts(rows, min(rows, SIDE)), _starts(columns, min(columns, SIDE))


def _marks(table: np.ndarray, unwritten: np.ndarray | None) -> np.ndarray | None:
    """What is not a finite number, 0 elsewhere; None where all of them are."""
    if unwritten is None and np.isfinite(table).all():
        return None
    kinds = [np.isnan(table), table == np.inf, table == -np.inf]
    marks = np.select(kinds, [NAN, INF, NEGATIVE_INF], 0)
    if unwritten is not None:
        marks[unwritten.reshape(table.shape)] = UNWRITTEN
    return marks


def _reduced(picture: np.ndarray, by: int) -> np.ndarray:
    """The picture with blocks of by × by cells as one."""
    starts = tuple(np.arange(0, size, by) for size in picture.shape)
    worst = _worst(picture, starts)
    return np.where(worst > LEVELS, worst, picture[::by, ::by])


def _worst(marks: np.ndarray, starts: tuple[np.ndarray, ...]) -> np.ndarray:
    """The greatest mark of each block."""
    rows, columns = starts
    return np.maximum.reduceat(np.maximum.reduceat(marks, rows, 0), columns, 1)


@cache
def _starts(size: int, blocks: int) -> np.ndarray:
    return np.arange(blocks) * size // max(blocks, 1)
