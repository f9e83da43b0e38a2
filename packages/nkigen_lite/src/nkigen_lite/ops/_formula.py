"""Formulas written as formulas: Python's operators on values of a graph that is being made."""

from __future__ import annotations

from typing import Any, Protocol

from nki_dtypes import DType, bool_, int32, resolve
from nkigen_lite.tensors.spec import Shape, Spec


class GraphBuilder(Protocol):
    """Adds operations to a graph."""

    def spec(self, value: str) -> Spec:
        """The spec of a value."""
        ...

    def emit(self, op: str, *operands: str, **attrs: Any) -> str:
        """The value of a new operation."""
        ...

    def fill(self, number: Any, dtype: DType, shape: Shape = ()) -> str:
        """One number everywhere, as a value."""
        ...

    def uniform(self, value: str) -> Any:
        """The number that a constant is everywhere; None for another value."""
        ...


class Expr:
    """A value; operators make operations, numbers become constants of the same dtype."""

    __slots__ = ("match", "value")
    __hash__ = object.__hash__

    def __init__(self, match: GraphBuilder, value: str) -> None:
        self.match, self.value = match, value

    @property
    def dtype(self) -> DType:
        return self.match.spec(self.value).dtype

    @property
    def shape(self) -> Shape:
        return self.match.spec(self.value).shape

    @property
    def number(self) -> Any:
        """The value of a uniform constant; None for another value."""
        return self.match.uniform(self.value)

    def call(self, op: str, *others: Any, **attrs: Any) -> Expr:
        """An operation on this and others."""
        values = (o.value if isinstance(o, Expr) else self._constant(o) for o in others)
        return Expr(self.match, self.match.emit(op, self.value, *values, **attrs))

    def _constant(self, number: Any) -> str:
        return self.match.fill(number, self.dtype)

    def to(self, dtype: Any) -> Expr:
        """Converted as the machine converts; nothing to do in its own dtype."""
        dtype = resolve(dtype)
        return self if dtype is self.dtype else self.call("convert", dtype=dtype)

    def bits(self, dtype: Any = int32) -> Expr:
        """The same bits as another dtype."""
        return self.call("bitcast", dtype=dtype)

    def part(self, axis: int, start: int, count: int) -> Expr:
        """`count` elements along an axis; nothing to do for all of them."""
        sizes = list(self.shape)
        if sizes[axis] == count:
            return self
        starts = [0] * len(sizes)
        starts[axis], sizes[axis] = start, count
        return self.call("slice", starts=starts, sizes=sizes, steps=[1] * len(sizes))

    def __add__(self, other: Any) -> Expr:
        return self.call("add", other)

    def __sub__(self, other: Any) -> Expr:
        return self.call("subtract", other)

    def __mul__(self, other: Any) -> Expr:
        return self.call("multiply", other)

    def __rsub__(self, other: Any) -> Expr:
        return Expr(self.match, self._constant(other)) - self

    def __neg__(self) -> Expr:
        return self.call("negative")

    def __and__(self, other: Any) -> Expr:
        return self.call("logical_and" if self.dtype is bool_ else "bitwise_and", other)

    def __or__(self, other: Any) -> Expr:
        return self.call("logical_or" if self.dtype is bool_ else "bitwise_or", other)

    def __invert__(self) -> Expr:
        return self.call("logical_xor", True)

    def __eq__(self, other: Any) -> Expr:  # type: ignore[override]
        return self.call("equal", other)

    def __ne__(self, other: Any) -> Expr:  # type: ignore[override]
        return self.call("not_equal", other)

    def __lt__(self, other: Any) -> Expr:
        return self.call("less", other)

    def __gt__(self, other: Any) -> Expr:
        return self.call("greater", other)

    def __ge__(self, other: Any) -> Expr:
        return self.call("greater_equal", other)


def choose(condition: Expr, yes: Any, no: Any) -> Expr:
    """`where`: takes one of the two, never computes with the other."""
    model = yes if isinstance(yes, Expr) else no
    branches = (
        b if isinstance(b, Expr) else Expr(model.match, model.match.fill(b, model.dtype))
        for b in (yes, no)
    )
    return condition.call("where", *branches)
