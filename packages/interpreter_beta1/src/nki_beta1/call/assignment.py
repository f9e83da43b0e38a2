"""`t[i, j] = value` and `t[i, j] += value`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.errors import ShapeError, SignatureError
from neuroncore.memory import View
from nki_beta1.access.access import Access, is_same_place
from nki_beta1.call.apply import cut
from nki_beta1.call.elementwise import binary, copy
from nki_beta1.execution.accumulation import Where, is_product, note_product, start
from nki_beta1.execution.emission import run
from nki_beta1.execution.operands import without_ones
from nki_beta1.execution.pending_call import merge
from nki_beta1.execution.tensor import Tensor
from nki_beta1.index.mask import Region

RULE = "NKI 0.1: assigning to a tile"


class DestinationOperand(ABC):
    """A value that is made from the tensor it is assigned to (nl.loop_reduce)."""

    @abstractmethod
    def combined_with(self, target: View | None) -> Any:
        """The tile to be assigned to `target`."""


def assign(target: View | Access, value: Any) -> None:
    """Write `value`, a tile or a number, to `target`.

    Of a value from a masked instruction, only the selected elements are written.
    Raises ShapeError when shapes differ by more than a broadcast along free axes.
    """
    if target.__class__ is value.__class__ is target.core.view_class:  # the usual case
        _assign_tile(target, value)  # type: ignore[arg-type]
        return
    if isinstance(value, DestinationOperand):
        value = value.combined_with(target if isinstance(target, View) else cut(target, None))
    if isinstance(target, Access):
        _scatter(target, value)
    elif isinstance(value, (int, float, np.number)):
        run("memset", {"dst": target, "value": value}, {})
    elif isinstance(value, Access):
        copy_into(target, fit(cut(value, None), target.shape))
    elif isinstance(value, View):
        _assign_tile(target, value)  # type: ignore[arg-type]
    else:
        raise SignatureError(
            f"a {type(value).__name__} is assigned to a tile",
            expected="a tile or a number",
            got=repr(value).partition("\n")[0][:80],
            rule=RULE,
        )


def _assign_tile(target: View, value: Tensor) -> None:
    if is_same(target, value) or value.run_into(target):
        return
    region = value.region
    value.core.flush()
    fitting = fit(value, target.shape)
    if region is None:
        copy_into(target, fitting)
    elif not region.is_empty:
        region = region.over(value.shape, target.shape)
        part, source = region.of(target), region.of(fitting)
        if region.inside is None:
            copy_into(part, source)
        else:
            _merge_into(part, source, region.inside)


def is_same(target: View, value: Any) -> bool:
    """Whether the value is the target: `t[i] += v` assigns a result that is already written."""
    return not value.is_pending and is_same_place(value, target)


def copy_into(dst: View, src: View) -> None:
    run("tensor_copy", {"dst": dst, "src": src}, {})


def _scatter(target: Access, value: Any) -> None:
    if isinstance(value, Access) and value.is_same(target):  # t[key] += v has written it
        return
    region = _selected(value, target.shape)
    if region is None:
        whole = target.of(None)
        if isinstance(whole, View):
            assign(whole, value)
        else:
            _scatter_all(whole, value)
    elif not region.is_empty:
        part, source = target.of(region), region.of(fit(value, target.shape))
        if region.inside is None:
            assign(part, source)
        elif isinstance(part, View):
            _merge_into(part, source, region.inside)
        else:
            elements = part.read()
            _merge_into(elements, source, region.inside)
            part.write(elements)


def _merge_into(target: View, source: View, inside: np.ndarray) -> None:
    """Assign the elements that `inside` names, in the dtype and memory of the target."""
    whole = target.core.allocate(target.shape, target.spec.dtype, target.spec.space)
    copy_into(whole, source)
    merge(target, whole, inside)


def _scatter_all(target: Access, value: Any) -> None:
    spec = target.base.spec
    staged = target.core.allocate(target.shape, spec.dtype, spec.space)
    assign(staged, value)
    target.core.flush()
    staged.initialize()
    target.write(staged)


def _selected(value: Any, shape: tuple[int, ...]) -> Region | None:
    """The region of a tensor of `shape` that the mask of `value` selects."""
    region = value.region if isinstance(value, View) else None  # type: ignore[attr-defined]
    if region is None or region.is_empty:
        return region
    return region.over(value.shape, shape)


def fit(value: View, shape: tuple[int, ...]) -> View:
    """`value` in `shape`: axes of extent 1 are added or dropped, free ones repeated.

    Free axes of another rank are split or merged where the elements per partition are as many.
    A value of lower rank gets axes of extent 1 after its own.
    """
    if value.shape == shape:
        return value
    value.initialize()
    if without_ones(value.shape) == without_ones(shape):
        return value.derive(value.array.reshape(shape), value.spec.start)
    if _differs_in_rank(value, shape):
        return _in_rank(value, shape)
    if value.ndim < len(shape):
        longer = (*value.shape, *[1] * (len(shape) - value.ndim))
        value = value.derive(value.array.reshape(longer), value.spec.start)
    same_rank = value.ndim == len(shape) and value.shape[0] == shape[0]
    if same_rank and all(a in (1, b) for a, b in zip(value.shape, shape, strict=True)):
        return value.derive(np.broadcast_to(value.array, shape), value.spec.start)
    raise ShapeError(
        f"a value of shape {value.shape} does not fit {shape}",
        expected=f"shape {shape}, or free axes of extent 1",
        got=f"shape {value.spec!r}",
        rule=RULE,
    )


def _differs_in_rank(value: Any, shape: tuple[int, ...]) -> bool:
    """Whether free axes of another rank name as many elements, in one order."""
    own = value.shape
    return len(own) != len(shape) and own[0] == shape[0] and prod(own) == prod(shape)


def _fitting_rank(value: Any, shape: tuple[int, ...]) -> Any:
    """The value of an update; one of another rank with as many elements in the target's."""
    is_tile = isinstance(value, (View, Access))
    return _in_rank(value, shape) if is_tile and _differs_in_rank(value, shape) else value


