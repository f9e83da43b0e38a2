"""What nc_matmul does not take. Letters as in matmul.py: K contraction, M, N output."""

from __future__ import annotations

from collections.abc import Iterable

from neuroncore.enums import MatmulPerfMode
from neuroncore.errors import (
    AttributeValueError,
    DTypeError,
    ShapeError,
    UnsupportedError,
    Violation,
)
from neuroncore.instructions._limits import warn_at_kernel
from neuroncore.instructions._record import Call
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
    if c.is_transpose:
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
    if not c.is_transpose:
        return
    if c.target.generation < 3:
        yield Violation(
            UnsupportedError, f"{c.target.name} has no transpose mode", "is_transpose",
            expected="gen3 or later", got=c.target.name, rule=f"{RULE}, transpose mode",
        )  # fmt: skip
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


def placement_is_legal(c: Call) -> Iterable[Violation]:
    position, size = c.tile_position, c.tile_size
    if not position and not size:
        return
    least = 32 if c.target.generation >= 3 else 64
    legal = len(position) == len(size) == 2 and size[0] in {32, 64, 128} and size[0] >= least
    legal = legal and size[1] in {32, 64, 128} and all(p < 128 for p in position)
    legal = legal and all(p % s == 0 for p, s in zip(position, size, strict=True))
    if not legal:
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
