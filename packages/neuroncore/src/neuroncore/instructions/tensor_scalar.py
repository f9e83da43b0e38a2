"""tensor_scalar: one or two operations with a number or one value per partition.

data, dst (P, F…); operand0, operand1: a number or a (P, 1) tile, broadcast along the free axes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from neuroncore.alu import AluOp, alu_op
from neuroncore.enums import ON_CHIP, Engine, MaskBehaviour
from neuroncore.errors import AttributeValueError, DTypeError, EngineError, ShapeError, Violation
from neuroncore.instructions._convert import as_engine, flag, optional
from neuroncore.instructions._cost import copy_rate, one_pass
from neuroncore.instructions._numerics import (
    common_shape,
    like,
    per_partition,
    raw_reader,
    reader,
    rounds,
    writer,
)
from neuroncore.instructions._record import Attr, Call, Example, In, Instruction, Limit, Out
from neuroncore.instructions._rules import (
    NOT_ON_VECTOR,
    bitvec_on_vector,
    integers_only,
    known_to_hardware,
    known_to_version,
    name_of,
    on_vector,
    rule,
    same_free,
    same_partitions,
    ways,
)
from neuroncore.spec import Spec
from neuroncore.work import MicroOp
from nki_dtypes import float32

RULE = "NKI: tensor_scalar"
_OPERANDS = (("op0", "operand0"), ("op1", "operand1"))


def tensor_scalar(c: Call) -> Callable[..., Any]:
    """dst = op1(op0(data, operand0), operand1); `reverse0`/`reverse1` swap the arguments."""
    bits = c.op0.is_bitvec
    shape = common_shape(c.dst, c.data)
    read = raw_reader(c.data, shape) if bits else reader(c.data, shape)
    first = _stage(c, "op0", "operand0", "reverse0", shape)
    second = _stage(c, "op1", "operand1", "reverse1", shape) if c.op1 is not None else None
    straight = not rounds(c.dst) and not bits and shape == c.dst.shape
    write = _raw_write if bits else writer(c.dst)
    if second is None:
        if straight:
            return lambda dst, data, a, b: first(read(data), a, dst.array)
        return lambda dst, data, a, b: write(dst, first(read(data), a, None))
    if straight and not isinstance(c.operand1, Spec):

        def in_place(dst: Any, data: Any, a: Any, b: Any) -> None:
            second(first(read(data), a, dst.array), b, dst.array)

        return in_place
    if straight:
        return lambda dst, data, a, b: second(first(read(data), a, None), b, dst.array)
    return lambda dst, data, a, b: write(dst, second(first(read(data), a, None), b, None))


def _raw_write(dst: Any, values: np.ndarray) -> None:
    dst.array[...] = values.reshape(dst.array.shape)


def _stage(
    c: Call, op_name: str, operand: str, reverse: str, shape: tuple[int, ...]
) -> Callable[[np.ndarray, Any, np.ndarray | None], np.ndarray]:
    """One operation as stage(values, operand, out)."""
    op: AluOp = getattr(c, op_name)
    function = op.function
    if op.is_unary:
        return _unary(op, operand, given_number=isinstance(getattr(c, operand), type))
    value = _operand(c, getattr(c, operand), op, shape)
    narrow = not op.is_bitvec and op.kind.value in {"compare", "logical"}
    if getattr(c, reverse):
        swapped = function
        function = lambda x, y, out: swapped(y, x, out=out)  # noqa: E731

    def stage(x: np.ndarray, y: Any, out: np.ndarray | None) -> np.ndarray:
        result = function(x, value(y), out=out)
        return result.astype(np.float32) if narrow and out is None else result

    return stage


def _unary(
    op: AluOp, operand: str, given_number: bool
) -> Callable[[np.ndarray, Any, np.ndarray | None], np.ndarray]:
    """A stage whose operand may only be None or 0."""
    function = op.function

    def checked(x: np.ndarray, number: Any, out: np.ndarray | None) -> np.ndarray:
        if number != 0:
            raise AttributeValueError(
                f"{op.name} takes one operand, {operand} is {number}", expected="None or 0",
                got=repr(number), operand=operand, instruction="tensor_scalar",
                rule=f"{RULE}, unary operations",
            )  # fmt: skip
        return function(x, out=out)

    return checked if given_number else lambda x, _, out: function(x, out=out)


def _operand(
    c: Call, given: Spec | type | None, op: AluOp, shape: tuple[int, ...]
) -> Callable[[Any], Any]:
    if isinstance(given, Spec):
        if op.is_bitvec:
            return raw_reader(given, per_partition(shape))
        return reader(given, per_partition(shape))
    if op.is_bitvec:
        kind = c.data.storage.type
        return lambda number: np.asarray(_low_bits(number)).astype(kind)
    if given in (int, float):
        return lambda number: number
    return np.float32


def _low_bits(number: Any) -> Any:
    """The last 64 bits of an int that has more."""
    is_long = isinstance(number, int) and not -(2**63) <= number < 2**63
    return np.uint64(number % 2**64) if is_long else number


def _scalars_fit(c: Call) -> Iterable[Violation]:
    for op_name, name in _OPERANDS:
        spec = c.tiles.get(name)
        op = getattr(c, op_name)
        if spec is None or op is None:
            continue
        if op.is_unary:
            yield Violation(
                AttributeValueError, f"{op.name} takes one operand, {name} is a tile", name,
                expected="None or 0", got=f"shape {spec!r}", rule=f"{RULE}, unary operations",
            )  # fmt: skip
            continue
        if spec.free != 1 or spec.partitions != c.data.partitions:
            yield Violation(
                ShapeError,
                f"{name} is not one value per partition",
                name,
                expected=f"shape ({c.data.partitions}, 1)",
                got=f"shape {spec!r}",
                hint="use nisa.tensor_tensor for two tiles of the same shape",
                rule=f"{RULE}, operands",
            )
        if not op.is_bitvec and spec.dtype is not float32:
            yield Violation(
                DTypeError, f"{name} is {spec.dtype}", name, expected="float32",
                got=f"shape {spec!r}", hint="copy it to float32 with nisa.tensor_copy",
                rule=f"{RULE}, operands",
            )  # fmt: skip


def _bits_are_whole(c: Call) -> Iterable[Violation]:
    for op_name, name in _OPERANDS:
        op, given = getattr(c, op_name), getattr(c, name)
        fraction = isinstance(given, type) and issubclass(given, (float, np.floating))
        if op is not None and op.is_bitvec and not op.is_unary and fraction:
            yield Violation(
                DTypeError, f"{op.name} works on raw integer bits", name, expected="an int",
                got=given.__name__, rule=f"{RULE}, operands",
            )  # fmt: skip


def _given_together(c: Call) -> bool:
    unary = c.op1 is not None and c.op1.is_unary
    return unary or (c.op1 is None) == (c.operand1 is None)


def _scalar_engine_takes(c: Call) -> bool:
    if c.engine is not Engine.scalar:
        return True
    names = (c.op0.name, c.op1.name if c.op1 else None)
    known = {("multiply", "add"), ("multiply", None), ("add", None)}
    return c.target.generation >= 3 and names in known


def _engine(c: Call) -> Engine:
    if c.attrs["engine"] is not Engine.unknown:
        return c.attrs["engine"]
    asked = {name_of(c, "op0"), name_of(c, "op1")}
    return Engine.gpsimd if asked & NOT_ON_VECTOR.keys() else Engine.vector


def _gpsimd_takes(attr: str, **breaks: Any) -> Limit:
    """GpSimdE does here what VectorE has not: rsqrt [NKI: tensor_scalar], power [operators]."""
    return rule(
        lambda c: (
            c.engine is not Engine.gpsimd or name_of(c, attr) in {None, *NOT_ON_VECTOR}
        ),
        EngineError, attr, lambda c: f"the gpsimd engine does not do {name_of(c, attr)} here",
        expected="rsqrt or power, alone", got=lambda c: f"{c.op0.name}, {name_of(c, 'op1')}",
        hint=lambda c: _instead(c), section="engines", **breaks,
    )  # fmt: skip


def _instead(c: Call) -> str:
    if name_of(c, "op1") == "rsqrt":
        return "nisa.activation(op=nl.rsqrt) scales data, adds a bias and takes the root"
    if c.attrs["engine"] is Engine.gpsimd and c.op0.name not in NOT_ON_VECTOR:
        return "leave engine out: the vector engine does it"
    return "write two instructions: the vector engine has neither rsqrt nor power"


def _work(c: Call) -> list[MicroOp]:
    slow = 4 if c.engine is Engine.gpsimd else 1  # rsqrt, power: a quarter of the throughput
    return one_pass(c, c.dst.free * slow, rate=copy_rate(c, "dst", "data"))


_RULES: list[Limit] = [
    same_partitions("dst", "data", data="float32[8, 8] sbuf"),
    same_free("dst", "data", data="float32[4, 9] sbuf"),
    Limit(_scalars_fit, {"operand0": "float32[4, 8] sbuf"}),
    Limit(_scalars_fit, {"operand0": "bfloat16[4, 1] sbuf"}),
    Limit(_scalars_fit, {"op0": "rsqrt", "operand0": "float32[4, 1] sbuf"}),
    Limit(_bits_are_whole, {"dst": "int32[4, 8] sbuf", "data": "int32[4, 8] sbuf",
                            "op0": "bitwise_or", "operand0": 1.5, "op1": None, "operand1": None}),
    rule(
        _given_together,
        AttributeValueError, "op1", "op1 and operand1 go together", expected="both or neither",
        got="op1 {c.op1}, operand1 {c.operand1}", section=RULE, op1="add", operand1=None,
    ),
    rule(
        lambda c: (
            c.op0.is_unary or c.operand0 is not None
        ),
        AttributeValueError, "operand0", "{c.op0.name} needs operand0",
        expected="a number or a (P, 1) tile", got="None", section=RULE, operand0=None,
    ),
    rule(
        lambda c: c.op1 is None or c.op0.is_bitvec == c.op1.is_bitvec,
        AttributeValueError, "op1", "{c.op0.name} and {c.op1.name} cannot be combined",
        expected="both arithmetic or both bitvec", got="{c.op0.name}, {c.op1.name}", section=RULE,
        op1="bitwise_and", operand1=1,
    ),
    *ways(
        rule(
            _scalar_engine_takes,
            EngineError, "engine", "the scalar engine does not do {c.op0.name} then {c.op1}",
            expected="multiply then add, multiply, or add, from gen3 on",
            got="{c.op0.name}, {c.op1} on {c.target.name}", section="engines", op0="maximum",
            engine=Engine.scalar,
        ),
        {"engine": Engine.scalar, "target": "trn1"},
    ),
    on_vector("op0", op0="power", engine=Engine.vector, op1=None, operand1=None),
    on_vector("op1", op0="rsqrt", operand0=None, op1="rsqrt", operand1=0, engine=Engine.vector),
    _gpsimd_takes("op0", engine=Engine.gpsimd, op1=None, operand1=None),
    _gpsimd_takes("op1", op0="power"),
    *ways(known_to_hardware("op0", op0="square"), {"op0": "divide"}),
    *ways(
        known_to_hardware("op1", op1="mod", operand1=2.0), {"op1": "abs_max", "operand1": 2.0}
    ),
    known_to_version("op0", op0="square", operand0=None, target="trn3", version=(0, 3)),
    known_to_version("op1", op1="abs_max", operand1=2.0, target="trn3", version=(0, 3)),
    integers_only(
        "op0", "dst", "data", "operand0", "operand1", op0="bitwise_xor", operand0=1, op1=None,
        operand1=None,
    ),
    bitvec_on_vector(
        "op0", dst="int32[4, 8] sbuf", data="int32[4, 8] sbuf", op0="bitwise_xor", operand0=1,
        op1=None, operand1=None, engine=Engine.gpsimd,
    ),
]  # fmt: skip

TENSOR_SCALAR = Instruction(
    name="tensor_scalar",
    engines=(Engine.vector, Engine.scalar, Engine.gpsimd),
    engine_of=_engine,
    operands={
        "dst": Out("P F", ON_CHIP),
        "data": In("P F", ON_CHIP),
        "operand0": In("P 1", ON_CHIP, number=True, optional=True),
        "operand1": In("P 1", ON_CHIP, number=True, optional=True),
    },
    attrs={
        "op0": Attr(convert=alu_op),
        "reverse0": Attr(False, flag),
        "op1": Attr(None, optional(alu_op)),
        "reverse1": Attr(False, flag),
        "engine": Attr(Engine.unknown, as_engine),
    },
    limits=_RULES,
    work=_work,
    run=tensor_scalar,
    result=like("data"),
    mask=MaskBehaviour.elementwise,
    gathers=("dst", "data"),
    examples=[
        Example(
            {"dst": "float32[4, 8] sbuf", "data": np.arange(32.0).reshape(4, 8), "op0": "multiply",
             "operand0": 2.0, "op1": "add", "operand1": 1.0},
            {"dst": np.arange(32.0).reshape(4, 8) * 2 + 1},
        ),
        Example(
            {"dst": "float32[4, 8] sbuf", "data": np.arange(32.0).reshape(4, 8), "op0": "subtract",
             "operand0": np.arange(4.0).reshape(4, 1), "reverse0": True},
            {"dst": np.arange(4.0).reshape(4, 1) - np.arange(32.0).reshape(4, 8)},
            note="reverse0: operand0 - data, one value per partition",
        ),
        Example(
            {"dst": "float32[1, 3] sbuf", "data": np.array([[1.0, 4.0, 16.0]]), "op0": "rsqrt"},
            {"dst": np.array([[1.0, 0.5, 0.25]])},
            note="a unary operation takes no operand; rsqrt and power run on GpSimdE",
        ),
    ],
)  # fmt: skip
