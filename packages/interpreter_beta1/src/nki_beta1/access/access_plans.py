"""Plans of affine accesses: all but the constants of their indices, for accesses that repeat.

Without them loads of the example kernels take 1.7 times as long (3.4 for rope_kernel).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.memory import View
from neuroncore.spec import Spec
from nki_beta1.execution.plans import remember
from nki_beta1.index.expression import Index
from nki_beta1.index.views import part


@dataclass(frozen=True, slots=True)
class AccessPlan:
    """An affine access without the constants of its indices.

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
    """The view's spec by what it depends on beside the plan (see `_place`)."""


def planned_access(base: View, items: Sequence[Any]) -> View | None:
    """`base[items]` of index expressions and ints only, if it is a view with a plan."""
    key, consts = _key(base, items)
    core: Any = base.core
    plan = core.plans.get(key)
    if plan is None:
        return None
    if base.spec.fresh and not plan.is_whole:  # otherwise it may be written as a whole
        base.initialize()
    return planned_view(base, consts, plan)


def plan_of(base: View, items: Sequence[Any]) -> AccessPlan | None:
    core: Any = base.core
    return core.plans.get(_key(base, items)[0])


def _key(base: View, items: Sequence[Any]) -> tuple[tuple[Any, ...] | None, list[int]]:
    """The key of the access's plan and the constants of its items; None for other items."""
    key: list[Any] = [base.spec.initialized]
    consts: list[int] = []
    for item in items:
        if item.__class__ is Index and item.pattern is not None:
            key.append(item.pattern)
            consts.append(item.const)
        elif item.__class__ is int:
            key.append(int)
            consts.append(item)
        else:
            return None, consts
    return tuple(key), consts


def record_access(
    base: View, items: Sequence[Any], found: View, bounds: list[tuple[int, int]], is_plain: bool
) -> None:
    """Keep the plan of the access that gave the view `found`, of indices with these bounds."""
    key, consts = _key(base, items)
    if key is None:
        return
    strides = base.spec.strides
    dims = tuple(
        (const - low, const + size - 1 - high, stride)
        for const, (low, high), size, stride in zip(
            consts, bounds, base.shape, strides, strict=True
        )
    )
    moved = sum(c * s for c, s in zip(consts, strides, strict=True))
    plan = AccessPlan(
        found.shape,
        found.array.strides,
        dims,
        found.offset - base.offset - moved,
        found.spec.start - consts[0] if base.spec.space.on_chip else base.spec.start,
        base.array.flags.c_contiguous,
        is_plain,
        (found.shape, found.strides, found.offset) == (base.shape, strides, base.offset),
    )
    core: Any = base.core
    remember(core, key, plan)


def planned_view(base: View, consts: list[int], plan: AccessPlan) -> View | None:
    """The view of an access with a plan; None where it leaves the tensor."""
    offset = plan.offset
    for const, (least, most, stride) in zip(consts, plan.dims):  # noqa: B905 - of equal length
        if not least <= const <= most:
            return None
        offset += const * stride
    if base.spec.fresh and plan.is_whole:
        return part(base, base.array, base.spec)
    elements, kind = base.array, base.array.dtype
    if not plan.is_dense:
        elements, offset = base.storage.flat.view(kind), base.offset + offset
    array = np.ndarray(plan.shape, kind, elements, offset * kind.itemsize, plan.steps)
    where = _place(base.spec.space, consts)
    spec = plan.specs.get(where)
    if spec is None:
        view = base.derive(array, plan.first + (consts[0] if base.spec.space.on_chip else 0))
        plan.specs[where] = view.spec
        return view
    return part(base, array, spec)


def _place(space: MemorySpace, consts: list[int]) -> Any:
    """The key of a view's spec in its plan: constant in HBM, the start partition in SBUF.

    In PSUM all constants do: where in its bank the view begins is part of its spec.
    """
    if space is _SBUF:
        return consts[0]
    return tuple(consts) if space is _PSUM else None


_SBUF, _PSUM = MemorySpace.sbuf, MemorySpace.psum  # looking a member up in its Enum costs 60 ns
