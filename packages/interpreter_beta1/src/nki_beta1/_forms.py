"""Accesses that repeat from tile to tile: all but the constants of their indices is remembered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from neuroncore.engines import Space
from neuroncore.memory import View
from neuroncore.spec import Spec
from nki_beta1._index import Index
from nki_beta1._part import part


@dataclass(frozen=True, slots=True)
class Form:
    """An affine access without the constants of its indices: what repeats from tile to tile.

    `dims` has per dimension of the base the least and the largest constant that stay inside, and
    the stride in elements. `offset` is the element of the base at which the access starts where the
    constants are 0, `first` its partition. `steps` count bytes, as NumPy does.
    """

    shape: tuple[int, ...]
    steps: tuple[int, ...]
    dims: tuple[tuple[int, int, int], ...]
    offset: int
    first: int
    is_dense: bool
    """Whether the base is contiguous, so that its own elements can be counted."""
    is_plain: bool
    """Whether the items are index expressions over all axes, as they stand."""
    is_whole: bool
    """Whether the access has every element of the base, each in its place."""
    specs: dict[Any, Spec] = field(default_factory=dict)
    """The view's spec by what it depends on beside the form (see `_place`)."""


FORMS: dict[Any, Form] = {}
"""By the spec of the base and the patterns of the indices."""
_FORMS_KEPT = 1 << 14


def known_access(base: View, items: Sequence[Any]) -> View | None:
    """`base[items]`, if it is a view whose form is known, of index expressions and ints only."""
    key: list[Any] = [base.spec.settled]
    consts: list[int] = []
    for item in items:
        if item.__class__ is Index:
            key.append(item.pattern)
            consts.append(item.const)
        elif item.__class__ is int:
            key.append(int)
            consts.append(item)
        else:
            return None
    form = FORMS.get(tuple(key))
    if form is None:
        return None
    if base.spec.fresh and not form.is_whole:
        base.settle()
    return placed(base, consts, form)


def keep(
    signature: Any,
    base: View,
    consts: list[int],
    found: View,
    bounds: list[tuple[int, int]],
    is_plain: bool,
) -> None:
    """Remember the form of the access that gave the view `found`, of indices with these bounds."""
    strides = base.spec.strides
    dims = tuple(
        (const - low, const + size - 1 - high, stride)
        for const, (low, high), size, stride in zip(
            consts, bounds, base.shape, strides, strict=True
        )
    )
    moved = sum(c * s for c, s in zip(consts, strides, strict=True))
    if len(FORMS) >= _FORMS_KEPT:
        FORMS.clear()
    FORMS[signature] = Form(
        found.shape,
        found.array.strides,
        dims,
        found.offset - base.offset - moved,
        found.spec.start - consts[0] if base.spec.space.on_chip else base.spec.start,
        base.array.flags.c_contiguous,
        is_plain,
        (found.shape, found.strides, found.offset) == (base.shape, strides, base.offset),
    )


def placed(base: View, consts: list[int], form: Form) -> View | None:
    """The view of an access whose form is known; None where it leaves the tensor."""
    offset = form.offset
    for const, (least, most, stride) in zip(consts, form.dims):  # noqa: B905 - of equal length
        if not least <= const <= most:
            return None
        offset += const * stride
    if base.spec.fresh and form.is_whole:
        return part(base, base.array, base.spec)
    elements, kind = base.array, base.array.dtype
    if not form.is_dense:
        elements, offset = base.storage.flat.view(kind), base.offset + offset
    array = np.ndarray(form.shape, kind, elements, offset * kind.itemsize, form.steps)
    where = _place(base.spec.space, consts)
    spec = form.specs.get(where)
    if spec is None:
        view = base.derive(array, form.first + (consts[0] if base.spec.space.on_chip else 0))
        form.specs[where] = view.spec
        return view
    return part(base, array, spec)


def _place(space: Space, consts: list[int]) -> Any:
    """What decides a view's spec beside its form: nothing in HBM, the start partition in SBUF.

    In PSUM all constants do: where in its bank the view begins is part of its spec.
    """
    if space is _SBUF:
        return consts[0]
    return tuple(consts) if space is _PSUM else None


_SBUF, _PSUM = Space.sbuf, Space.psum  # looking a member up in its Enum costs 60 ns
