"""Records of operations: operands, attributes, shape and dtype rule, meaning, kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from operator import index
from typing import Any

import numpy as np

from nki_dtypes import DType, resolve
from nki_dtypes import Kind as NumberKind
from nkigen_lite.ops._formula import Expr
from nkigen_lite.tensors.errors import GraphError
from nkigen_lite.tensors.spec import Shape, Spec

Meaning = Callable[..., np.ndarray]


class Kind(Enum):
    """How the elements of the result come from elements of the operands."""

    elementwise = "each from the elements at its own index, operands broadcast as NumPy does"
    select = "each is one of the operands' elements at its own index"
    reduce = "each from all elements along the reduced axes"
    scan = "each from the elements up to its own index along one axis"
    matmul = "sums of products over one contracted axis"
    view = "the operand's elements at other indices; nothing is computed"
    layout = "the operands' elements put together in one array"
    indirect = "elements at places that another operand contains"
    loop = "a graph executed for each step of an axis, from what the step before left"
    constant = "known before the kernel runs"
    composite = "several of the above; only `canonicalize` makes them, `decompose` ends them"


class Engine(Enum):
    """The engine that computes an operation in one instruction."""

    activation = "a function of ScalarE that means what NumPy means wherever ScalarE takes it"
    alu = "two operands in float32, rounded once"
    bits = "raw integers of one width; shifts move zeros in"
    exact = "32-bit integers on GpSimdE, of results that need no more bits"
    reduction = "all elements along axes"
    scan = "the elements up to each one"


@dataclass(frozen=True, slots=True)
class EngineOp:
    """An engine's operation; a scan begins with `start`."""

    engine: Engine
    name: str
    start: float = 0.0


@dataclass(frozen=True, slots=True)
class ErrorBound:
    """The largest error in float32, and of results rounded once to bfloat16 or float16.

    In ulps of the element, or in the unit that docs/precision.md names beside the bound.
    """

    float32: float
    narrow: float = 0.51


