"""nc_matmul: the systolic array.

Letters: K contraction (partitions of both inputs, at most 128), M free size of stationary (at most
128), N free size of moving. dst (M, N) in PSUM; products are summed in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from neuroncore.effects import Effect, reads, writes
from neuroncore.enums import PSUM, SBUF, Engine, MaskBehaviour, MatmulPerfMode, MemorySpace
from neuroncore.errors import (
    AttributeValueError,
    CapacityError,
    DTypeError,
    ShapeError,
    UnsupportedError,
    Violation,
)
from neuroncore.instructions._accumulate import accumulated, accumulating, contraction, mark_written
from neuroncore.instructions._convert import flag, member, optional, optional_wholes
from neuroncore.instructions._limits import warn_at_kernel
from neuroncore.instructions._numerics import Result, reader
from neuroncore.instructions._record import Attr, Call, Example, In, Instruction, Limit, Out
from neuroncore.instructions._rules import rule, same_partitions
from neuroncore.memory import View
from neuroncore.notes import note_without_effect
from neuroncore.options import Options
from neuroncore.work import LoadStationary, MicroOp, MultiplyMoving, constant
from nki_dtypes import (
    DType,
    bfloat16,
    float8_e4m3,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    tfloat32,
)

RULE = "NKI: nc_matmul"
FP8 = frozenset({float8_e4m3, float8_e4m3fn, float8_e5m2})
WIDE = frozenset({float32, tfloat32})
INPUTS = FP8 | WIDE | {bfloat16, float16}


def transposes(c: Call) -> bool:
    """Whether TensorE moves bits instead of multiplying; before gen3 the flag has no effect."""
    return c.is_transpose and c.target.generation >= 3


def nc_matmul(c: Call) -> Callable[..., None]:
    """dst (+)= stationaryᵀ · moving.

    accumulate False: overwrite; True: add; None: per PSUM location the first matmul write
    overwrites and later ones add.
    """
    return _transpose_mode(c) if transposes(c) else accumulating(c, _product(c))


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
    return inputs + (writes("dst") if transposes(c) else accumulated(c))


def _matmul_work(c: Call) -> list[MicroOp]:
    """LoadStationary and MultiplyMoving; float32 takes two of each, two cycles a column.

    Sources: Trainium/Inferentia2 guide (interval, fast load), kernel optimization tutorial (fp32).
    """
    rows = 2 if c.perf_mode is MatmulPerfMode.double_row else 1
    m, n = c.stationary.free // rows, c.moving.free // rows
    wide = {c.stationary.dtype, c.moving.dtype} & {float32}
    onezero = c.is_stationary_onezero or c.is_moving_onezero or transposes(c)
    passes, cycles = (1 if onezero else 2, 2) if wide else (1, 1)
    flops = 2 * c.stationary.partitions * rows * m * n // passes
    interval = cycles * max(n, constant("MIN_II"))
    load = LoadStationary(m, max(1, m // 4))
    multiply = MultiplyMoving(n, interval, flops)
    return [load, multiply] * passes


def _matmul_result(c: Call) -> Result:
    kind = c.stationary.dtype if transposes(c) else float32
    rows = 2 if c.perf_mode is MatmulPerfMode.double_row else 1
    return (c.stationary.free // rows, c.moving.free // rows), kind, MemorySpace.psum


# -- limits ---------------------------------------------------------------------------------------


def sizes_fit(c: Call) -> Iterable[Violation]:
    rows = 2 if c.perf_mode is MatmulPerfMode.double_row else 1
    m, n = c.stationary.free // rows, c.moving.free // rows
    limits = (
        ("stationary", m, c.target.stationary_free_max, "128"),
        ("moving", n, _moving_max(c), "512"),
    )
    for name, size, most, chunk in limits:
        if size > most:
            yield Violation(
                ShapeError, f"{name} free size {size} exceeds {most}", name,
                expected=f"at most {most} elements per partition",
                got=f"shape {getattr(c, name)!r}",
                hint=f"split the free axis into chunks of at most {chunk}",
                rule=f"{RULE}, tile limits",
            )  # fmt: skip
    if (c.dst.partitions, c.dst.free) != (m, n):
        yield Violation(
            ShapeError, f"dst is ({c.dst.partitions}, {c.dst.free}) per partition and free size",
            "dst", expected=f"(F(stationary), F(moving)) = ({m}, {n})", got=f"shape {c.dst!r}",
            rule=f"{RULE}, shapes",
        )  # fmt: skip


def _moving_max(c: Call) -> int:
    """gen4 writes up to all PSUM banks: twice as many 16-bit results, from 0.5 on."""
    doubled = c.target.generation >= 4 and c.dst.dtype is bfloat16 and c.version >= (0, 5)
    return c.target.moving_free_max * (2 if doubled else 1)


def bank_end(c: Call) -> int:
    """The byte of dst's PSUM bank at which dst ends."""
    return c.dst.bank_offset + c.dst.free_span_bytes


def result_dtypes(c: Call) -> frozenset[DType]:
    if transposes(c):
        return frozenset({c.stationary.dtype})
    return frozenset({float32, bfloat16}) if c.target.generation >= 4 else frozenset({float32})


