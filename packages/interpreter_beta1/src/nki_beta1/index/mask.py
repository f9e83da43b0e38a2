"""Masks: predicates over index expressions, and the part of a tile that they select."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from neuroncore.errors import ShapeError, SignatureError
from neuroncore.memory import View
from neuroncore.spec import Spec
from nki_beta1.index.pattern import KEPT
from nki_beta1.index.views import part
from nki_beta1.values.special_methods import NotAnArray

RULE = "NKI 0.1: masking"


@dataclass(slots=True, eq=False)
class Interval:
    """A predicate that holds for start <= i < stop on one of its index axes.

    With axis -1 it does not depend on the index: it holds everywhere (stop 1) or nowhere (stop 0).
    Equal ones are the same object (`interval`).
    """

    shape: tuple[int, ...]
    axis: int
    start: int
    stop: int

    def dense(self) -> np.ndarray:
        """As an array that broadcasts over the index axes."""
        found = np.zeros(self.shape, np.bool_)
        if self.axis < 0:
            found[...] = self.stop > self.start
        else:
            found[(slice(None),) * self.axis + (slice(self.start, self.stop),)] = True
        return found


interval = lru_cache(maxsize=KEPT)(Interval)

Term = Interval | np.ndarray


def _dense(term: Term) -> np.ndarray:
    return term.dense() if isinstance(term, Interval) else term


class Mask(NotAnArray):
    """A conjunction of predicates: intervals, and boolean arrays that broadcast over the axes.

    `compared` is (left, right, operation) for a mask of a single comparison, else None.
    """

    __slots__ = ("compared", "terms")

    def __init__(self, terms: tuple[Term, ...], compared: Any = None) -> None:
        self.terms = terms
        self.compared = compared

    @property
    def comparison(self) -> Any:
        """(left - right, operation) of a single comparison, for affine_select; or None."""
        if self.compared is None:
            return None
        left, right, op = self.compared
        return left - right, op

    def __and__(self, other: Any) -> Mask:
        return Mask((*self.terms, *as_mask(other).terms))

    def __or__(self, other: Any) -> Mask:
        return Mask((self.dense() | as_mask(other).dense(),))

    def __xor__(self, other: Any) -> Mask:
        return Mask((self.dense() ^ as_mask(other).dense(),))

    def __invert__(self) -> Mask:
        return Mask((~self.dense(),))

    __rand__ = __and__
    __ror__ = __or__
    __rxor__ = __xor__

    def dense(self) -> np.ndarray:
        """All predicates as one array."""
        found = _dense(self.terms[0])
        for term in self.terms[1:]:
            found = _meet(found, _dense(term))
        return found

    def __repr__(self) -> str:
        if self.compared is None:
            return f"<mask over index axes {self.dense().shape}>"
        left, right, op = self.compared
        return f"<mask {left!r} {op} {right!r}>"

    def __bool__(self) -> bool:
        raise ShapeError(
            "a mask has no truth value",
            hint="combine masks with & and |, and pass them as mask=",
            rule=RULE,
        )


def _meet(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    try:
        return a & b
    except ValueError:
        raise ShapeError(
            "masks over different index axes are combined",
            got=f"{a.shape} and {b.shape}",
            rule=RULE,
        ) from None


def as_mask(value: Any) -> Mask:
    """A mask, also from a plain truth value (a predicate on loop variables)."""
    if isinstance(value, Mask):
        return value
    if isinstance(value, (bool, np.bool_)):
        return Mask((np.asarray(bool(value)),))
    raise SignatureError(
        f"mask is a {type(value).__name__}",
        expected="a comparison of index expressions, such as (i * 128 + ip < rows)",
        got=repr(value)[:80],
        operand="mask",
        rule=RULE,
    )


_ALL = slice(None)


class Region:
    """The part of a tile that a mask selects: a rectangle, and which of its elements.

    `inside` is None where the mask is the whole rectangle. An empty region has an empty slice.
    """

    __slots__ = ("_parts", "inside", "is_empty", "rect", "shape")

    def __init__(self, rect: tuple[slice, ...], inside: np.ndarray | None = None) -> None:
        self.rect = rect
        self.inside = inside
        self.shape: tuple[int, ...] = tuple(_extents(rect))
        self.is_empty = min(self.shape) <= 0
        self._parts: dict[Spec, tuple[tuple[slice, ...], Spec]] = {}

    def of(self, view: Any) -> View:
        """The rectangle of a tile; axes of extent 1 broadcast and stay."""
        view.detach()
        known = self._parts.get(view.spec)
        if known is None:
            rect = self.within(view.shape)
            found = view[rect]
            self._parts[view.spec] = rect, found.spec
            return found
        return part(view, view.array[known[0]], known[1])

    def within(self, shape: tuple[int, ...]) -> tuple[slice, ...]:
        """The rectangle of an operand of `shape`, of which axes of extent 1 stay."""
        rect = self.rect
        if len(shape) != len(rect):  # one value per partition against a tile of higher rank
            rect = (rect[0],) + (slice(0, 1),) * (len(shape) - 1)
        if 1 in shape:
            rect = tuple([_ALL if n == 1 else s for n, s in zip(shape, rect, strict=True)])
        return rect

    def without(self, axes: set[int], shape: tuple[int, ...]) -> Region:
        """The region of a result of `shape` after a reduction over `axes`."""
        inside = self.inside
        if len(shape) == len(self.rect):
            rect = tuple(slice(0, 1) if d in axes else s for d, s in enumerate(self.rect))
            kept = None if inside is None else np.any(inside, axis=tuple(axes), keepdims=True)
        else:
            left = [s for d, s in enumerate(self.rect) if d not in axes]
            rect = (*left, *[slice(0, 1)] * (len(shape) - len(left)))
            kept = None if inside is None else np.any(inside, axis=tuple(axes))
        if kept is not None:
            kept = np.reshape(kept, _extents(rect))
        return Region(rect, None if kept is None or kept.all() else kept)

    def over(self, own: tuple[int, ...], shape: tuple[int, ...]) -> Region:
        """The region of a tensor of `shape` to which a tile of shape `own` is assigned.

        Axes of extent 1 are dropped, inserted or repeated; a tile of lower rank gets axes of extent
        1 after its own.
        """
        if own == shape:
            return self
        if [n for n in own if n > 1] == [n for n in shape if n > 1]:
            return self._reshaped(own, shape)
        return self._repeated(own, shape)

    def _reshaped(self, own: tuple[int, ...], shape: tuple[int, ...]) -> Region:
        """Of a tensor that differs in axes of extent 1 only."""
        parts = iter([s for s, n in zip(self.rect, own, strict=True) if n > 1])
        rect = tuple([next(parts) if n > 1 else slice(0, 1) for n in shape])
        if self.inside is None:
            return Region(rect)
        return Region(rect, np.broadcast_to(self.inside, self.shape).reshape(_extents(rect)))

    def _repeated(self, own: tuple[int, ...], shape: tuple[int, ...]) -> Region:
        """Of a tensor in which axes of extent 1 are repeated."""
        longer = (*own, *[1] * (len(shape) - len(own)))
        padded = [*self.rect, *[slice(0, 1)] * (len(shape) - len(self.rect))]
        axes = zip(padded, longer, shape, strict=True)
        rect = tuple([slice(0, n) if m == 1 else s for s, m, n in axes])
        if self.inside is None:
            return Region(rect)
        inside = np.broadcast_to(self.inside, self.shape).reshape(_extents(padded))
        return Region(rect, np.broadcast_to(inside, _extents(rect)))

    def permuted(self, order: tuple[int, ...]) -> Region:
        """The region of a tile whose axes are reordered."""
        inside = None if self.inside is None else self.inside.transpose(order)
        return Region(tuple(self.rect[d] for d in order), inside)

    def __str__(self) -> str:
        box = ", ".join(f"{s.start}:{s.stop}" for s in self.rect)
        return f"[{box}]" + ("" if self.inside is None else " in part")


def _extents(rect: Iterable[slice]) -> list[int]:
    return [s.stop - s.start for s in rect]


def region_of(mask: Any, shape: tuple[int, ...]) -> Region | None:
    """The region of a tile of `shape` that `mask` selects; None for everything.

    Raises ShapeError for a mask over other index axes than the tile's.
    """
    if mask is None or mask is True or isinstance(mask, Region):
        return mask if isinstance(mask, Region) else None
    terms = mask.terms if mask.__class__ is Mask else as_mask(mask).terms
    try:
        return _selected_by_intervals(shape, terms)
    except TypeError:  # arrays among them have no hash
        return _selected(shape, terms)


def _selected(shape: tuple[int, ...], terms: tuple[Term, ...]) -> Region | None:
    starts, stops = [0] * len(shape), list(shape)
    scattered = []
    for term in terms:
        if term.__class__ is Interval:
            _narrow(term, shape, starts, stops)  # type: ignore[arg-type]
            continue
        term = _fitted(term, shape)  # type: ignore[arg-type]
        box = _box(term, shape)
        starts = [max(a, b) for a, (b, _) in zip(starts, box, strict=True)]
        stops = [min(a, b) for a, (_, b) in zip(stops, box, strict=True)]
        if not _fills(term, box, shape):
            scattered.append(term)
    if not scattered and not any(starts) and tuple(stops) == shape:
        return None
    slices = tuple([slice(a, max(a, b)) for a, b in zip(starts, stops, strict=True)])
    return Region(slices, _inside(scattered, slices, shape))


_selected_by_intervals = lru_cache(maxsize=KEPT)(_selected)


def _narrow(term: Interval, shape: tuple[int, ...], starts: list[int], stops: list[int]) -> None:
    """Cut a rectangle down to an interval."""
    if term.shape != shape:
        _check_axes(term.shape, shape)
    axis = term.axis
    if axis < 0:
        if term.stop <= term.start:
            stops[0] = 0
        return
    starts[axis] = max(starts[axis], term.start)
    stops[axis] = min(stops[axis], term.stop)


def _inside(
    terms: list[np.ndarray], rect: tuple[slice, ...], shape: tuple[int, ...]
) -> np.ndarray | None:
    if not terms or any(s.start >= s.stop for s in rect):
        return None
    found = np.ones(_extents(rect), np.bool_)
    for term in terms:
        found &= np.broadcast_to(term, shape)[rect]
    return None if found.all() else found


def _fitted(term: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if term.ndim == 0:
        return term.reshape((1,) * len(shape))
    _check_axes(term.shape, shape)
    return term


def _check_axes(term: tuple[int, ...], shape: tuple[int, ...]) -> None:
    if len(term) != len(shape) or any(m not in (1, n) for m, n in zip(term, shape, strict=True)):
        raise ShapeError(
            f"a mask over index axes {term} does not fit a tile of shape {shape}",
            expected="the index axes of the tile, or extent 1",
            operand="mask",
            hint="build the mask from the same index expressions as the access",
            rule=RULE,
        )


def _box(term: np.ndarray, shape: tuple[int, ...]) -> list[tuple[int, int]]:
    """The smallest rectangle around the true elements; axes on which it does not vary are full."""
    box = []
    for axis, (own, extent) in enumerate(zip(term.shape, shape, strict=True)):
        if own == 1:
            box.append((0, extent if term.any() else 0))
            continue
        others = tuple(a for a in range(term.ndim) if a != axis)
        hits = np.flatnonzero(term.any(axis=others))
        box.append((int(hits[0]), int(hits[-1]) + 1) if hits.size else (0, 0))
    return box


def _fills(term: np.ndarray, box: list[tuple[int, int]], shape: tuple[int, ...]) -> bool:
    counts = [min(m, b - a) if m == 1 else b - a for (a, b), m in zip(box, term.shape, strict=True)]
    return int(np.count_nonzero(term)) == prod(counts)
