"""Abstract values: the value of an expression of a kernel that is being rewritten."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import Any

from nki_migrate.facts.differences import product_of_difference
from nki_migrate.facts.dtypes import DType
from nki_migrate.facts.symbols import Poly


class Value:
    """Base of all abstract values."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Unknown(Value):
    """Nothing is known; `text` if the expression can be repeated as it stands."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class Const(Value):
    """None, True, False, a string or a float."""

    value: Any
    text: str


@dataclass(frozen=True, slots=True)
class Ref(Value):
    """An imported thing by canonical name: a module, function, dtype or operator."""

    name: str
    text: str


# How tightly a text binds: what it may be an operand of without parentheses.
ATOM, PRODUCT, SUM, LOOSE = 3, 2, 1, 0


@dataclass(frozen=True, slots=True)
class Sym(Value):
    """A compile-time number: exact meaning and a spelling in the kernel's own words."""

    poly: Poly
    text: str
    level: int = ATOM
    is_float: bool = False
    names: frozenset[tuple[str, int]] = frozenset()  # (name, version) that the text mentions

    @staticmethod
    def number(value: int) -> Sym:
        """A literal."""
        return Sym(Poly.number(value), str(value), ATOM if value >= 0 else SUM)

    def at(self, level: int) -> str:
        """The text, in parentheses if it binds less tightly than `level`."""
        return self.text if self.level >= level else f"({self.text})"

    @property
    def value(self) -> int | None:
        """The number, if it is known."""
        return None if self.is_float else self.poly.constant

    def _joined(self, other: Sym, poly: Poly, text: str, level: int) -> Sym:
        if poly.constant is not None:
            return Sym.number(poly.constant)
        return Sym(poly, text, level, names=self.names | other.names)

    def __add__(self, other: Sym) -> Sym:
        if self.value == 0 or other.value == 0:
            return other if self.value == 0 else self
        poly = self.poly + other.poly
        if self.text.startswith("-") and self.text[1:].isidentifier():
            return self._joined(other, poly, f"{other.at(SUM)} - {self.text[1:]}", SUM)
        if other.value is not None and other.value < 0:
            return self._joined(other, poly, f"{self.at(SUM)} - {-other.value}", SUM)
        return self._joined(other, poly, f"{self.at(SUM)} + {other.at(SUM)}", SUM)

    def __sub__(self, other: Sym) -> Sym:
        if other.value == 0:
            return self
        if self.value == 0 and other.level == ATOM:
            return Sym(self.poly - other.poly, f"-{other.text}", SUM, names=other.names)
        text, level = f"{self.at(SUM)} - {other.at(PRODUCT)}", SUM
        if len(dict(self.names | other.names)) == len(self.names | other.names):
            folded = product_of_difference(self.text, other.text)
            text, level = (folded[0], ATOM if folded[1] else PRODUCT) if folded else (text, level)
        return self._joined(other, self.poly - other.poly, text, level)

    def __mul__(self, other: Sym) -> Sym:
        if self.value == 1 or other.value == 1:
            return other if self.value == 1 else self
        text = f"{self.at(PRODUCT)} * {other.at(PRODUCT)}"
        return self._joined(other, self.poly * other.poly, text, PRODUCT)


@dataclass(frozen=True, slots=True)
class Seq(Value):
    """A tuple or list of values."""

    items: tuple[Value, ...]
    text: str
    partition_marks: frozenset[int] = frozenset()  # positions written as nl.par_dim(...)


@dataclass(frozen=True, slots=True)
class Parameter(Value):
    """A name whose kind only its uses tell: a tensor or a compile-time number.

    A parameter of a kernel (a tensor would be in HBM), of a helper, or what a helper returned.
    """

    name: str
    buffer: str | None = "hbm"
    version: int = 0


@dataclass(frozen=True, slots=True)
class Returned(Value):
    """The tile that a helper returns: its sizes, the key of its dtype, and its memory.

    `is_value`: it is the result of an instruction, and no other name has it.
    """

    sizes: tuple[Poly | None, ...] | None
    dtype: str | None
    buffer: str
    is_value: bool | None
    blocks: int = 0
    folded: bool = False


@dataclass(frozen=True, slots=True)
class ShapeOf(Value):
    """`x.shape` of a parameter or a tile whose rank is not known."""

    text: str


@dataclass(frozen=True, slots=True)
class Index(Value):
    """An index tensor: offset + Σ coefficient(axis) · axis; `extents` sizes all its axes.

    `nl.arange(P)[:, None] + 3` is rank 2, extents (P, 1), terms ((0, 1),), offset 3.
    """

    extents: tuple[Sym, ...]
    terms: tuple[tuple[int, Sym], ...]
    offset: Sym