def input_dtypes(c: Call) -> Iterable[Violation]:
    pair = {c.stationary.dtype, c.moving.dtype}
    if pair & WIDE and not pair <= WIDE:
        yield Violation(
            DTypeError, "one operand is 32-bit and the other is not", "moving",
            expected="both float32/tfloat32, or neither",
            got=f"stationary {c.stationary.dtype}, moving {c.moving.dtype}",
            rule=f"{RULE}, dtypes",
        )  # fmt: skip
    if {float8_e4m3, float8_e4m3fn} <= pair:
        yield Violation(
            DTypeError, "float8_e4m3 and float8_e4m3fn are mixed", "moving",
            expected="one of the two",
            got=f"stationary {c.stationary.dtype}, moving {c.moving.dtype}",
            rule=f"{RULE}, dtypes",
        )  # fmt: skip
    if float8_e4m3fn in pair and (c.target.generation < 4 or c.version < (0, 4)):
        yield Violation(
            DTypeError, "float8_e4m3fn needs gen4 and NKI 0.4",
            "stationary" if c.stationary.dtype is float8_e4m3fn else "moving",
            expected="float8_e4m3", got=f"float8_e4m3fn on {c.target.name}", rule=f"{RULE}, dtypes",
        )  # fmt: skip


def transpose_is_legal(c: Call) -> Iterable[Violation]:
    if not transposes(c):
        if c.is_transpose:
            what, why = f"is_transpose on {c.target.name}", "it multiplies: the mode is of gen3"
            note_without_effect(what, why, f"{RULE}, transpose mode")
        return
    if c.accumulate:
        yield Violation(
            AttributeValueError, "accumulate=True in transpose mode", "accumulate",
            expected="None or False", got="True", rule=f"{RULE}, transpose mode",
        )  # fmt: skip
    if c.moving.free != c.stationary.partitions:
        yield Violation(
            ShapeError, "moving is not a square identity matrix", "moving",
            expected=f"shape ({c.stationary.partitions}, {c.stationary.partitions})",
            got=f"shape {c.moving!r}", rule=f"{RULE}, transpose mode",
        )  # fmt: skip


def double_row_is_legal(c: Call) -> Iterable[Violation]:
    if c.perf_mode is not MatmulPerfMode.double_row:
        return
    fp8 = {c.stationary.dtype, c.moving.dtype} <= FP8
    two = all(s.rank >= 3 and s.shape[1] == 2 for s in (c.stationary, c.moving))
    if c.target.generation < 3 or not fp8 or not two or c.is_transpose or c.tile_position:
        yield Violation(
            AttributeValueError, "double_row does not fit this matmul", "perf_mode",
            expected="gen3, fp8 operands (K, 2, M) and (K, 2, N), no transpose, no tiling",
            got=f"{c.stationary!r} and {c.moving!r} on {c.target.name}",
            rule=f"{RULE}, performance mode",
        )  # fmt: skip


def is_placement(c: Call, least: int, columns: set[int]) -> bool:
    """Whether a PE tile has a legal size and begins at a multiple of it, or none is given."""
    position, size = c.tile_position, c.tile_size
    if not position and not size:
        return True
    if not len(position) == len(size) == 2 or size[1] not in columns:
        return False
    inside = all(p < 128 and p % s == 0 for p, s in zip(position, size, strict=True) if s)
    return inside and size[0] in {32, 64, 128} and size[0] >= least


def placement_is_legal(c: Call) -> Iterable[Violation]:
    position, size = c.tile_position, c.tile_size
    if not position and not size:
        return
    least = 32 if c.target.generation >= 3 else 64
    if not is_placement(c, least, {32, 64, 128}):
        sizes = "32, 64 or 128" if least == 32 else "64 or 128"
        yield Violation(
            AttributeValueError, f"tile_position {position} with tile_size {size}",
            "tile_position", expected=f"both given; sizes {sizes}; positions multiples of "
            "the size, < 128",
            got=f"{position}, {size}", rule=f"{RULE}, PE tiling",
        )  # fmt: skip
        return
    if (position[1], size[1]) != (0, 128) and c.options.column_tiling == "warn":
        warn_at_kernel(f"nc_matmul: {tiles_columns(c)}; the parameters' text allows {ROWS_ONLY}")
    if c.stationary.partitions > size[0] or c.stationary.free > size[1]:
        yield Violation(
            ShapeError, f"stationary does not fit the PE tile {size}", "stationary",
            expected=f"at most {size[0]} partitions and {size[1]} free elements",
            got=f"shape {c.stationary!r}", rule=f"{RULE}, PE tiling",
        )  # fmt: skip


ROWS_ONLY = "column 0 and 128 columns only"


def tiles_columns(c: Call) -> str:
    return f"tile_position {c.tile_position} with tile_size {c.tile_size} tiles columns"


def rows_are_tiled(c: Call) -> bool:
    """Whether tiles are of rows alone, where Options.column_tiling rejects the others."""
    if c.options.column_tiling != "error" or len(c.tile_position) != 2 or len(c.tile_size) != 2:
        return True
    return (c.tile_position[1], c.tile_size[1]) == (0, 128)


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
        "accumulate": Attr(None, optional(flag)),
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
