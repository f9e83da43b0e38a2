"""bn_stats and bn_aggr: mean and variance in one pass each, in float32.

bn_stats reduces data (P, F) to two triples (count, mean, count · variance), of the elements at even
and at odd places; bn_aggr merges any number of triples into (mean, variance). Variances are
population variances. Free dimensions are flattened in row-major order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neuroncore.enums import ON_CHIP, Engine, MaskBehaviour, MemorySpace
from neuroncore.errors import ShapeError, UndefinedError
from neuroncore.instructions._cost import one_pass
from neuroncore.instructions._numerics import Result, reader, writer
from neuroncore.instructions._record import Call, Example, In, Instruction, Limit, Out
from neuroncore.instructions._rules import rule, same_partitions
from neuroncore.memory import View


def _width(count: int, **breaks: Any) -> Limit:
    """dst has `count` elements per partition."""
    return rule(
        lambda c: c.dst.free == count,
        ShapeError, "dst", "dst has {c.dst.free} elements per partition",
        expected=lambda c: f"({c.dst.partitions}, {count})", section="shapes", **breaks,
    )  # fmt: skip


def _inferred(count: int) -> Callable[[Call], Result]:
    return lambda c: ((c.data.partitions, count), c.data.dtype, MemorySpace.sbuf)


# -- bn_stats -------------------------------------------------------------------------------------


def bn_stats(c: Call) -> Callable[..., None]:
    """dst = [n, mean, n · variance] of the even elements, then of the odd ones."""
    shape = (c.data.partitions, c.data.free)
    read, write = reader(c.data, shape), writer(c.dst)
    even, odd = shape[1] - shape[1] // 2, shape[1] // 2

    def measure(dst: View, data: View) -> None:
        values = read(data)
        halves = zip((even, odd), (values[:, 0::2], values[:, 1::2]), strict=True)
        write(dst, np.concatenate([_triple(n, half) for n, half in halves], axis=1))

    return measure


def _triple(count: int, values: np.ndarray) -> np.ndarray:
    """(P, 3) float32."""
    mean = values.mean(1, keepdims=True, dtype=np.float32)
    centered = values - mean
    moment = np.einsum("pf,pf->p", centered, centered)[:, None]
    return np.concatenate([np.full_like(mean, count), mean, moment], axis=1)


_DATA = np.array([[1.0, 2.0, 3.0, 6.0, 5.0], [0.0, 0.0, 0.0, 0.0, 0.0]])

BN_STATS = Instruction(
    name="bn_stats",
    engines=(Engine.vector,),
    operands={"dst": Out("P 6", ON_CHIP), "data": In("P F", ON_CHIP)},
    limits=[
        same_partitions("dst", "data", data="float32[8, 5] sbuf"),
        _width(6, dst="float32[2, 5] sbuf"),
        rule(
            lambda c: c.data.free <= c.target.bn_stats_free_max,
            ShapeError, "data", "data has {c.data.free} elements per partition",
            expected="at most {c.target.bn_stats_free_max}",
            hint="one bn_stats per chunk into neighbouring columns, then one bn_aggr",
            section="tile_size.bn_stats_fmax", data="float32[2, 513] sbuf",
        ),
        rule(
            lambda c: c.data.free > 1,
            UndefinedError, "data", "data has no odd element",
            expected="at least 2 elements per partition",
            hint="no document says what the mean of no elements is", section="NKI: bn_stats",
            data="float32[2, 1] sbuf",
        ),
    ],
    work=lambda c: one_pass(c, c.data.free),  # [NKI 0.1 API documents]
    run=bn_stats,
    result=_inferred(6),
    mask=MaskBehaviour.rectangular,
    examples=[
        Example({"dst": "float32[2, 6] sbuf", "data": _DATA},
                {"dst": np.array([[3.0, 3.0, 8.0, 2.0, 4.0, 8.0], [3.0, 0, 0, 2.0, 0, 0]])}),
    ],
)  # fmt: skip


# -- bn_aggr --------------------------------------------------------------------------------------


def bn_aggr(c: Call) -> Callable[..., None]:
    """dst = [mean, variance] of all elements that the triples of data describe.

    With N = Σ n: mean = Σ n·m / N and variance = (Σ s + Σ n·(m - mean)²) / N.
    """
    read, write = reader(c.data, (c.data.partitions, c.data.free // 3, 3)), writer(c.dst)

    def merge(dst: View, data: View) -> None:
        count, mean, moment = np.moveaxis(read(data), -1, 0)
        total = count.sum(1, keepdims=True)
        middle = (count * mean).sum(1, keepdims=True) / total
        spread = moment.sum(1, keepdims=True) + (count * (mean - middle) ** 2).sum(1, keepdims=True)
        write(dst, np.concatenate([middle, spread / total], axis=1))

    return merge


BN_AGGR = Instruction(
    name="bn_aggr",
    engines=(Engine.vector,),
    operands={"dst": Out("P 2", ON_CHIP), "data": In("P 3T", ON_CHIP)},
    limits=[
        same_partitions("dst", "data", data="float32[8, 6] sbuf"),
        _width(2, dst="float32[1, 3] sbuf"),
        rule(
            lambda c: c.data.free % 3 == 0,
            ShapeError, "data", "data has {c.data.free} elements per partition",
            expected="whole triples (count, mean, count · variance): a multiple of 3",
            section="shapes", data="float32[1, 7] sbuf",
        ),
    ],
    work=lambda c: one_pass(c, 13 * c.data.free / 3),  # [NKI 0.1 API documents]
    run=bn_aggr,
    result=_inferred(2),
    mask=MaskBehaviour.rectangular,
    examples=[
        Example({"dst": "float32[1, 2] sbuf",
                 "data": np.array([[2.0, 1.0, 2.0, 2.0, 3.0, 2.0]])},
                {"dst": np.array([[2.0, 2.0]])}, note="0, 2 and 2, 4"),
    ],
)  # fmt: skip