@dataclass(frozen=True, slots=True)
class Container(Value):
    """A list, tuple, dict or NumPy array of the host. Its elements may be tiles; it is not one."""

    text: str


@dataclass(frozen=True, slots=True)
class Slice(Value):
    """Python's `slice(start, start + extent)`."""

    start: Sym
    extent: Sym


@dataclass(frozen=True, slots=True)
class DeviceSlice(Value):
    """`nl.ds(start, size)` whose start is a number on the device."""

    start: Tensor
    extent: Sym


Part = Sym | Slice
"""Of an axis: so many elements from the first on, or from another one on."""


@dataclass(frozen=True, slots=True)
class Grid(Value):
    """`nl.mgrid[a:b, c:d]`: one index tensor per axis; `.p .x .y .z` name the first four."""

    axes: tuple[Index, ...]


@dataclass(frozen=True, slots=True)
class Bound:
    """offset + coefficient · axis < limit, one side of a rectangular mask; `is_lower`: >= limit."""

    axis: int
    coefficient: Sym
    offset: Sym
    limit: Sym
    extent: Sym
    is_lower: bool = False


Relation = tuple[type[ast.cmpop], Index]
"""An operator, and an affine function of index tensors that it compares with zero."""


@dataclass(frozen=True, slots=True)
class Plane:
    """A relation of several axes; `text` says what it is in the source."""

    relation: Relation
    text: str


@dataclass(frozen=True, slots=True)
class Mask(Value):
    """A conjunction of bounds, of predicates on numbers, and of planes; `opaque`: it is none.

    `relation` of a single comparison: its operator, and left minus right, compared with zero.
    """

    bounds: tuple[Bound, ...] = ()
    predicates: tuple[str, ...] = ()
    opaque: str | None = None
    relation: Relation | None = None
    planes: tuple[Plane, ...] = ()


@dataclass(frozen=True, slots=True)
class Dim:
    """How one dimension of a storage is addressed: offset + Σ coefficient · (result axis)."""

    offset: Sym
    terms: tuple[tuple[int, Sym], ...] = ()


@dataclass(eq=False, slots=True)
class Storage:
    """One allocation: a parameter in HBM, or a tensor that the kernel creates."""

    name: str
    shape: tuple[Sym, ...] | None
    dtype: DType | None
    buffer: str | None  # "hbm", "sbuf", "psum"
    loops: tuple[int, ...] = ()  # ids of the loops around the allocation
    site: int = 0  # id of the statement that creates it; the same in both passes
    blocks: int = 0  # leading dimensions that are block dimensions
    folded: bool = False  # block dimensions follow the partition dimension
    alone: bool = False  # where it is used there is one block of it, and the tile is that block
    loaded_from: Tensor | None = None  # the HBM access that fills it, for broadcasts
    valid: dict[int, Part] = field(
        default_factory=dict
    )  # axis → elements that hold data, where fewer
    flat_name: str | None = None  # the HBM tensor that `.ap` is to be called on
    filled: bool = False  # made with a value in every element
    written: bool = False  # some instruction before this one wrote to it
    given: bool = False  # its content is not a sum of products: the next product replaces it
    is_value: bool | None = None  # an instruction's result; False: a declared tensor
    like: str | None = None  # of unknown rank: tensors with the same word have the same shape
    mentions: frozenset[tuple[str, int]] | None = None  # (name, version) in a name not made here
    basis: str = ""  # the observed fact that says what it is
    is_resident: bool = False  # in HBM up to 0.1, on chip from 0.2 on: it needs no load
    suffix: str = ""  # follows the indices of the block dimensions: `.view(dtype)`
    region: object = None  # `Region`: all that an assigned result, rounded first, consists of
    gather: object = None  # `Gather` or `Shift`: a part of another tensor that a tile picks


@dataclass(frozen=True, slots=True)
class Tensor(Value):
    """A view of a storage. Without `dims` it is the whole of it.

    `shape` holds the extents of the view's axes, None if the rank is unknown.
    `written` is the subscript as the source has it, if it needs no change.
    """

    storage: Storage
    shape: tuple[Sym, ...] | None
    dims: tuple[Dim, ...] | None = None
    written: str | None = None

    @property
    def dtype(self) -> DType | None:
        """The storage's dtype."""
        return self.storage.dtype

    @property
    def buffer(self) -> str | None:
        """Where it lives."""
        return self.storage.buffer

    def with_shape(self, shape: tuple[Sym, ...]) -> Tensor:
        """The same view with another shape."""
        return replace(self, shape=shape)


def is_none(value: Value | None) -> bool:
    """Whether a value is the literal None (or absent)."""
    return value is None or (isinstance(value, Const) and value.value is None)
