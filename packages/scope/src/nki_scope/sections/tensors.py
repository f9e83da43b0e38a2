"""Results of instructions: a picture, a histogram and counts of each, in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

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
WAITING_BYTES = 1 << 28
"""Copies of results that wait for their counts; the kernel is slowed less without these."""
BLOCK_BYTES, ALIGNMENT = 1 << 20, 64
"""Memory that copies share; of 0.25 to 32 MiB, runs of the example kernels are fastest with it."""
COUNTED = 8192
"""Elements of a histogram; of larger results, evenly spaced ones."""
CELLS = 160 * SIDE * SIDE
"""Cells of all pictures together; with more results each has fewer."""
INPUT = -1
NAN, INF, NEGATIVE_INF, UNWRITTEN, LEVELS = 255, 254, 253, 252, 251
"""How a picture says what is not a finite number, worst last; below are levels from least to
greatest."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The result of one instruction: counts over all of it, a picture of evenly spaced blocks."""

    step: int
    """The number of its instruction; INPUT for an argument of the kernel."""
    tensor: str
    first: tuple[int, ...]
    """The index of its first element in the tensor; () where it is the whole tensor."""
    shape: tuple[int, ...]
    dtype: str
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


class _Copies:
    """Copies of arrays, one behind the other in blocks of memory that are used again."""

    def __init__(self) -> None:
        self._blocks: list[np.ndarray] = []
        self.clear()

    def clear(self) -> None:
        """Nothing is copied yet."""
        self.num_bytes, self._block, self._at = 0, -1, BLOCK_BYTES

    def of(self, array: np.ndarray) -> np.ndarray:
        """A copy of the array; a large one has memory of its own."""
        size = array.nbytes
        self.num_bytes += size
        if size > BLOCK_BYTES:
            return np.array(array)
        if self._at + size > BLOCK_BYTES:
            self._next_block()
        copy: np.ndarray = np.ndarray(array.shape, array.dtype, self._blocks[self._block], self._at)
        copy[...] = array
        self._at += -(-size // ALIGNMENT) * ALIGNMENT
        return copy

    def _next_block(self) -> None:
        self._block, self._at = self._block + 1, 0
        if self._block == len(self._blocks):
            self._blocks.append(np.empty(BLOCK_BYTES, np.uint8))


Source = str | tuple[str, Place | None]
"""The name of a result, or the name and the place of its storage, where its variable is looked up
once the kernel has run."""


@dataclass(slots=True)
class Snapshots:
    """The results of one launch."""

    most: int = MOST_RESULTS
    """How many of them are kept: the first ones."""
    steps: int = 0
    parameters: tuple[str, ...] = ()
    """Names of the inputs, in order, once the kernel has run."""
    _num_inputs: int = 0
    _left_out: Counter[Source] = field(default_factory=Counter)
    """How many results of a tensor are not kept."""
    _kept: list[Snapshot] = field(default_factory=list)
    _waiting: list[
        tuple[int, Source, tuple[int, ...], DType | str, np.ndarray, np.ndarray | None]
    ] = field(default_factory=list)
    _copies: _Copies = field(default_factory=_Copies)

    def note(self, event: Event, unwritten: Callable[[View], np.ndarray | None]) -> None:
        """Keep the results of an instruction, or count them."""
        is_kept = len(self._kept) + len(self._waiting) < self.most
        for operand in event.call.record.outputs:
            view = event.views.get(operand)
            if not isinstance(view, View):
                continue
            storage = view.storage
            source = storage.name, storage.place
            if is_kept:
                found = view.array if view.spec.indirect is None else shown(view)
                self._wait(source, view.spec.dtype, found, unwritten(view), _first(view))
            else:
                self._left_out[source] += 1
        self.steps += 1

    def input(self, view: View) -> None:
        """Keep an argument of the kernel, as it is before the first instruction."""
        self._wait(
            f"input {self._num_inputs}", view.spec.dtype, shown(view), None, _first(view), INPUT
        )
        self._num_inputs += 1

    def compare(self, name: str, found: np.ndarray, reference: np.ndarray) -> None:
        """Keep how far a result is from what it should be, in units of its last place."""
        self._wait(f"{name}, ulps from the reference", "ulps", _ulps(found, reference))

    def _wait(
        self, source: Source, dtype: DType | str, array: np.ndarray,
        unwritten: np.ndarray | None = None, first: tuple[int, ...] = (), step: int | None = None,
    ) -> None:  # fmt: skip
        step = self.steps if step is None else step
        self._waiting.append((step, source, first, dtype, self._copies.of(array), unwritten))
        if self._copies.num_bytes > WAITING_BYTES:
            self._count()

    def _count(self) -> None:
        self._kept += [
            _snapshot(step, _name(source), first, str(dtype), array, unwritten)
            for step, source, first, dtype, array, unwritten in self._waiting
        ]
        self._waiting.clear()
        self._copies.clear()

    def section(self, columns: Columns) -> dict[str, Any]:
        """The document, with the pictures in one column."""
        self._count()
        left_out: Counter[str] = Counter()
        for source, count in self._left_out.items():
            left_out[_name(source)] += count
        reduced = 1
        while sum(s.picture[::reduced, ::reduced].size for s in self._kept) > CELLS and reduced < 8:
            reduced *= 2
        names = {f"input {n}": name for n, name in enumerate(self.parameters)}
        pictures = [_reduced(s.picture, reduced) for s in self._kept]
        levels = [p.ravel() for p in pictures] or [np.zeros(0, int)]
        return {
            "left": dict(left_out), "most": self.most,
            "levels": LEVELS,
            "pictures": columns.add(np.concatenate(levels).tolist()),
            "results": [
                {
                    "step": s.step, "tensor": names.get(s.tensor, s.tensor), "first": s.first,
                    "shape": s.shape, "dtype": s.dtype,
                    "least": s.least, "greatest": s.greatest, "mean": s.mean, "nans": s.nans,
                    "infinite": s.infinite, "unwritten": s.unwritten, "histogram": s.histogram,
                    "rows": picture.shape[0], "columns": picture.shape[1],
                }
                for s, picture in zip(self._kept, pictures, strict=True)
            ],
        }  # fmt: skip


def _name(source: Source) -> str:
    if isinstance(source, str):
        return source
    given, place = source
    return given or assigned_name(place) or "tensor"


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


def _snapshot(
    step: int,
    name: str,
    first: tuple[int, ...],
    dtype: str,
    array: np.ndarray,
    unwritten: np.ndarray | None,
) -> Snapshot:
    table = array.astype(np.float32, copy=False)
    values = table if unwritten is None else table[~unwritten]
    is_finite = np.isfinite(values)
    finite = values.ravel() if is_finite.all() else values[is_finite]
    nans = 0 if finite.size == values.size else int(np.isnan(values).sum())
    least, greatest = (float(f()) if finite.size else 0.0 for f in (finite.min, finite.max))
    counts = _histogram(finite[:: -(-finite.size // COUNTED) or 1], least, greatest)
    mean = float(finite.mean(dtype=np.float64)) if finite.size else 0.0
    return Snapshot(
        step, name, first, array.shape, dtype, least, greatest, mean, nans,
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
    starts = tuple(_starts(size, min(size, SIDE)) for size in table.shape)
    chosen = table[np.ix_(*starts)].astype(np.float64)
    width = (greatest - least) or 1.0
    levels = np.rint((np.where(np.isfinite(chosen), chosen, least) - least) / width * LEVELS)
    marks = _marks(table, unwritten)
    if marks is not None:
        worst = _worst(marks, starts)
        levels = np.where(worst, worst, levels)
    return levels.astype(int)


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
