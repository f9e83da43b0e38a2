"""nc_matmul: the systolic array.

Letters: K contraction (partitions of both inputs, at most 128), M free size of stationary (at most
128), N free size of moving. dst (M, N) in PSUM; products are summed in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neuroncore.effects import Effect, reads, writes
from neuroncore.enums import PSUM, SBUF, Engine, MaskBehaviour, MatmulPerfMode, MemorySpace
from neuroncore.errors import AttributeValueError, CapacityError, DTypeError, UnsupportedError
from neuroncore.instructions._accumulate import accumulated, accumulating, contraction, mark_written
from neuroncore.instructions._convert import flag, member, optional_flag, optional_wholes
from neuroncore.instructions._matmul_limits import (
    INPUTS,
    ROWS_ONLY,
    RULE,
    bank_end,
    double_row_is_legal,
    input_dtypes,
    placement_is_legal,
    result_dtypes,
    rows_are_tiled,
    sizes_fit,
    tiles_columns,
    transpose_is_legal,
)
from neuroncore.instructions._numerics import Result, reader
from neuroncore.instructions._record import Attr, Call, Example, In, Instruction, Limit, Out
from neuroncore.instructions._rules import rule, same_partitions
from neuroncore.memory import View
from neuroncore.options import Options
from neuroncore.work import LoadStationary, MicroOp, MultiplyMoving, constant
from nki_dtypes import float32


def nc_matmul(c: Call) -> Callable[..., None]:
    """dst (+)= stationaryᵀ · moving.

    accumulate False: overwrite; True: add; None: per PSUM location the first matmul write
    overwrites and later ones add.
    """
    return _transpose_mode(c) if c.is_transpose else accumulating(c, _product(c))


def _product(c: Call) -> Callable[..., np.ndarray]:
    """(M, N) in float32, optionally straight into `out`."""
    k, m, n = c.stationary.partitions, c.stationary.free, c.moving.free
    if c.perf_mode is MatmulPerfMode.double_row:  # the two rows are two more contraction steps
        left, right = reader(c.stationary, (2 * k, m // 2)), reader(c.moving, (2 * k, n // 2))
    else:
        left, right = reader(c.stationary, (k, m)), reader(c.moving, (k, n))
    product = contraction(c)
    return lambda s, v, out=None: product(left(s), right(v), out)


def _transpose_mode(c: Call) -> Callable[..., None]:
    """Bit-exact dst = stationaryᵀ; only an identity matrix is modelled as moving."""
    shape = (c.stationary.partitions, c.stationary.free)
    read, identity = reader(c.moving, (shape[0], shape[0])), np.eye(shape[0], dtype=np.float32)

    def transpose(dst: View, stationary: View, moving: View) -> None:
        if not np.array_equal(read(moving), identity):
            raise UnsupportedError(
                "moving is not an identity matrix", expected="nl.shared_identity_matrix",
                operand="moving", instruction="nc_matmul", rule=f"{RULE}, transpose mode",
            )  # fmt: skip
        dst.array[...] = stationary.array.reshape(shape).T.reshape(dst.shape)
        mark_written(dst)

    return transpose


def _matmul_effects(c: Call) -> list[Effect]:
    inputs = reads("stationary", "moving")
    return inputs + (writes("dst") if c.is_transpose else accumulated(c))


def _matmul_work(c: Call) -> list[MicroOp]:
    """LoadStationary and MultiplyMoving; float32 takes two of each, two cycles a column.

    Sources: Trainium/Inferentia2 guide (interval, fast load), kernel optimization tutorial (fp32).
    """
    rows = 2 if c.perf_mode is MatmulPerfMode.double_row else 1
    m, n = c.stationary.free // rows, c.moving.free // rows
    wide = {c.stationary.dtype, c.moving.dtype} & {float32}
    onezero = c.is_stationary_onezero or c.is_moving_onezero or c.is_transpose
    passes, cycles = (1 if onezero else 2, 2) if wide else (1, 1)
    flops = 2 * c.stationary.partitions * rows * m * n // passes
    interval = cycles * max(n, constant("MIN_II"))
    load = LoadStationary(m, max(1, m // 4))
    multiply = MultiplyMoving(n, interval, flops)
    return [load, multiply] * passes


def _matmul_result(c: Call) -> Result:
    kind = c.stationary.dtype if c.is_transpose else float32
    rows = 2 if c.perf_mode is MatmulPerfMode.double_row else 1
    return (c.stationary.free // rows, c.moving.free // rows), kind, MemorySpace.psum


_LEFT = np.arange(12.0).reshape(4, 3)
_RIGHT = np.arange(20.0).reshape(4, 5)

_E4M3FN = {"stationary": "float8_e4m3fn[4, 3] sbuf", "moving": "float8_e4m3fn[4, 5] sbuf"}

_RESULT: Limit = rule(
    lambda c: c.dst.dtype in result_dtypes(c),
    DTypeError, "dst", "dst is {c.dst.dtype}",
    expected=lambda c: " or ".join(sorted(map(str, result_dtypes(c)))), section="result dtype",
    dst="bfloat16[3, 5] psum",
)  # fmt: skip


def _columns(count: int, dtype: str) -> dict[str, Any]:
    """Operands of a gen4 matmul whose moving side has so many columns."""
    return {
        "dst": f"{dtype}[3, {count}] psum", "stationary": f"{dtype}[4, 3] sbuf",
        "moving": f"{dtype}[4, {count}] sbuf", "target": "trn3",
    }  # fmt: skip


NC_MATMUL = Instruction(
    name="nc_matmul",
    engines=(Engine.tensor,),
    operands={
        "dst": Out("M N", PSUM),
        "stationary": In("K M", SBUF, dtypes=INPUTS),
        "moving": In("K N", SBUF, dtypes=INPUTS),
    },
    attrs={
        "is_stationary_onezero": Attr(False, flag),
        "is_moving_onezero": Attr(False, flag),
        "is_transpose": Attr(False, flag),
        "accumulate": Attr(None, optional_flag),
        "tile_position": Attr((), optional_wholes("tile_position")),
        "tile_size": Attr((), optional_wholes("tile_size")),
        "perf_mode": Attr(MatmulPerfMode.none, member(MatmulPerfMode, "perf_mode")),
    },
    limits=[
        same_partitions("stationary", "moving", moving="float32[8, 5] sbuf"),
        Limit(sizes_fit, {"moving": "float32[4, 640] sbuf", "dst": "float32[3, 640] psum"}),
        Limit(sizes_fit, {"stationary": "float32[4, 129] sbuf"}),
        Limit(sizes_fit, {"dst": "float32[3, 6] psum"}),
        rule(
            lambda c: c.target.generation >= 4 or bank_end(c) <= c.target.psum_bank_bytes,
            CapacityError, "dst",
            lambda c: f"dst reaches byte {bank_end(c)} of a PSUM bank",
            expected="one PSUM bank of {c.target.psum_bank_bytes} bytes",
            got="shape {c.dst!r} from byte {c.dst.bank_offset} of its bank",
            section="one PSUM bank", moving="float32[4, 640] sbuf", dst="float32[3, 640] psum",
        ),
        _RESULT,
        Limit(input_dtypes, {"moving": "bfloat16[4, 5] sbuf"}),
        Limit(input_dtypes, {"stationary": "float8_e4m3fn[4, 3] sbuf",
                              "moving": "float8_e4m3[4, 5] sbuf"}),
        Limit(double_row_is_legal, {"perf_mode": MatmulPerfMode.double_row}),
        Limit(placement_is_legal, {"tile_position": (0, 0)}),
        Limit(placement_is_legal, {"tile_position": (16, 0), "tile_size": (32, 128)}),
        Limit(transpose_is_legal, {"is_transpose": True, "target": "trn1"}),
        Limit(transpose_is_legal, {"is_transpose": True}),
        rule(
            rows_are_tiled, AttributeValueError, "tile_position", tiles_columns,
            expected=ROWS_ONLY, got="{c.tile_position}, {c.tile_size}",
            hint="Options.column_tiling='warn' runs it", section="tile_position and tile_size",
            tile_position=(0, 64), tile_size=(128, 64), options=Options(column_tiling="error"),
        ),
        Limit(input_dtypes, _E4M3FN | {"target": "trn2"}),
        Limit(input_dtypes, _E4M3FN | {"target": "trn3", "version": (0, 3)}),
        Limit(transpose_is_legal, {"is_transpose": True, "accumulate": True,
                                   "moving": "float32[4, 4] sbuf", "dst": "float32[3, 4] psum"}),
        Limit(placement_is_legal, {"tile_position": (0, 0), "tile_size": (32, 128),
                                   "stationary": "float32[33, 3] sbuf",
                                   "moving": "float32[33, 5] sbuf"}),
        Limit(sizes_fit, _columns(4097, "float32")),
        Limit(sizes_fit, _columns(4097, "bfloat16") | {"version": (0, 4)}),
        Limit(sizes_fit, _columns(8193, "bfloat16")),
        Limit(_RESULT.check, {"dst": "float16[3, 5] psum", "target": "trn3"}),
        Limit(double_row_is_legal, {"perf_mode": MatmulPerfMode.double_row, "target": "trn1",
                                    "stationary": "float8_e4m3[4, 2, 3] sbuf",
                                    "moving": "float8_e4m3[4, 2, 5] sbuf"}),
        Limit(placement_is_legal, {"tile_position": (0, 0), "tile_size": (32, 128),
                                   "target": "trn1"}),
        Limit(placement_is_legal, {"tile_position": (0, 0), "tile_size": (64, 128),
                                   "stationary": "float32[65, 3] sbuf",
                                   "moving": "float32[65, 5] sbuf", "target": "trn1"}),
    ],
    effects=_matmul_effects,
    work=_matmul_work,
    run=nc_matmul,
    result=_matmul_result,
    mask=MaskBehaviour.rectangular,
    covers=lambda c: c.accumulate is False,
    examples=[
        Example({"dst": "float32[3, 5] psum", "stationary": _LEFT, "moving": _RIGHT},
                {"dst": _LEFT.T @ _RIGHT}),
    ],
)  # fmt: skip
