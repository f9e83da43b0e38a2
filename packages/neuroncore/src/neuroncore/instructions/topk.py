"""topk: the K largest of up to 65,535 numbers over 16 partitions, and where they are, on GpSimdE.

src (P, S), val_dst and idx_dst (P, K). Element e of a group of 16 partitions is at its partition
e % 16, column e // 16 (a snake); n of them count. Up to 0.6 every partition gets the K results;
from 0.7 on result j of a group is at its partition j % 16, column j // 16.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import ceil

import numpy as np

from neuroncore.enums import SBUF, Engine
from neuroncore.errors import (
    AttributeValueError,
    PartitionError,
    ShapeError,
    UnsupportedError,
    Violation,
)
from neuroncore.instructions._convert import flag, whole
from neuroncore.instructions._numerics import like, reader, writer
from neuroncore.instructions._record import Attr, Call, Example, In, Instruction, Limit, Out
from neuroncore.instructions._rules import rule, same_free, same_partitions
from neuroncore.memory import View
from neuroncore.targets import GPSIMD_PARTITIONS
from neuroncore.work import MicroOp, Pass
from nki_dtypes import bfloat16, uint32

RULE = "NKI: topk"
_MOST_ELEMENTS, _MOST_RESULTS = 1 << 16, 1 << 15


def topk(c: Call) -> Callable[..., None]:
    """val_dst = the K largest of the first n elements, ascending; idx_dst = their numbers e.

    Options.topk_ranks says which elements are ranked. Of equal values the first count; which ones
    do is not documented.
    """
    if c.version >= (0, 7):
        return _topk_of_snakes(c)
    groups, columns = c.src.partitions // GPSIMD_PARTITIONS, ceil(c.n / GPSIMD_PARTITIONS)
    read = reader(c.src, (groups, GPSIMD_PARTITIONS, c.src.free))
    store, by_row = writer(c.val_dst), c.options.topk_ranks == "row"
    k, shape = c.val_dst.free, (c.src.partitions, c.val_dst.free)

    def rank(val_dst: View, idx_dst: View, src: View) -> None:
        taken = read(src)[:, :, :columns]
        if by_row:
            values = np.empty(shape, np.float32)
            places = np.empty(shape, np.int64)
            for p in range(c.src.partitions):
                first = p % GPSIMD_PARTITIONS
                own = taken[p // GPSIMD_PARTITIONS, first, : _own_elements(c, first)]
                order = _largest(own, k)
                values[p], places[p] = own[order], order * GPSIMD_PARTITIONS + first
        else:
            snakes = taken.transpose(0, 2, 1).reshape(groups, -1)[:, : c.n]
            orders = np.stack([_largest(snake, k) for snake in snakes])
            places = np.repeat(orders, GPSIMD_PARTITIONS, axis=0)
            values = np.repeat(np.take_along_axis(snakes, orders, 1), GPSIMD_PARTITIONS, axis=0)
        store(val_dst, values.reshape(val_dst.shape))
        idx_dst.array[...] = places.reshape(idx_dst.shape)

    return rank


def _topk_of_snakes(c: Call) -> Callable[..., None]:
    """As from 0.7 on. Only the K results are written; in which order, the options say."""
    groups, k = c.src.partitions // GPSIMD_PARTITIONS, c.val_dst.free
    read, columns = (
        reader(c.src, (groups, GPSIMD_PARTITIONS, c.src.free)),
        ceil(k / GPSIMD_PARTITIONS),
    )
    place = np.arange(k)
    order = _ORDERS[c.options.topk_sorted if c.sorted else c.options.topk_order]
    shape = (c.src.partitions, columns)

    def rank(val_dst: View, idx_dst: View, src: View) -> None:
        snakes = read(src).transpose(0, 2, 1).reshape(groups, -1)[:, : c.n]
        taken = _is_result(c)[:, :columns]
        values, places = np.empty(shape, np.float32), np.empty(shape, np.int64)
        for group, snake in enumerate(snakes):
            rows = group * GPSIMD_PARTITIONS + place % GPSIMD_PARTITIONS
            found = order(_largest(snake, k))
            values[rows, place // GPSIMD_PARTITIONS] = snake[found]
            places[rows, place // GPSIMD_PARTITIONS] = found
        for dst, results in ((val_dst, values), (idx_dst, places)):
            flat = dst.array.reshape(c.src.partitions, -1).copy()
            flat[:, :columns][taken] = results[taken].astype(flat.dtype)
            dst.array[...] = flat.reshape(dst.shape)

    return rank


_ORDERS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "ascending": lambda order: order,
    "descending": lambda order: order[::-1],
    "position": np.sort,
}


def _is_result(c: Call) -> np.ndarray:
    """Which elements of val_dst and idx_dst, as (P, K), are written: the results of each group."""
    k = c.val_dst.free
    number = np.arange(k) * GPSIMD_PARTITIONS + np.arange(GPSIMD_PARTITIONS)[:, None]
    return np.tile(number < k, (c.src.partitions // GPSIMD_PARTITIONS, 1))


def _largest(row: np.ndarray, k: int) -> np.ndarray:
    """The places of the k largest elements, the smallest of them first."""
    return np.argsort(-row, kind="stable")[:k][::-1]


def _own_elements(c: Call, partition: int) -> int:
    """How many of the n elements are in a partition of the group."""
    return len(range(partition, c.n, GPSIMD_PARTITIONS))


def _sizes(c: Call) -> Iterable[Violation]:
    k = c.val_dst.free
    if not 8 <= c.n < _MOST_ELEMENTS:
        yield Violation(
            AttributeValueError, f"n {c.n}", "n", expected=f"8 to {_MOST_ELEMENTS - 1}",
            got=str(c.n), rule=f"{RULE}, n",
        )  # fmt: skip
    elif c.src.free < ceil(c.n / GPSIMD_PARTITIONS):
        yield Violation(
            ShapeError, f"src has {c.src.free} elements per partition", "src",
            expected=f"at least {ceil(c.n / GPSIMD_PARTITIONS)}: n / {GPSIMD_PARTITIONS}",
            got=f"shape {c.src!r}, n {c.n}", rule=f"{RULE}, shapes",
        )  # fmt: skip
    fewest = _own_elements(c, GPSIMD_PARTITIONS - 1)
    most = c.n if c.options.topk_ranks == "snake" else fewest
    if k >= _MOST_RESULTS or k > most:
        yield Violation(
            ShapeError, f"val_dst takes {k} of {most} elements", "val_dst",
            expected=f"at most {min(most, _MOST_RESULTS - 1)} per partition",
            got=f"shape {c.val_dst!r}, n {c.n}", rule=f"{RULE}, K",
        )  # fmt: skip


def _work(c: Call) -> list[MicroOp]:
    """4 n + K cycles [NKI: topk, estimated instruction cost]."""
    return [Pass(Engine.gpsimd, 4 * c.n + c.val_dst.free)]


_SNAKE = np.zeros((16, 1))
_SNAKE[[3, 9, 12], 0] = [5, 8, 8]
_VALUES, _PLACES = np.tile([5.0, 8, 8], (16, 1)), np.tile([3, 12, 9], (16, 1))
_FIRST_THREE = np.zeros((2, 16, 3))
_FIRST_THREE[:, :3, 0] = [[5, 8, 8], [3, 9, 12]]
_BFLOAT16 = frozenset({bfloat16})

TOPK = Instruction(
    name="topk",
    engines=(Engine.gpsimd,),
    operands={
        "val_dst": Out("P K", SBUF, dtypes=_BFLOAT16),
        "idx_dst": Out("P K", SBUF, dtypes=frozenset({uint32})),
        "src": In("P S", SBUF, dtypes=_BFLOAT16),
    },
    attrs={"n": Attr(convert=whole("n")), "sorted": Attr(False, flag)},
    limits=[
        same_partitions("src", "val_dst", "idx_dst", idx_dst="uint32[32, 3] sbuf"),
        same_free("val_dst", "idx_dst", idx_dst="uint32[16, 2] sbuf"),
        rule(
            lambda c: c.src.partitions % GPSIMD_PARTITIONS == 0,
            PartitionError, "src", "src has {c.src.partitions} partitions",
            expected=f"a multiple of {GPSIMD_PARTITIONS}", section="shapes",
            src="bfloat16[8, 1] sbuf", val_dst="bfloat16[8, 3] sbuf", idx_dst="uint32[8, 3] sbuf",
        ),
        rule(
            lambda c: not c.sorted or c.version < (0, 7) or c.options.topk_sorted != "reject",
            UnsupportedError, "sorted", "sorted=True from 0.7 on",
            expected="False: no document shows which order it gives",
            hint="Options.topk_sorted='ascending' or 'descending' takes one", section="sorted",
            sorted=True, version=(0, 7),
        ),
        Limit(_sizes, {"n": 7}),
        Limit(_sizes, {"n": 17}),
        Limit(_sizes, {"n": 8, "val_dst": "bfloat16[16, 9] sbuf", "idx_dst": "uint32[16, 9] sbuf"}),
    ],
    work=_work,
    run=topk,
    result=like("val_dst"),
    covers=lambda c: c.version < (0, 7),
    chooses=lambda c, views: None if c.version < (0, 7) else _is_result(c).reshape(c.val_dst.shape),
    examples=[
        Example({"val_dst": "bfloat16[16, 3] sbuf", "idx_dst": "uint32[16, 3] sbuf",
                 "src": ("sbuf bfloat16", _SNAKE), "n": 16},
                {"val_dst": _VALUES, "idx_dst": _PLACES}),
        Example({"val_dst": ("sbuf bfloat16", np.zeros((16, 3))),
                 "idx_dst": ("sbuf uint32", np.zeros((16, 3))),
                 "src": ("sbuf bfloat16", _SNAKE), "n": 16, "version": (0, 7)},
                {"val_dst": _FIRST_THREE[0], "idx_dst": _FIRST_THREE[1]},
                note="from 0.7 on result j is at partition j % 16, column j // 16"),
    ],
)  # fmt: skip
