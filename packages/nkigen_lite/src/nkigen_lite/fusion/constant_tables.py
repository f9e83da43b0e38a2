"""Constant arrays: their distinct elements, as arithmetic progressions or as bytes.

Elements that are equal along an axis are stored once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from math import prod

import numpy as np

from neuroncore.spec import row_major
from nki_dtypes import DType, cast, int32
from nkigen_lite.fusion.array_view import ArrayView, array_view_of
from nkigen_lite.ir import Node
from nkigen_lite.ops import Kind

ROW_ELEMS = 2048
"""Elements of a row on chip."""
MOST_RUNS = 256
"""Instructions that an array may take: more numbers are data, not code."""
MOST_ROWS = 64


def reads_in_hbm(node: Node, value: str) -> bool:
    """Whether the node takes a number as an array in HBM; a loop may begin with it as it is."""
    if node.record.kind is Kind.loop:
        return value in node.operands[node.attrs["carries"] :]
    return node.record.kind in (Kind.matmul, Kind.indirect)


@dataclass(frozen=True, slots=True)
class Progression:
    """`count` elements first, first + step, …; whole numbers where step is not 0."""

    first: float
    step: int
    count: int


@dataclass(frozen=True, slots=True)
class Table:
    """An array by the axes along which it changes; the others have stride 0.

    `runs` are its elements where they are few enough, `content` their bytes unless an even count
    says them all.
    """

    shape: tuple[int, ...]
    dtype: DType
    changes: tuple[int, ...]
    runs: tuple[Progression, ...]
    content: bytes | None = None

    @property
    def core(self) -> tuple[int, ...]:
        """The shape of what differs."""
        return tuple(self.shape[d] for d in self.changes) or (1,)

    @property
    def size(self) -> int:
        """Elements that differ."""
        return prod(self.core)

    def source(self, buffer: str) -> ArrayView:
        """The whole array, its core in C order in a buffer."""
        strides = dict(zip(self.changes, row_major(self.core), strict=False))  # rank 0 has none
        return replace(
            array_view_of(buffer, self.shape, self.dtype),
            strides=tuple(strides.get(d, 0) for d in range(len(self.shape))),
        )


def table_of(node: Node) -> Table:
    """The table of a constant or iota."""
    if node.op == "iota":
        axis, shape = node.attrs["axis"], node.spec.shape
        return Table(shape, node.spec.dtype, (axis,), (Progression(0.0, 1, shape[axis]),))
    array = node.attrs["value"].array
    bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").reshape(array.shape)
    changes = tuple(d for d in range(array.ndim) if (bits != np.take(bits, [0], d)).any())
    core = array[tuple(slice(None) if d in changes else 0 for d in range(array.ndim))]
    flat = np.ascontiguousarray(core).reshape(-1)
    count = _even_count(flat, node.spec.dtype)
    if count is not None:
        return Table(array.shape, node.spec.dtype, changes, (count,))
    runs: tuple[Progression, ...] = ()
    if flat.size <= MOST_ROWS * ROW_ELEMS:
        runs = tuple(islice(_runs(flat, node.spec.dtype), MOST_RUNS + 1))
    if len(runs) > MOST_RUNS:
        runs = ()
    return Table(array.shape, node.spec.dtype, changes, runs, flat.tobytes())


def row_of(node: Node) -> Table:
    """An array of one number, as what is held once: a row."""
    array = node.attrs["value"].array
    row = np.ascontiguousarray(array.reshape(-1)[: array.shape[-1] if array.ndim else 1])
    last = tuple(range(array.ndim)[-1:])
    return Table(array.shape, node.spec.dtype, last, (), row.tobytes())


def _even_count(flat: np.ndarray, dtype: DType) -> Progression | None:
    """All the elements as one run, if iota makes them."""
    first, second = (float(n) for n in flat[:2])
    step = second - first
    return Progression(first, int(step), flat.size) if _counts(first, step, flat, dtype) else None


def _runs(flat: np.ndarray, dtype: DType) -> Iterator[Progression]:
    bits = flat.view(f"u{flat.dtype.itemsize}")
    with np.errstate(all="ignore"):
        numbers = flat.astype(np.float64)
    equal = _stretch(bits[1:] == bits[:-1])
    steps = np.diff(numbers)
    even = _stretch(steps[1:] == steps[:-1])
    at = 0
    while at < flat.size:
        same = int(equal[at]) if at < equal.size else 0
        more = int(even[at]) + 1 if at < even.size else 0
        step = float(steps[at]) if at < steps.size else 0.0
        if not same and more >= 2 and _counts(numbers[at], step, flat[at : at + more + 1], dtype):
            yield Progression(float(numbers[at]), int(step), more + 1)
            at += more + 1
        else:
            yield Progression(float(numbers[at]), 0, same + 1)
            at += same + 1


def _stretch(holds: np.ndarray) -> np.ndarray:
    """How many elements from each on hold."""
    places = np.arange(holds.size)
    ends = np.where(holds, holds.size, places)
    return np.minimum.accumulate(ends[::-1])[::-1] - places


def _counts(first: float, step: float, given: np.ndarray, dtype: DType) -> bool:
    """Whether iota makes exactly these elements; the bits too, as -0.0 is not 0."""
    last = first + step * given.size
    if not (
        np.isfinite(step)
        and step == int(step)
        and first == int(first)
        and max(abs(first), abs(last)) <= int32.max
    ):
        return False
    made = int(first) + int(step) * np.arange(given.size)
    if not np.array_equal(made, given.astype(np.float64)):
        return False
    return cast(made.astype(np.int32), dtype, from_=int32).tobytes() == given.tobytes()