def _in_rank(value: Any, shape: tuple[int, ...]) -> Any:
    """The value through free axes of another rank; a copy where its elements are not in order."""
    value.core.flush()
    view = cut(value, None)
    if not np.shares_memory(view.array.reshape(shape), view.array):
        view = copy(view)
    return view.reshape(shape)


def accumulates(target: View, value: Any) -> bool:
    """Try `target += a matmul's result` as the accumulating matmul that it is."""
    pending = value.pending_matmul() if isinstance(value, View) else None  # type: ignore[attr-defined]
    if pending is None or pending.dtype is not target.spec.dtype:
        return False
    is_whole = pending.region is None and _differs_in_rank(pending, target.shape)
    if pending.shape != target.shape and not is_whole:
        return False
    if pending.space is not target.spec.space:
        return False
    value.add_into(target)  # type: ignore[union-attr]
    return True


def add_to(target: Any, value: Any) -> Any:
    """`target += value`, in place; a product starts the sum where PSUM holds nothing."""
    whole = target
    if isinstance(target, Access) and _selected(value, target.shape) is None:
        whole = target.of(None)
    if isinstance(whole, View) and accumulates(whole, value):
        return target
    summed = None
    if target.buffer is MemorySpace.psum and isinstance(value, (View, Access)):
        summed = _summed(target, value)
    if summed is None:
        return update("add", target, value, spread=True)
    start(target.core, *summed)
    update("add", target, value, spread=True)
    note_product(*summed)
    return target


def _summed(target: View | Access, value: View | Access) -> tuple[View, Where] | None:
    """The elements to which `target += value` adds, if the value is a product."""
    core: Any = value.core
    core.flush()
    region = _selected(value, target.shape)
    if region is None:
        return _named(target) if is_product(*_named(value)) else None
    if region.is_empty:
        return None
    inside: Where = True if region.inside is None else region.inside
    if not is_product(*_named(region.of(fit(value, target.shape)), inside)):  # type: ignore[arg-type]
        return None
    part = target.of(region) if isinstance(target, Access) else region.of(target)
    return _named(part, inside)


def _named(value: View | Access, inside: Where = True) -> tuple[View, Where]:
    """The tensor of an access and which of its elements that names."""
    seen = value.of(None) if isinstance(value, Access) else value
    return (seen, inside) if isinstance(seen, View) else (seen.base, seen.named(inside))


def update(op: str, target: Any, value: Any, *, spread: bool = False) -> Any:
    """`target op= value`, in place; of a masked value, in its region."""
    region = _selected(value, target.shape)
    if region is None:
        value = _fitting_rank(value, target.shape)
    whole = target.of(None) if region is None and isinstance(target, Access) else target
    if whole is not target and isinstance(whole, View):
        _in_place(op)(whole, value)
        return target
    if region is None or isinstance(target, View):
        assign(target, binary(op, target, value, mask=region, spread=spread))
    elif not region.is_empty:
        _update_part(op, target, value, region, spread)
    return target


def _update_part(op: str, target: Access, value: View, region: Region, spread: bool) -> None:
    part, source = target.of(region), region.of(fit(value, target.shape))
    if region.inside is None:
        _in_place(op)(part, source)
        return
    elements = cut(part, None)
    whole = Region(tuple([slice(0, n) for n in part.shape]), region.inside)
    assign(elements, binary(op, elements, source, mask=whole, spread=spread))
    if isinstance(part, Access):
        part.write(elements)


def _in_place(op: str) -> Callable[[Any, Any], Any]:
    return add_to if op == "add" else partial(update, op)
