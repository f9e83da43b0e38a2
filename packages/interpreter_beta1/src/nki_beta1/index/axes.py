"""Sources of index expressions: `nl.arange`, `nl.ds` and `nl.mgrid`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from neuroncore.errors import AccessError, ShapeError, SignatureError
from nki_beta1.index.expression import Index, affine, constant_of
from nki_beta1.index.pattern import RULE, pattern
from nki_beta1.values.special_methods import NoAttributeError, NotAnArray


def arange(*args: int) -> Index:
    """Indices start, start + step, … below stop: `arange(stop)`, `arange(start, stop[, step])`."""
    if len(args) == 1 and args[0].__class__ is int:
        return _up_to(args[0])
    return _arange(args)


@lru_cache(maxsize=1024)
def _up_to(stop: int) -> Index:
    return _arange((stop,))


def _arange(args: tuple[Any, ...]) -> Index:
    if not 1 <= len(args) <= 3:
        raise SignatureError(
            f"arange takes one to three compile-time ints, not {len(args)}",
            expected="nl.arange(stop) or nl.arange(start, stop[, step])",
            rule=RULE,
        )
    numbers = range(*(_whole("arange", a) for a in args))
    _not_empty("arange", numbers)
    return affine(pattern((len(numbers),), (numbers.step,)), numbers.start)


def ds(start: int, size: int) -> slice:
    """`size` consecutive indices from `start`, for use in brackets."""
    return slice(start, start + size)


class Grid(NotAnArray):
    """The axes of `nl.mgrid[...]`: unpack it, subscript it, or use `.p`, `.x`, `.y`, `.z`, `.w`.

    Each axis varies along itself only (an open grid): the shape of an access comes from the axes
    that it uses.
    """

    __slots__ = ("_axes",)

    def __init__(self, axes: tuple[Index, ...]) -> None:
        self._axes = axes

    def __iter__(self) -> Iterator[Index]:
        return iter(self._axes)

    def __reversed__(self) -> Iterator[Index]:
        return reversed(self._axes)

    def __len__(self) -> int:
        return len(self._axes)

    def __getitem__(self, number: int) -> Index:
        if not isinstance(number, (int, np.integer, slice)):
            raise AccessError(
                f"an nl.mgrid is subscripted with a {type(number).__name__}",
                expected=f"the number of an axis, 0 to {len(self._axes) - 1}",
                got=repr(number).partition("\n")[0][:80],
                rule=RULE,
            )
        return self._axes[number]

    def __repr__(self) -> str:
        return f"<mgrid of {len(self._axes)} axes>"

    def __getattr__(self, name: str) -> Index:
        named = dict(zip("pxyzw", self._axes, strict=False))
        if name not in named:
            raise NoAttributeError(
                f"this mgrid has no axis {name!r}", expected=f"one of {', '.join(named)}", rule=RULE
            )
        return named[name]


class _MGrid:
    def __getitem__(self, key: Any) -> Grid:
        """One axis per slice, in order: partition first."""
        slices = key if isinstance(key, tuple) else (key,)
        ranges = [_range_of(s) for s in slices]
        rank = len(ranges)
        return Grid(
            tuple(
                Index((len(r),), r.start, (r.step,)).aligned(axis, rank - axis - 1)
                for axis, r in enumerate(ranges)
            )
        )


mgrid = _MGrid()


def _range_of(item: Any) -> range:
    if not isinstance(item, slice) or item.stop is None:
        raise SignatureError(
            "mgrid takes slices", expected="nl.mgrid[0:128, 0:512]", got=repr(item), rule=RULE
        )
    start = 0 if item.start is None else _whole("mgrid", item.start)
    step = 1 if item.step is None else _whole("mgrid", item.step)
    found = range(start, _whole("mgrid", item.stop), step)
    _not_empty("mgrid", found)
    return found


def _whole(what: str, value: Any) -> int:
    found = constant_of(value)
    if found is None:
        raise SignatureError(
            f"{what} takes compile-time ints", got=f"{value!r}, a {type(value).__name__}", rule=RULE
        )
    return found


def _not_empty(what: str, numbers: range) -> None:
    if not numbers:
        raise ShapeError(
            f"{what} gives no index", got=f"start {numbers.start}, stop {numbers.stop}", rule=RULE
        )


def expanded(items: tuple[Any, ...], rank: int) -> list[Any]:
    """One item per dimension: `...` spelled out, missing dimensions full."""
    dots = [n for n, i in enumerate(items) if i is Ellipsis]
    if not dots and len(items) == rank:
        return list(items)
    given = len(items) - len(dots)
    if len(dots) > 1 or given > rank:
        raise AccessError(
            f"too many indices for a tensor of rank {rank}",
            expected=f"at most {rank} indices and one ...",
            got=f"{given} indices",
            rule=RULE,
        )
    at = dots[0] if dots else len(items)
    return [*items[:at], *[slice(None)] * (rank - given), *items[at + 1 :]]
