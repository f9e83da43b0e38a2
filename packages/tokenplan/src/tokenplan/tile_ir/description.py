"""Kernels over tiles, described once for both targets, and the rules of an access.

A kernel runs once for each index of its grid. Inside, it loads tiles of arrays, computes with them
and stores tiles; loops have a fixed number of iterations and carry tiles. Indices count tiles and
are affine in loop and grid variables. Each statement notes the line that made it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from numbers import Real
from typing import Any, Never

from neuroncore.errors import LaunchError
from neuroncore.layout import Layout
from neuroncore.program import Affine
from neuroncore.source_location import Place
from tokenplan.tile_ir.bytecode.types import ITEM_BITS, PADDINGS

ORDERS = {"load": ("weak", "relaxed", "acquire"), "store": ("weak", "relaxed", "release"),
          "atomic": ("relaxed", "acquire", "release", "acq_rel")}  # fmt: skip
SCOPES = ("block", "device", "system")
ACCESS_HINTS = {"allow_tma": (False, True), "latency": range(1, 11)}
KERNEL_HINTS = {
    "occupancy": range(1, 33), "num_cta_in_cga": (1, 2, 4, 8, 16),
    "num_worker_warps_per_cta": (4, 8),
}  # fmt: skip
_OF_INTEGERS = ("add", "and", "or", "xor", "max", "min", "umax", "umin", "xchg")
ATOMIC_MODES = {"i32": _OF_INTEGERS, "i64": _OF_INTEGERS, "f16": ("addf",),
                "f32": ("addf", "xchg"), "f64": ("addf", "xchg")}  # fmt: skip
"""By dtype, as the public dialect documents them for atomic_rmw_tko."""
OPTIONS = ("order", "scope", "padding", "hints", "traversal")
"""Fields of `Transfer` that an access may be given."""


class DescriptionError(LaunchError):
    """The description breaks a rule of Tile IR."""


@dataclass(frozen=True, slots=True)
class Array:
    """A parameter in memory; strides, tiling and swizzle in elements.

    `alignment` and the divisors of strides are what the compiler may assume, in bytes.
    """

    name: str
    dtype: str
    layout: Layout
    alignment: int = 16
    alias_group: str | None = None
    """Arrays of one group may share bytes; arrays of different groups, or of none, do not."""

    @property
    def shape(self) -> tuple[int, ...]:
        return self.layout.shape

    @property
    def itemsize(self) -> int:
        return ITEM_BITS[self.dtype] // 8


@dataclass(frozen=True, slots=True)
class Tile:
    """The result of a statement, or a value that a loop carries."""

    id: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Transfer:
    """A load, a store or an atomic update of one tile."""

    id: str
    array: Array
    index: tuple[Affine, ...]
    tile: Tile
    """What is stored, or what the elements are before the access."""
    kind: str
    """load, store or atomic."""
    order: str = "weak"
    scope: str | None = None
    padding: str | None = None
    hints: Mapping[str, int | bool] = field(default_factory=dict)
    traversal: tuple[int, ...] | None = None
    """Elements from one tile to the next, where these are not the tile's extents."""
    mode: str | None = None
    operand: Tile | None = None
    """Of an atomic update: how the elements change, and with which tile."""
    place: Place | None = field(default=None, compare=False)

    @property
    def step(self) -> tuple[int, ...]:
        """Elements from one tile to the next, by dimension."""
        return self.traversal or self.tile.shape


@dataclass(frozen=True, slots=True)
class Compute:
    """An operation on tiles."""

    id: str
    operation: str
    inputs: tuple[Tile, ...]
    result: Tile
    attributes: Mapping[str, Any] = field(default_factory=dict)
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Repeat:
    """A loop; `carried` are (initial value, value inside, next value, result)."""

    name: str
    trips: int
    body: tuple[Statement, ...]
    carried: tuple[tuple[Tile, Tile, Tile, Tile], ...] = ()
    place: Place | None = field(default=None, compare=False)


Statement = Transfer | Compute | Repeat


@dataclass(frozen=True, slots=True)
class Described:
    """A finished description."""

    name: str
    arrays: tuple[Array, ...]
    grid: tuple[tuple[str, int], ...]
    body: tuple[Statement, ...]
    hints: Mapping[str, int]

    def transfers(self) -> Iterator[Transfer]:
        """Every load and store, in program order."""
        return (node for node in walk(self.body) if isinstance(node, Transfer))

    def ranges(self) -> dict[str, tuple[int, int]]:
        """The least and the greatest value of each variable."""
        trips = {node.name: node.trips for node in walk(self.body) if isinstance(node, Repeat)}
        return {name: (0, max(1, n) - 1) for name, n in (trips | dict(self.grid)).items()}


