"""Index expressions: results of `nl.arange`, `nl.mgrid` and arithmetic on them.

An index expression is an integer for every position of a small grid of axes. The shape of an access
`t[i, j]` is the broadcast shape of its index expressions, not the tensor's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, reduce
from operator import attrgetter
from typing import Any

import numpy as np

from neuroncore.errors import AccessError
from neuroncore.memory import View
from nki_beta1.index.mask import Interval, Mask, interval
from nki_beta1.index.pattern import (
    RULE,
    Pattern,
    added,
    aligned,
    arranged,
    broadcast_shapes,
    pattern,
    scaled,
)
from nki_beta1.values.special_methods import NotAnArray


class Index(NotAnArray):
    """Integers over axes: `const + Σ steps[k] · i_k`, or any `values` where that is not enough.

    `shape` has the extent of every axis, 1 where the expression does not vary. `values`
    broadcasts to `shape`; it is worked out only when an operation is not affine. `pattern` is what
    an affine expression is apart from its constant, None for others.
    """

    __slots__ = ("_shape", "_token", "_values", "const", "pattern")
    shape = property(attrgetter("_shape"))

    def __init__(
        self,
        shape: tuple[int, ...],
        const: int,
        steps: tuple[int, ...] | None,
        values: np.ndarray | None = None,
    ) -> None:
        self.pattern: Pattern | None = None if steps is None else pattern(shape, steps)
        self._shape = shape
        self.const = const
        self._values = values
        self._token = object()

    @property
    def steps(self) -> tuple[int, ...] | None:
        return None if self.pattern is None else self.pattern.steps

    @property
    def identity(self) -> Any:
        """Equal for expressions that are known to be equal."""
        return self._token if self.pattern is None else (self.pattern, self.const)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_affine(self) -> bool:
        return self.pattern is not None

    @property
    def values(self) -> np.ndarray:
        """All values, int64, in an array of `shape`."""
        if self._values is None:
            assert self.steps is not None
            total = np.full((1,) * self.rank, self.const, np.int64)
            for axis, (extent, step) in enumerate(zip(self.shape, self.steps, strict=True)):
                if step:
                    total = total + _along(
                        axis, self.rank, np.arange(extent, dtype=np.int64) * step
                    )
            self._values = np.broadcast_to(total, self.shape)
        return self._values

    @property
    def bounds(self) -> tuple[int, int]:
        """The smallest and the largest value."""
        if self.pattern is None:
            return int(self.values.min()), int(self.values.max())
        return self.const + self.pattern.low, self.const + self.pattern.high

    # -- axes -------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Index:
        """Add axes of extent 1 with None; `:` and `...` keep the others."""
        items = key if isinstance(key, tuple) else (key,)
        axes = _placed(tuple([_mark(item) for item in items]), self.rank)
        if axes is None:
            raise AccessError(
                f"an index expression of rank {self.rank} is subscripted with {_shown(key)}",
                expected="None, : and ..., as in nl.arange(128)[:, None]",
                rule=RULE,
            )
        return self._with_axes(axes)

    def aligned(self, lead: int, trail: int) -> Index:
        """The same with `lead` axes of extent 1 before and `trail` after."""
        if not lead and not trail:
            return self
        if self.pattern is not None:
            rank = lead + len(self.shape) + trail
            return affine(aligned(self.pattern, rank, trail), self.const)
        return self._with_axes((None,) * lead + tuple(range(self.rank)) + (None,) * trail)

    def without(self, lead: int) -> Index:
        """The same without its first `lead` axes, which have extent 1."""
        return self._with_axes(tuple(range(lead, self.rank)))

    def permuted(self, order: tuple[int, ...]) -> Index:
        """The same with its axes reordered."""
        if self.pattern is not None:
            return affine(arranged(self.pattern, order), self.const)
        values = self.values.transpose(order)
        return Index(values.shape, 0, None, values)

    def _with_axes(self, axes: tuple[int | None, ...]) -> Index:
        if self.pattern is not None:
            return affine(arranged(self.pattern, axes), self.const)
        shape = tuple(1 if a is None else self.shape[a] for a in axes)
        return Index(shape, 0, None, self.values.reshape(shape))

    def part(self, rect: tuple[slice, ...]) -> Index:
        """The values inside a rectangle of the shape that this expression broadcasts to."""
        own = [slice(0, 1) if n == 1 else s for n, s in zip(self.shape, rect, strict=True)]
        if self.pattern is None:
            values = self.values[tuple(own)]
            return Index(values.shape, 0, None, values)
        steps = self.pattern.steps
        const = self.const + sum(step * s.start for step, s in zip(steps, own, strict=True))
        return affine(pattern(tuple(s.stop - s.start for s in own), steps), const)

    # -- arithmetic -------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Index:
        return _combine(self, other, np.add, 1)

    def __sub__(self, other: Any) -> Index:
        return _combine(self, other, np.subtract, -1)

    def __rsub__(self, other: Any) -> Index:
        return (-self) + other

    def __neg__(self) -> Index:
        return self * -1

    def __mul__(self, other: Any) -> Index:
        factor = constant_of(other)
        if factor is None or self.pattern is None:
            return _combine(self, other, np.multiply, None)
        return affine(scaled(self.pattern, factor), self.const * factor)

    __radd__ = __add__
    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Index:
        return _combine(self, other, np.floor_divide, None)

    def __mod__(self, other: Any) -> Index:
        return _combine(self, other, np.mod, None)

    def __rfloordiv__(self, other: Any) -> Index:
        return _combine(as_index(other), self, np.floor_divide, None)

    def __rmod__(self, other: Any) -> Index:
        return _combine(as_index(other), self, np.mod, None)

    # -- predicates -------------------------------------------------------------------------------

    def __lt__(self, other: Any) -> Mask:
        return _compare(self, other, "less")

    def __le__(self, other: Any) -> Mask:
        return _compare(self, other, "less_equal")

    def __gt__(self, other: Any) -> Mask:
        return _compare(self, other, "greater")

    def __ge__(self, other: Any) -> Mask:
        return _compare(self, other, "greater_equal")

    def __eq__(self, other: object) -> Mask:  # type: ignore[override]
        return _compare(self, other, "equal")

    def __ne__(self, other: object) -> Mask:  # type: ignore[override]
        return _compare(self, other, "not_equal")

    def __bool__(self) -> bool:
        raise AccessError(
            "an index expression has no truth value",
            hint="Python control flow can't depend on index tensors; use mask=",
            rule="NKI 0.1: control flow",
        )

    def __repr__(self) -> str:
        if self.steps is None:
            return f"<index expression of shape {self.shape}>"
        terms = [f"{s}*i{k}" for k, s in enumerate(self.steps) if s]
        return f"<index {' + '.join([str(self.const), *terms])} of shape {self.shape}>"


def affine(of: Pattern, const: int) -> Index:
    """const + `of`: `Index(...)` without a look-up of the pattern."""
    index = _new(Index)
    index.pattern, index._shape, index.const, index._values = of, of.shape, const, None
    return index


_new = Index.__new__


_ALL = slice(None)


def _mark(item: Any) -> str | None:
    """A subscript of an index expression as a hashable mark; "?" for an illegal one."""
    if item is None:
        return None
    return ":" if isinstance(item, slice) and item == _ALL else "..." if item is Ellipsis else "?"


def _shown(key: Any) -> str:
    items = key if isinstance(key, tuple) else (key,)
    is_array = any(isinstance(item, np.ndarray) for item in items)
    return "a NumPy array" if is_array else repr(key).partition("\n")[0][:80]


@lru_cache(maxsize=1024)
def _placed(marks: tuple[str | None, ...], rank: int) -> tuple[int | None, ...] | None:
    """The axis at each position, None for a new one; None for marks that do not fit `rank`."""
    kept, dots = marks.count(":"), marks.count("...")
    if "?" in marks or kept > rank or dots > 1:
        return None
    at = marks.index("...") if dots else len(marks)
    order = [*marks[:at], *[":"] * (rank - kept), *marks[at + 1 :]]
    axes = iter(range(rank))
    return tuple([None if mark is None else next(axes) for mark in order])


def _along(axis: int, rank: int, values: np.ndarray) -> np.ndarray:
    return values.reshape((1,) * axis + (-1,) + (1,) * (rank - axis - 1))


def constant_of(value: Any) -> int | None:
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    return None


def as_index(value: Any, rank: int = 0) -> Index:
    """An int as an expression that does not vary."""
    found = constant_of(value)
    if found is None:
        raise AccessError(
            f"an index expression is combined with a {type(value).__name__}",
            expected="ints and other index expressions",
            got=repr(value)[:80],
            hint=_INSTEAD.get(type(value).__name__),
            rule=RULE,
        )
    return Index((1,) * rank, found, (0,) * rank)


_INSTEAD = {
    "Tile": "one number of a tile moves an index by + only: n[0, 0] + nl.arange(F)[None, :]",
    "float": "indices are whole numbers: divide with //, or write an int",
}
"""What to write for a value that index expressions do not take."""


def _combine(a: Index, b: Any, function: Callable[..., np.ndarray], sign: int | None) -> Index:
    """`function` of both; affine when `sign` (of the second) is given and both are."""
    is_affine = sign is not None and a.pattern is not None
    if not isinstance(b, Index):
        if sign == 1 and isinstance(b, View):
            return NotImplemented  # the tile's operator: an index that the device adds
        if is_affine and b.__class__ is int:
            return affine(a.pattern, a.const + sign * b)  # type: ignore[arg-type,operator]
        b = as_index(b, a.rank)
    if is_affine and b.pattern is not None:
        return affine(added(a.pattern, b.pattern, sign), a.const + sign * b.const)  # type: ignore
    return _of_values(a, b, function)


def _of_values(a: Index, b: Index, function: Callable[..., np.ndarray]) -> Index:
    """`function` of the values of both; the result is kept for equal expressions."""
    rank = len(broadcast_shapes(a.shape, b.shape))
    a, b = a.aligned(rank - a.rank, 0), b.aligned(rank - b.rank, 0)
    key = (function, a.identity, b.identity)
    if key not in _combined:
        if function in (np.floor_divide, np.mod) and not b.values.all():
            raise AccessError("an index expression is divided by zero", rule=RULE)
        if len(_combined) >= _COMBINED_KEPT:
            _combined.clear()
        _combined[key] = as_affine(function(a.values, b.values))
    return _combined[key]


_combined: dict[Any, Index] = {}
"""What operations that are not affine gave, by the function and the identities of its operands."""
_COMBINED_KEPT = 1 << 10


def as_affine(values: np.ndarray) -> Index:
    """Values as an affine expression where they are one, such as 64 * (i // 64) + i % 64."""
    const = int(values.flat[0])
    steps = []
    for axis, extent in enumerate(values.shape):
        at = [0] * values.ndim
        at[axis] = 1
        steps.append(int(values[tuple(at)]) - const if extent > 1 else 0)
    found = Index(values.shape, const, tuple(steps))
    return found if np.array_equal(found.values, values) else Index(values.shape, 0, None, values)


# Comparisons with 0 as sign · v + shift < 0, for integers v.
_AS_LESS = {
    "less": (1, 0),
    "less_equal": (1, -1),
    "greater": (-1, 0),
    "greater_equal": (-1, -1),
}


def _compare(a: Index, b: Any, op: str) -> Mask:
    if b is None:
        return NotImplemented
    if b.__class__ is int:
        varies, const = a.pattern, a.const - b
    else:
        difference = a - b
        varies, const = difference.pattern, difference.const
    term = _interval(varies, const, op)
    if term is None:
        term = getattr(np, op)((a - b).values, 0)
    return Mask((term,), (a, b, op))


def _interval(varies: Pattern | None, const: int, op: str) -> Interval | None:
    """Where `varies + const op 0` holds, if that is an interval of one axis (or all, or none)."""
    as_less = _AS_LESS.get(op)
    if varies is None or as_less is None:
        return None
    sign, shift = as_less
    axis, const = varies.axis, sign * const + shift
    if axis is None or axis < 0:
        ends = (const + sign * varies.low < 0, const + sign * varies.high < 0)
        return interval(varies.shape, -1, 0, int(ends[0])) if ends[0] == ends[1] else None
    step, extent = sign * varies.steps[axis], varies.shape[axis]
    if step > 0:  # const + step * i < 0
        return interval(varies.shape, axis, 0, min(max(-(const // step), 0), extent))
    return interval(varies.shape, axis, min(max(const // -step + 1, 0), extent), extent)


def total(terms: list[tuple[Index, int]]) -> Index:
    """Σ factor · index: the element offset of an access."""
    return reduce(lambda a, b: a + b, (index * factor for index, factor in terms))


def check_slice(item: slice) -> None:
    """Raise AccessError for a slice whose bounds are not compile-time ints."""
    bounds = (item.start, item.stop, item.step)
    if _BOUNDS.issuperset(map(type, bounds)) and item.step != 0:
        return
    wrong = next((b for b in bounds if not _is_bound(b)), None)
    if wrong is not None:
        raise AccessError(
            "the bounds of a slice are not compile-time ints",
            expected=_BOUNDS_EXPECTED,
            got=repr(wrong)[:80],
            hint="a number that the device computes moves an index expression: "
            "n + nl.arange(F)[None, :]",
            rule=RULE,
        )
    if item.step == 0:
        raise AccessError(
            "a slice with step 0", expected=_BOUNDS_EXPECTED, got=repr(item), rule=RULE
        )


def _is_bound(value: Any) -> bool:
    return value is None or (not isinstance(value, NotAnArray) and hasattr(value, "__index__"))


_BOUNDS_EXPECTED = "ints, as in t[0:4, nl.arange(F)[None, :]]"
_BOUNDS = {int, type(None)}