@dataclass(frozen=True, slots=True)
class Attr:
    """One attribute: `convert` brings it to its one form and raises ValueError or TypeError."""

    convert: Callable[[Any], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """One operation.

    `operands` are names; one that starts with `*` represents one or more. `shape(shapes, attrs)`
    and `dtype(dtypes, attrs)` give the result's or raise GraphError. `meaning(*arrays, **attrs)`
    computes on NumPy arrays: integers and bool as they are, floats all float32 or all float64; the
    result is rounded once, to the dtype of the rule, by the caller. Attributes that the meaning
    does not need (`dtype`) are named in `not_computed`.

    `numpy`: the universal functions of NumPy that are this operation. `on_bool`: the operation that
    NumPy means on bool. `is_modular`: the low 32 bits of a result depend on the operands' low 32
    bits alone. `mirrored`: the operation that means the same with its operands exchanged;
    `is_commutative`: patterns of rewrite rules match the operands in either order.

    Lowering is one of two: `engine`, the operation of an engine; or `decomposition(*operands,
    **attrs)`, a formula in other operations on float32. What depends on dtypes and numbers is a
    rewrite rule of `passes`. `error` bounds either.
    """

    name: str
    kind: Kind
    operands: tuple[str, ...]
    meaning: Meaning
    shape: Callable[[tuple[Shape, ...], Mapping[str, Any]], Shape]
    dtype: Callable[[tuple[DType, ...], Mapping[str, Any]], DType]
    attrs: Mapping[str, Attr] = field(default_factory=dict)
    not_computed: frozenset[str] = frozenset()
    numpy: tuple[str, ...] = ()
    on_bool: str | None = None
    is_modular: bool = False
    mirrored: str | None = None
    is_commutative: bool = False
    engine: EngineOp | None = None
    decomposition: Callable[..., Expr] | None = None
    error: ErrorBound | None = None

    @property
    def is_pure_move(self) -> bool:
        """Whether elements of the result are elements of operands or attributes, bit for bit."""
        return (
            self.kind in (Kind.view, Kind.layout, Kind.select)
            or self.is_indirect_move
            or "value" in self.attrs
        )

    @property
    def is_indirect_move(self) -> bool:
        return self.kind is Kind.indirect and self.error is None

    @property
    def is_variadic(self) -> bool:
        """Whether the last operand represents one or more."""
        return bool(self.operands) and self.operands[-1].startswith("*")

    def converted(self, attrs: Mapping[str, Any]) -> dict[str, Any]:
        """The attributes in their one form and in the record's order; all must be given."""
        if set(attrs) != set(self.attrs):
            raise GraphError(
                f"{self.name} has other attributes",
                expected=", ".join(self.attrs) or "none",
                got=", ".join(attrs) or "none",
            )
        return {name: self._converted(name, attr, attrs[name]) for name, attr in self.attrs.items()}

    def _converted(self, name: str, attr: Attr, given: Any) -> Any:
        try:
            return attr.convert(given)
        except (ValueError, TypeError) as wrong:
            raise GraphError(f"{self.name}: {name}={given!r}: {wrong}") from None

    def result(self, specs: tuple[Spec, ...], attrs: Mapping[str, Any]) -> Spec:
        """The result's spec. Raises GraphError for operands that do not fit the operation."""
        fits = len(specs) >= len(self.operands) if self.is_variadic else (
            len(specs) == len(self.operands)
        )  # fmt: skip
        if not fits:
            raise GraphError(
                f"{self.name} takes other operands",
                expected=", ".join(self.operands) or "none", got=f"{len(specs)}",
            )  # fmt: skip
        try:
            shape = self.shape(tuple(s.shape for s in specs), attrs)
            return Spec(shape, self.dtype(tuple(s.dtype for s in specs), attrs))
        except _ShapeMismatchError as wrong:
            got = ", ".join(map(str, specs))
            raise GraphError(f"{self.name}: {wrong}", expected=wrong.expected, got=got) from None

    def compute(self, arrays: tuple[np.ndarray, ...], attrs: Mapping[str, Any]) -> np.ndarray:
        """The meaning on arrays, not yet rounded."""
        needed = {n: v for n, v in attrs.items() if n not in self.not_computed}
        with np.errstate(all="ignore"):
            return np.asarray(self.meaning(*arrays, **needed))


class _ShapeMismatchError(Exception):
    def __init__(self, what: str, expected: str | None = None) -> None:
        super().__init__(what)
        self.expected = expected


def mismatch(what: str, expected: str | None = None) -> Exception:
    """The error of a shape or dtype rule; the record adds its name and the operands."""
    return _ShapeMismatchError(what, expected)


# -------------------------------------------------------------------- attributes


def as_int(given: Any) -> int:
    """A Python int; bool and floats are rejected."""
    if isinstance(given, (bool, np.bool_)):
        raise TypeError("an integer is needed")
    return index(given)


def as_ints(given: Any) -> tuple[int, ...]:
    """A tuple of Python ints."""
    return tuple(as_int(n) for n in given)


def as_bool(given: Any) -> bool:
    """A Python bool."""
    if not isinstance(given, (bool, np.bool_)):
        raise TypeError("True or False is needed")
    return bool(given)


def as_float(given: Any) -> float:
    """A Python float."""
    return float(given)


INT, INTS, BOOL, FLOAT = Attr(as_int), Attr(as_ints), Attr(as_bool), Attr(as_float)
DTYPE = Attr(resolve)


# ------------------------------------------------------------------------ rules


def broadcast(shapes: tuple[Shape, ...], attrs: Mapping[str, Any]) -> Shape:
    """NumPy's broadcast of all operands."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise mismatch("shapes do not broadcast") from None


def same_dtype(dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> DType:
    """All operands' one dtype."""
    if any(d is not dtypes[0] for d in dtypes):
        raise mismatch("operands differ in dtype", expected=f"all {dtypes[0]}")
    return dtypes[0]


def given_dtype(dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> DType:
    """The `dtype` attribute."""
    return attrs["dtype"]


def of_kinds(*kinds: NumberKind) -> Callable[[tuple[DType, ...], Mapping[str, Any]], DType]:
    """All operands' one dtype, which must be of one of these kinds. Nothing computes in tfloat32:
    it only names how float32 is stored."""

    def rule(dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> DType:
        dtype = same_dtype(dtypes, attrs)
        if dtype.kind not in kinds or dtype.name == "tfloat32":
            raise mismatch(f"{dtype} operands", expected=" or ".join(k.value for k in kinds))
        return dtype

    return rule


FLOAT_ONLY = (NumberKind.FLOAT,)
NUMBER = (NumberKind.FLOAT, NumberKind.INT, NumberKind.UINT)
BITS = (NumberKind.INT, NumberKind.UINT)
ANY = (*NUMBER, NumberKind.BOOL)


def elementwise(
    name: str, meaning: Meaning, kinds: tuple[NumberKind, ...], *operands: str, **fields: Any
) -> Op:
    """A record of an operation element by element, of operands of one dtype of these kinds."""
    return Op(name, Kind.elementwise, operands, meaning, broadcast, of_kinds(*kinds), **fields)


def activation(name: str, meaning: Meaning, error: ErrorBound | None = None, **fields: Any) -> Op:
    """A record of a function of floats that ScalarE has under the same name."""
    engine = EngineOp(Engine.activation, name)
    return elementwise(name, meaning, FLOAT_ONLY, "x", engine=engine, error=error, **fields)