def walk(body: Sequence[Statement]) -> Iterator[Statement]:
    """Every statement, outer before inner."""
    for statement in body:
        yield statement
        if isinstance(statement, Repeat):
            yield from walk(statement.body)


def integers(what: str, values: Any) -> tuple[int, ...]:
    """The numbers as Python's; DescriptionError where they are not integers in a sequence."""
    try:
        return tuple(map(operator.index, values))
    except TypeError:
        raise DescriptionError(f"{what}: integers in a sequence", got=repr(values)) from None


def integer(what: str, value: Any) -> int:
    """The number as Python's; DescriptionError where it is not an integer."""
    try:
        return operator.index(value)
    except TypeError:
        raise DescriptionError(f"{what}: an integer", got=repr(value)) from None


def check_transfer(made: Transfer) -> None:
    """Raises DescriptionError for what the compiler would reject, with the name of the access."""
    _check_order(made)
    _check_tile(made)
    _check_mode(made)
    _check_padding(made)
    if not isinstance(made.hints, Mapping):
        raise DescriptionError(f"{made.id}: hints are values by name", got=repr(made.hints))
    for hint, value in made.hints.items():
        check_hint(made.id, hint, value, ACCESS_HINTS)


def _check_padding(made: Transfer) -> None:
    if made.padding not in (None, *PADDINGS):
        raise DescriptionError(f"{made.id}: unknown padding {made.padding!r}")
    if made.padding not in (None, "zero") and made.array.dtype.startswith("i"):
        raise DescriptionError(f"{made.id}: integers are padded with zero", got=made.padding)
    if made.padding and made.kind == "store":
        raise DescriptionError(
            f"{made.id}: a store has no padding", hint="it writes nothing outside of its array"
        )


def _check_order(made: Transfer) -> None:
    if made.order not in ORDERS[made.kind]:
        raise DescriptionError(
            f"{made.id}: {made.kind} cannot have order {made.order!r}",
            expected=", ".join(ORDERS[made.kind]),
        )
    if (made.order == "weak") != (made.scope is None) or made.scope not in (None, *SCOPES):
        raise DescriptionError(
            f"{made.id}: order {made.order} with scope {made.scope}",
            expected=f"no scope for weak, one of {', '.join(SCOPES)} for other orders",
        )


def _check_tile(made: Transfer) -> None:
    name, tile, rank = made.id, made.tile.shape, len(made.array.shape)
    if not len(tile) == len(made.index) == rank:
        raise DescriptionError(
            f"{name}: array {made.array.name} has {rank} dimensions",
            got=f"{len(made.index)} indices and a tile of {len(tile)}",
        )
    check_extents(name, tile)
    if made.tile.dtype != made.array.dtype:
        raise DescriptionError(
            f"{name}: array {made.array.name} contains {made.array.dtype}", got=made.tile.dtype,
            hint="compute a cast",
        )  # fmt: skip
    if len(made.step) != rank or not all(1 <= step < 2**31 for step in made.step):
        raise DescriptionError(
            f"{name}: a traversal has {rank} steps of 1 or more, less than 2^31",
            got=str(list(made.step)),
        )


def check_extents(name: str, tile: Sequence[int]) -> None:
    """Raises DescriptionError for extents that no tile has."""
    if any(n < 1 or n & n - 1 for n in tile):
        raise DescriptionError(
            f"{name}: extents of a tile are powers of two", got=str(list(tile)),
            hint="take the next power of two and padding",
        )  # fmt: skip
    if prod(tile) > 2**24:
        raise DescriptionError(f"{name}: a tile has at most 2^24 elements", got=str(list(tile)))


def _check_mode(made: Transfer) -> None:
    if made.kind != "atomic":
        return
    allowed = ATOMIC_MODES.get(made.array.dtype, ())
    if made.mode not in allowed:
        raise DescriptionError(
            f"{made.id}: {made.array.dtype} has no atomic {made.mode!r}",
            expected=", ".join(allowed) or f"arrays of {', '.join(ATOMIC_MODES)}",
        )
    if made.padding or made.hints:
        raise DescriptionError(
            f"{made.id}: atomic has neither padding nor hints", hint="they belong to views"
        )


