"""What instructions with one value per partition share: reading it, computing with it, limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from neuroncore.alu import AluOp
from neuroncore.enums import Engine, MemorySpace
from neuroncore.errors import (
    AttributeValueError,
    EngineError,
    MemorySpaceError,
    ShapeError,
    Violation,
)
from neuroncore.instructions._limits import rule
from neuroncore.instructions._numerics import reader
from neuroncore.instructions._record import Call, Limit
from neuroncore.instructions._shapes import per_partition
from neuroncore.spec import Spec
from nki_dtypes import ALL, float32

FLOAT32 = frozenset({float32})
FLOATS = frozenset(d for d in ALL if d.is_float and not d.is_packed)

Stage = Callable[[np.ndarray, Any, np.ndarray], np.ndarray]
"""stage(x, y, out): one operation on float32, into the float32 array `out`."""


def stage(op: AluOp, reverse: bool = False) -> Stage:
    """`op` as a stage: op(x, y), or op(y, x) when reversed; unary operations ignore y."""
    function = op.function
    if op.is_unary:
        return lambda x, y, out: function(x, out=out)
    if reverse:
        return lambda x, y, out: function(y, x, out=out)
    by_name = function in (np.maximum, np.minimum)  # NumPy deprecates their third by position
    if isinstance(function, np.ufunc) and not by_name:  # `out` by position costs less
        return function
    return lambda x, y, out: function(x, y, out=out)


def lane_value(given: Spec | type | None, shape: tuple[int, ...]) -> Callable[[Any], Any]:
    """How an operand that is a number or a (P, 1) tile becomes float32 against a tile of `shape`.

    None stays None.
    """
    if given is None:
        return lambda nothing: None
    if isinstance(given, Spec):
        return reader(given, per_partition(shape))
    return np.float32


def one_per_partition(data: str, *names: str, **breaks: Any) -> Limit:
    """Every named operand that is a tile is (P, 1), with the partitions of `data`."""

    def check(c: Call) -> Iterable[Violation]:
        rows = getattr(c, data).partitions
        for name in names:
            spec = c.tiles.get(name)
            if spec is not None and (spec.free, spec.partitions) != (1, rows):
                yield Violation(
                    ShapeError, f"{name} is not one value per partition", name,
                    expected=f"shape ({rows}, 1)", got=f"shape {spec!r}",
                    rule=f"NKI: {c.record.name}, shapes",
                )  # fmt: skip

    return Limit(check, breaks)


def not_both_in_psum(first: str, second: str, **breaks: Any) -> Limit:
    """Two-input vector instructions read at most one operand from PSUM."""

    def in_psum(c: Call, name: str) -> bool:
        return name in c.tiles and c.tiles[name].space is MemorySpace.psum

    return rule(
        lambda c: not (in_psum(c, first) and in_psum(c, second)),
        lambda c: _both_in_psum(c, first, second),
        **breaks,
    )


def _both_in_psum(c: Call, first: str, second: str) -> Violation:
    return Violation(
        MemorySpaceError, f"{first} and {second} are both in PSUM", second,
        expected="at most one input in PSUM", got=f"{c.tiles[first]!r} and {c.tiles[second]!r}",
        hint="copy one of them to SBUF with nisa.tensor_copy first",
        rule=f"NKI: {c.record.name}, memories",
    )  # fmt: skip


def arithmetic(attr: str, binary: bool = False, **breaks: Any) -> Limit:
    """The operation computes in float32: no bit operations, and with `binary` two operands."""
    return rule(
        lambda c: not getattr(c, attr).is_bitvec and not (binary and getattr(c, attr).is_unary),
        lambda c: Violation(
            AttributeValueError, f"{getattr(c, attr).name} is not an arithmetic operation here",
            attr, expected="a binary arithmetic operation" if binary else "an arithmetic operation",
            got=getattr(c, attr).name, rule=f"NKI: {c.record.name}, {attr}",
        ),
        **breaks,
    )  # fmt: skip


NOT_ON_VECTOR = {"power": "gpsimd", "rsqrt": "gpsimd or scalar"}
"""Operations that VectorE has not, and who has them [NKI: supported math operators, engines]."""


def on_vector(attr: str, **breaks: Any) -> Limit:
    """VectorE has neither power nor rsqrt."""
    return rule(
        lambda c: c.engine is not Engine.vector or name_of(c, attr) not in NOT_ON_VECTOR,
        lambda c: Violation(
            EngineError, f"the vector engine does not do {name_of(c, attr)}", attr,
            expected="an operation of the vector engine",
            got=f"{name_of(c, attr)}, on {NOT_ON_VECTOR[getattr(c, attr).name]} only",
            rule="NKI: supported math operators, engines",
        ),
        **breaks,
    )  # fmt: skip


def name_of(c: Call, attr: str) -> str | None:
    """The name of an operation that may be left out."""
    op = getattr(c, attr)
    return None if op is None else op.name


def one_of(attr: str, *names: str, **breaks: Any) -> Limit:
    """The operation or command is one of `names`."""
    return rule(
        lambda c: getattr(c, attr).name in names,
        lambda c: Violation(
            AttributeValueError, f"{attr} {getattr(c, attr).name}", attr,
            expected=" or ".join(names), got=getattr(c, attr).name,
            rule=f"NKI: {c.record.name}, {attr}",
        ),
        **breaks,
    )  # fmt: skip


def scalar_stage(c: Call, shape: tuple[int, ...]) -> Stage:
    """op0(x, operand0) into `out`; a unary operation takes None or 0."""
    compute, value = stage(c.op0, c.reverse0), lane_value(c.operand0, shape)
    if not c.op0.is_unary:
        return lambda x, operand0, out: compute(x, value(operand0), out)

    def unary(x: np.ndarray, operand0: Any, out: np.ndarray) -> np.ndarray:
        _zero_for_unary(c, operand0)
        return compute(x, None, out)

    return unary


def _zero_for_unary(c: Call, number: Any) -> None:
    """A unary operation's operand is None or 0; raises AttributeValueError otherwise."""
    if number is None or (isinstance(number, (int, float, np.number)) and number == 0):
        return
    raise AttributeValueError(
        f"{c.op0.name} takes one operand, operand0 is given", expected="None or 0",
        got=repr(number)[:80], operand="operand0", instruction=c.record.name,
        rule=f"NKI: {c.record.name}, unary operations",
    )  # fmt: skip
