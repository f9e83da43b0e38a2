"""tensor_tensor, tensor_copy and reciprocal.

Every tile is (P, F…); free dimensions may be split differently as long as F is equal. Arithmetic is
float32, rounded once into dst; bit operations work on raw integers and never convert.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from neuroncore.alu import AluKind, alu_op
from neuroncore.enums import ON_CHIP, Engine, MaskBehaviour, MemorySpace
from neuroncore.errors import AttributeValueError, EngineError, MemorySpaceError
from neuroncore.instructions._convert import as_engine
from neuroncore.instructions._cost import copy_rate, is_sixteen_bit_float, one_pass
from neuroncore.instructions._numerics import (
    Result,
    common_shape,
    copying,
    like,
    raw_reader,
    reader,
    rounds,
    writer,
)
from neuroncore.instructions._record import Attr, Call, Example, In, Instruction, Out
from neuroncore.instructions._rules import (
    bitvec_on_vector,
    integers_only,
    known_to_hardware,
    known_to_version,
    rule,
    same_free,
    same_partitions,
    ways,
)
from neuroncore.memory import View
from neuroncore.work import MicroOp, constant
from nki_dtypes import bfloat16, int32, promote, uint32

ENGINE = Attr(Engine.unknown, as_engine)
_EXACT = (int32, uint32)


# -- tensor_tensor --------------------------------------------------------------------------------


def _is_exact(c: Call) -> bool:
    """All operands int32/uint32 on GpSimdE: exact integer arithmetic."""
    integers = all(s.dtype in _EXACT for s in (c.dst, c.data1, c.data2))
    return integers and not c.op.is_bitvec and c.engine is Engine.gpsimd


def _tensor_tensor_engine(c: Call) -> Engine:
    if c.attrs["engine"] is not Engine.unknown:
        return c.attrs["engine"]
    if c.op.name == "power":
        return Engine.gpsimd
    specs = (c.dst, c.data1, c.data2)
    integers = all(s.dtype in _EXACT and s.space is MemorySpace.sbuf for s in specs)
    exact_by_default = c.version >= (0, 3) and not c.op.is_bitvec
    return Engine.gpsimd if integers and exact_by_default else Engine.vector


def tensor_tensor(c: Call) -> Callable[..., None]:
    """dst = op(data1, data2), element by element."""
    if c.op.is_bitvec:
        return _bitwise(c)
    if _is_exact(c):
        return _exact_integers(c)
    shape = common_shape(c.dst, c.data1, c.data2)
    first, second, op = reader(c.data1, shape), reader(c.data2, shape), c.op.function
    if not rounds(c.dst) and shape == c.dst.shape:

        def into(dst: View, data1: View, data2: View) -> None:
            op(first(data1), second(data2), out=dst.array)

        return into
    write = writer(c.dst)

    def rounded(dst: View, data1: View, data2: View) -> None:
        wide = first(data1)
        write(dst, op(wide, second(data2), out=wide if wide is not data1.array else None))

    if c.op.kind is AluKind.arithmetic and c.data1.storage != np.float32 and shape == c.data1.shape:
        return rounded  # the widened copy of data1 is ours to overwrite

    def fresh(dst: View, data1: View, data2: View) -> None:
        write(dst, op(first(data1), second(data2)).astype(np.float32, copy=False))

    return fresh


def _bitwise(c: Call) -> Callable[..., None]:
    shape = common_shape(c.dst, c.data1, c.data2)
    first, second, op = raw_reader(c.data1, shape), raw_reader(c.data2, shape), c.op.function

    def bits(dst: View, data1: View, data2: View) -> None:
        dst.array[...] = op(first(data1), second(data2)).reshape(dst.array.shape)

    return bits


def _exact_integers(c: Call) -> Callable[..., None]:
    shape = common_shape(c.dst, c.data1, c.data2)
    first, second, op = raw_reader(c.data1, shape), raw_reader(c.data2, shape), c.op.function
    info = np.iinfo(c.dst.storage)
    saturate = c.options.integer_overflow == "saturate"

    def exact(dst: View, data1: View, data2: View) -> None:
        result = op(first(data1).astype(np.int64), second(data2).astype(np.int64))
        if saturate:
            result = np.clip(result, info.min, info.max)
        dst.array[...] = result.reshape(dst.array.shape).astype(dst.array.dtype)

    return exact


def _tensor_tensor_work(c: Call) -> list[MicroOp]:
    """N with one PSUM input, or both bf16 and contiguous; 2N otherwise; half in the 16-bit mode.

    Source: NKI 0.1 API documents; 16-bit mode: Trainium2 guide, twice the throughput of the same
    instruction on gen2 (benchmarks/model library: nk_rope_3 takes N / 2).
    """
    inputs, specs = (c.data1, c.data2), (c.dst, c.data1, c.data2)
    in_psum = [s.space is MemorySpace.psum for s in inputs]
    halves = c.target.generation >= 3 and all(map(is_sixteen_bit_float, specs)) and not any(in_psum)
    per_element = 1 if sum(in_psum) == 1 or (not any(in_psum) and _is_plain(c)) else 2
    return one_pass(c, c.dst.free * per_element / (2 if halves else 1))


def _is_plain(c: Call) -> bool:
    """Whether it adds, subtracts or multiplies contiguous bfloat16 operands."""
    specs = (c.dst, c.data1, c.data2)
    plain = c.op.name in {"add", "subtract", "multiply"}
    contiguous = c.data1.free_is_contiguous and c.data2.free_is_contiguous
    return plain and contiguous and all(s.dtype is bfloat16 for s in specs)


_INTEGERS = dict.fromkeys(("dst", "data1", "data2"), "int32[4, 8] sbuf")


def _promoted(c: Call) -> Result:
    return c.data1.shape, promote(c.data1.dtype, c.data2.dtype), MemorySpace.sbuf


TENSOR_TENSOR = Instruction(
    name="tensor_tensor",
    engines=(Engine.vector, Engine.gpsimd),
    engine_of=_tensor_tensor_engine,
    operands={"dst": Out("P F", ON_CHIP), "data1": In("P F", ON_CHIP), "data2": In("P F", ON_CHIP)},
    attrs={"op": Attr(convert=alu_op), "engine": ENGINE},
    limits=[
        same_partitions("dst", "data1", "data2", data1="float32[8, 8] sbuf"),
        same_free("dst", "data1", "data2", data2="float32[4, 9] sbuf"),
        rule(
            lambda c: not (c.data1.space is MemorySpace.psum and c.data2.space is MemorySpace.psum),
            MemorySpaceError, "data2", "data1 and data2 are both in PSUM",
            expected="at most one input in PSUM", got="{c.data1!r} and {c.data2!r}",
            hint="copy one of them to SBUF with nisa.tensor_copy first", section="memories",
            data1="float32[4, 8] psum", data2="float32[4, 8] psum",
        ),
        rule(
            lambda c: not c.op.is_unary,
            AttributeValueError, "op", "{c.op.name} takes one operand",
            expected="a binary operation", section="op", op="rsqrt",
        ),
        rule(
            lambda c: c.op.name != "power" or c.engine is Engine.gpsimd,
            EngineError, "engine", "power runs on the gpsimd engine only", expected="gpsimd",
            section="engines", op="power", engine=Engine.vector,
        ),
        *ways(known_to_hardware("op", op="divide"), {"op": "abs_max"}),
        known_to_version("op", op="abs_max", target="trn3", version=(0, 3)),
        integers_only("op", "dst", "data1", "data2", op="bitwise_and"),
        bitvec_on_vector("op", **_INTEGERS, op="bitwise_or", engine=Engine.gpsimd),
    ],
    work=_tensor_tensor_work,
    run=tensor_tensor,
    result=_promoted,
    mask=MaskBehaviour.elementwise,
    gathers=("dst", "data1"),
    examples=[
        Example(
            {"dst": "float32[4, 8] sbuf", "data1": np.arange(32.0).reshape(4, 8),
             "data2": np.full((4, 8), 2.0), "op": "multiply"},
            {"dst": np.arange(32.0).reshape(4, 8) * 2},
        ),
    ],
)  # fmt: skip


# -- tensor_copy ----------------------------------------------------------------------------------


def tensor_copy(c: Call) -> Callable[..., None]:
    """dst = src: bit exact for equal dtypes, otherwise through float32."""
    return copying(c.dst, c.src)


TENSOR_COPY = Instruction(
    name="tensor_copy",
    engines=(Engine.vector, Engine.scalar, Engine.gpsimd),
    operands={"dst": Out("P F", ON_CHIP), "src": In("P F", ON_CHIP)},
    attrs={"engine": ENGINE},
    limits=[
        same_partitions("dst", "src", src="float32[8, 8] sbuf"),
        same_free("dst", "src", src="float32[4, 9] sbuf"),
        rule(
            lambda c: c.engine is not Engine.scalar or c.target.generation >= 3,
            EngineError, "engine", "the scalar engine copies from gen3 on",
            expected="vector or gpsimd", got="scalar on {c.target.name}",
            hint="use nisa.activation(op=nl.copy)", section="NKI: tensor_copy, engines",
            engine=Engine.scalar, target="trn1",
        ),
    ],
    work=lambda c: one_pass(c, c.dst.free, rate=copy_rate(c, "dst", "src")),
    run=tensor_copy,
    result=like("src"),
    mask=MaskBehaviour.elementwise,
    gathers=("dst", "src"),
    moves_bits=lambda c: c.src.dtype is c.dst.dtype,
    examples=[
        Example(
            {"dst": "bfloat16[4, 8] sbuf", "src": np.arange(32.0).reshape(4, 8)},
            {"dst": np.arange(32.0).reshape(4, 8)},
        ),
        Example(
            {"dst": "int8[1, 4] sbuf", "src": np.array([[0.5, 1.5, -2.5, 1000.0]])},
            {"dst": np.array([[0, 2, -2, 127]])},
            note="float to int rounds half to even and saturates",
        ),
    ],
)  # fmt: skip


# -- reciprocal -----------------------------------------------------------------------------------


def reciprocal(c: Call) -> Callable[..., None]:
    """dst = 1 / data."""
    shape = common_shape(c.dst, c.data)
    read = reader(c.data, shape)
    if not rounds(c.dst) and shape == c.dst.shape:

        def into(dst: View, data: View) -> None:
            np.reciprocal(read(data), out=dst.array)

        return into
    write = writer(c.dst)

    def rounded(dst: View, data: View) -> None:
        write(dst, np.reciprocal(read(data)))

    return rounded


RECIPROCAL = Instruction(
    name="reciprocal",
    engines=(Engine.vector,),
    operands={"dst": Out("P F", ON_CHIP), "data": In("P F", ON_CHIP)},
    limits=[
        same_partitions("dst", "data", data="float32[8, 8] sbuf"),
        same_free("dst", "data", data="float32[4, 9] sbuf"),
    ],
    work=lambda c: one_pass(c, constant("RECIPROCAL") * c.dst.free),
    run=reciprocal,
    result=like("data"),
    mask=MaskBehaviour.elementwise,
    examples=[
        Example(
            {"dst": "float32[1, 4] sbuf", "data": np.array([[1.0, 2.0, -4.0, 0.5]])},
            {"dst": np.array([[1.0, 0.5, -0.25, 2.0]])},
        ),
    ],
)