def check_hint(name: str, hint: str, value: object, known: Mapping[str, Any]) -> None:
    if hint not in known:
        raise DescriptionError(
            f"{name}: unknown hint {hint}", expected=", ".join(known),
            hint="the compiler would ignore it without a word",
        )  # fmt: skip
    if value not in known[hint] or type(value) is not type(known[hint][0]):
        allowed = list(known[hint])
        raise DescriptionError(f"{name}: {hint} is one of {allowed}", got=repr(value))


# -- indices ---------------------------------------------------------------------------------------

_SUM = "multiply variables by integers and add"
_DIGITS = "nest loops q and r and write n*q + r for the index, q for its // n and r for its % n"
_CASES = "describe both cases, such as the first iterations and the others, as loops"
_VALUE = "load the values of an array that contains them"
_XOR = "give the array a layout with a swizzle"


class Index(Affine):
    """A variable of the grid or a loop, or a sum; other operations are rejected by name.

    >>> k = Index.variable("k")
    >>> print(63 - k, (4 * k + 7) // 4, (4 * k + 7) % 4, k < k + 1)
    -k + 63 k + 1 3 True
    """

    __slots__ = ()
    __array_ufunc__ = None

    def __add__(self, other: int | Affine) -> Index:
        return _index(Affine.__add__(self, self._operand("+", other)))

    __radd__ = __add__

    def __sub__(self, other: int | Affine) -> Index:
        return self + self._operand("-", other) * -1

    def __rsub__(self, other: int | Affine) -> Index:
        return self * -1 + other

    def __pos__(self) -> Index:
        return self

    def __mul__(self, factor: int | Affine) -> Index:
        number = self._operand("*", factor)
        if number.terms:
            self._reject("*", _SUM)
        return _index(Affine.__mul__(self, number.constant))

    __rmul__ = __mul__

    def __floordiv__(self, divisor: int) -> Index:
        return divmod(self, divisor)[0]

    def __mod__(self, divisor: int) -> Index:
        return divmod(self, divisor)[1]

    def __divmod__(self, divisor: int) -> tuple[Index, Index]:
        """Quotient and remainder, where the divisor divides the factors of all variables."""
        number = self._operand("//", divisor)
        n = number.constant
        if number.terms or not n or any(factor % n for _, factor in self.terms):
            self._reject("// or %", _DIGITS)
        terms = tuple((name, factor // n) for name, factor in self.terms)
        return Index(self.constant // n, terms), Index(self.constant % n)

    def __index__(self) -> int:
        if self.terms:
            self._reject("int()", "only the running kernel has its value")
        return self.constant

    def __bool__(self) -> bool:
        return self != 0

    def _operand(self, sign: str, other: Any) -> Affine:
        if isinstance(other, Affine):
            return other
        try:
            return Affine(operator.index(other))
        except TypeError:
            return self._reject(f"{sign} {other!r}", _SUM)

    def _reject(self, operation: str, cure: str) -> Never:
        raise DescriptionError(
            f"{operation} of the index {self}: an index is a sum of variables times integers",
            hint=cure,
        )


def _index(found: Affine) -> Index:
    return Index(found.constant, found.terms)


def _comparison(name: str, sign: str) -> Callable[[Index, Any], bool]:
    """It has a result where this is the same for all values of the variables."""

    def compare(index: Index, other: Any) -> bool:
        if name in ("eq", "ne") and not isinstance(other, Affine | Real):
            return NotImplemented
        number: Any = other
        difference = Index.__sub__(index, number)
        if difference.terms:
            index._reject(f"{sign} {other}", _CASES)
        return bool(getattr(operator, name)(difference.constant, 0))

    return compare


def _rejection(sign: str, cure: str) -> Callable[..., Never]:
    return lambda index, *others: index._reject(sign, cure)


_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_REJECTED = {
    "/": ("truediv rtruediv", _DIGITS), "&": ("and rand", _DIGITS), "^": ("xor rxor", _XOR),
    ">>": ("rshift rrshift", _DIGITS), "// or %": ("rfloordiv rmod rdivmod", _SUM),
    "<<": ("lshift rlshift", _SUM), "|": ("or ror", _SUM), "**": ("pow rpow", _SUM),
    "@": ("matmul rmatmul", _SUM), "~": ("invert", _SUM), "abs()": ("abs", _CASES),
    "float()": ("float", _VALUE), "round()": ("round trunc floor ceil", _SUM),
}  # fmt: skip
"""By operation: its methods, and what to write instead."""

for _name, _sign in _COMPARISONS.items():
    setattr(Index, f"__{_name}__", _comparison(_name, _sign))
for _sign, (_names, _cure) in _REJECTED.items():
    for _name in _names.split():
        setattr(Index, f"__{_name}__", _rejection(_sign, _cure))
