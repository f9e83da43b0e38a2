"""nc_matmul_mx: matmul of MX tiles on TensorE, dequantised as they are read (gen4).

Letters: K contraction (partitions; four numbers in each element), M free size of stationary, N of
moving. dst (M, N) in PSUM; scales as _mx.py says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from neuroncore.effects import reads
from neuroncore.enums import PSUM, SBUF, Engine, MemorySpace
from neuroncore.errors import AttributeValueError, ShapeError, Violation
from neuroncore.instructions._accumulate import accumulated, accumulating, contraction
from neuroncore.instructions._convert import flag, optional, optional_wholes
from neuroncore.instructions._mx import (
    LANES,
    SCALE_ROWS,
    SCALES,
    dequantized,
    scales_fit,
    whole_quadrants,
)
from neuroncore.instructions._numerics import Result
from neuroncore.instructions._record import Attr, Call, Example, In, Instruction, Limit, Out
from neuroncore.instructions._rules import from_generation, same_partitions
from neuroncore.instructions.matmul import is_placement
from neuroncore.memory import Core, View
from neuroncore.work import LoadStationary, MicroOp, MultiplyMoving, constant
from nki_dtypes import bfloat16, float4_e2m1fn_x4, float8_e4m3fn_x4, float8_e5m2_x4, float32

RULE = "NKI: nc_matmul_mx"
_DATA = frozenset({float8_e5m2_x4, float8_e4m3fn_x4, float4_e2m1fn_x4})


def nc_matmul_mx(c: Call) -> Callable[..., None]:
    """dst (+)= Σ over k and the four lanes q of stationary[k, m, q] · moving[k, n, q], in float32.

    Both are multiplied by their scales first. `accumulate` as nc_matmul.
    """
    left = dequantized(c.stationary, c.stationary_scale)
    right = dequantized(c.moving, c.moving_scale)
    m, n = c.stationary.free, c.moving.free
    summed = contraction(c)

    def product(
        stationary: View, moving: View, stationary_scale: View, moving_scale: View, out: Any = None
    ) -> np.ndarray:
        a = left(stationary, stationary_scale).transpose(0, 2, 1).reshape(-1, m)
        b = right(moving, moving_scale).transpose(0, 2, 1).reshape(-1, n)
        return summed(a, b, out)

    return accumulating(c, product)


def _moving_max(c: Call) -> int:
    """One PSUM bank up to 0.4, all eight from 0.5 on; twice as many bfloat16 results."""
    most = 512 if c.version < (0, 5) else c.target.moving_free_max
    return most * 2 if c.dst.dtype is bfloat16 else most


def _sizes(c: Call) -> Iterable[Violation]:
    m, n = c.stationary.free, c.moving.free
    if m % 2 or m > c.target.stationary_free_max:
        yield Violation(
            ShapeError, f"stationary free size {m}", "stationary",
            expected=f"even, at most {c.target.stationary_free_max}",
            got=f"shape {c.stationary!r}", rule=f"{RULE}, tile size",
        )  # fmt: skip
    if n > _moving_max(c):
        yield Violation(
            ShapeError, f"moving free size {n} exceeds {_moving_max(c)}", "moving",
            expected=f"at most {_moving_max(c)} into {c.dst.dtype}", got=f"shape {c.moving!r}",
            hint="split the free axis", rule=f"{RULE}, tile size",
        )  # fmt: skip
    if (c.dst.partitions, c.dst.free) != (m, n):
        yield Violation(
            ShapeError, f"dst is ({c.dst.partitions}, {c.dst.free}) per partition and free size",
            "dst", expected=f"(F(stationary), F(moving)) = ({m}, {n})", got=f"shape {c.dst!r}",
            rule=f"{RULE}, shapes",
        )  # fmt: skip


def _row_tiling(c: Call) -> Iterable[Violation]:
    position, size = c.tile_position, c.tile_size
    if not is_placement(c, 32, {128}):
        yield Violation(
            AttributeValueError, f"tile_position {position} with tile_size {size}",
            "tile_position", expected="both given; tile_size (32, 64 or 128, 128), tile_position "
            "(a multiple of the row size below 128, 0)",
            got=f"{position}, {size}", rule=f"{RULE}, row tiling",
        )  # fmt: skip
    elif size and c.stationary.partitions > size[0]:
        yield Violation(
            ShapeError, f"stationary does not fit the PE tile {size}", "stationary",
            expected=f"at most {size[0]} partitions", got=f"shape {c.stationary!r}",
            rule=f"{RULE}, row tiling",
        )  # fmt: skip


def _work(c: Call) -> list[MicroOp]:
    """As bfloat16, for four times the contraction [Trainium3 architecture guide: Quad-MXFP8]."""
    k, m, n = c.stationary.partitions, c.stationary.free, c.moving.free
    flops = 2 * LANES * k * m * n
    return [
        LoadStationary(m, max(1, m // 4)), MultiplyMoving(n, max(n, constant("MIN_II")), flops),
    ]  # fmt: skip


def _result(c: Call) -> Result:
    return (c.stationary.free, c.moving.free), float32, MemorySpace.psum


def _ones(columns: int) -> Callable[[Core], View]:
    """(32, columns) elements of four float8_e4m3fn ones."""
    words = np.full((32, columns), 0x38383838, np.uint32)
    return lambda core: core.adopt(words, MemorySpace.sbuf, dtype=float8_e4m3fn_x4)


def _columns(count: int, dtype: str) -> dict[str, Any]:
    """Operands whose moving side has so many columns."""
    return {
        "dst": f"{dtype}[2, {count}] psum", "moving": f"float8_e4m3fn_x4[32, {count}] sbuf",
        "moving_scale": f"uint8[4, {count}] sbuf",
    }  # fmt: skip


_UNIT = ("sbuf uint8", np.full((4, 2), 127))
_HALF = ("sbuf uint8", np.full((4, 3), 126))

_STATIONARY_SCALES = scales_fit("stationary", "stationary_scale")
_MOVING_SCALES = scales_fit("moving", "moving_scale")

NC_MATMUL_MX = Instruction(
    name="nc_matmul_mx",
    engines=(Engine.tensor,),
    operands={
        "dst": Out("M N", PSUM, dtypes=frozenset({float32, bfloat16})),
        "stationary": In("K M", SBUF, dtypes=_DATA),
        "moving": In("K N", SBUF, dtypes=_DATA),
        "stationary_scale": In("K M", SBUF, dtypes=SCALES, own_start=True),
        "moving_scale": In("K N", SBUF, dtypes=SCALES, own_start=True),
    },
    attrs={
        "tile_position": Attr(None, optional_wholes("tile_position")),
        "tile_size": Attr(None, optional_wholes("tile_size")),
        "accumulate": Attr(None, optional(flag)),
    },
    limits=[
        same_partitions("stationary", "moving", moving="float8_e4m3fn_x4[64, 3] sbuf"),
        whole_quadrants(
            "stationary", stationary="float8_e4m3fn_x4[16, 2] sbuf",
            moving="float8_e4m3fn_x4[16, 3] sbuf",
        ),
        Limit(_sizes, {"stationary": "float8_e4m3fn_x4[32, 3] sbuf"}),
        Limit(_sizes, {"dst": "float32[2, 4] psum"}),
        Limit(_sizes, _columns(513, "float32") | {"version": (0, 4)}),
        Limit(_STATIONARY_SCALES, {"stationary_scale": "uint8[4, 1] sbuf"}),
        Limit(_MOVING_SCALES, {"moving_scale": "uint8[3, 3] sbuf"}),
        Limit(_row_tiling, {"tile_position": (0, 0)}),
        from_generation(4, "dst", "trn2"),
        Limit(_STATIONARY_SCALES, {"stationary_scale": "uint8[4, 2] sbuf @5"}),
        Limit(_STATIONARY_SCALES, {"stationary_scale": "float8_e8m0fnu[4, 2] sbuf",
                                   "version": (0, 4)}),
        Limit(_MOVING_SCALES, {"moving_scale": "uint8[4, 3] sbuf @5"}),
        Limit(_MOVING_SCALES, {"moving_scale": "float8_e8m0fnu[4, 3] sbuf", "version": (0, 4)}),
        Limit(_row_tiling, {"stationary": "float8_e4m3fn_x4[64, 2] sbuf",
                            "moving": "float8_e4m3fn_x4[64, 3] sbuf",
                            "stationary_scale": "uint8[36, 2] sbuf",
                            "moving_scale": "uint8[36, 3] sbuf",
                            "tile_position": (0, 0), "tile_size": (32, 128)}),
        Limit(_sizes, _columns(1025, "bfloat16") | {"version": (0, 4)}),
        Limit(_sizes, _columns(4097, "float32")),
        Limit(_sizes, _columns(8193, "bfloat16")),
    ],
    effects=lambda c: (
        reads("stationary", "moving", "stationary_scale", "moving_scale") + accumulated(c)
    ),
    work=_work,
    run=nc_matmul_mx,
    result=_result,
    covers=lambda c: c.accumulate is False,
    moves_bits=lambda c: True,
    rows={"stationary_scale": SCALE_ROWS, "moving_scale": SCALE_ROWS},
    examples=[
        Example({"dst": "float32[2, 3] psum", "stationary": _ones(2), "moving": _ones(3),
                 "stationary_scale": _UNIT, "moving_scale": _HALF, "target": "trn3"},
                {"dst": np.full((2, 3), 64.0)}, note="32 partitions of four ones; moving halved"),
    ],
)  # fmt: skip
