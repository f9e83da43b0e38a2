"""From a function of the language to an instruction: operands, mask, result."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from neuroncore.alu import AluOp
from neuroncore.enums import MemorySpace
from neuroncore.errors import AttributeValueError, ShapeError
from neuroncore.instructions import INSTRUCTIONS, Call, Instruction, MaskBehaviour
from neuroncore.instructions.reduce import reduced_axes
from neuroncore.memory import View
from neuroncore.spec import Spec, as_dtype, make_spec, row_major
from nki_beta1.access.access import Access
from nki_beta1.execution.core import Core, core_of
from nki_beta1.execution.emission import check, emit, wait
from nki_beta1.execution.operands import kind_of_number, mismatch, reject_foreign, takes
from nki_beta1.execution.pending_call import PendingCall
from nki_beta1.execution.plans import VERSION, Outcome, issue, remember, usage
from nki_beta1.execution.tensor import Tensor
from nki_beta1.index.mask import RULE as MASK_RULE
from nki_beta1.index.mask import Region, region_of


def full_spec(value: Any) -> Spec | type | None:
    """The signature of an operand before a mask cuts it."""
    if isinstance(value, View):
        return value.spec
    if isinstance(value, Access):
        spec = value.base.spec
        return make_spec(value.shape, row_major(value.shape), spec.dtype, spec.space)
    return None if value is None else type(value)


def cut(value: Any, region: Region | None) -> Any:
    """The operand inside a mask's rectangle, as a view; an access without strides is gathered."""
    if isinstance(value, Access):
        value = value.of(region)
        if isinstance(value, Access):
            value = value.within(None if region is None else region.inside).read()
        return value
    if region is None or not isinstance(value, View):
        return value
    return region.of(value)


def apply(
    name: str,
    inputs: Mapping[str, Any],
    given: Mapping[str, Any],
    *,
    over: str,
    dtype: Any = None,
    mask: Any = None,
    space: MemorySpace | None = None,
) -> Tensor:
    """The tile that instruction `name` gives for these inputs, under a mask over operand `over`."""
    core = core_of(name)
    core.flush()
    key = (name, over, dtype, space, *given.items(), *map(type, given.values()), *inputs,
           *map(_kind, inputs.values()))  # fmt: skip
    try:
        found = core.plans.get(key)
    except TypeError:  # a list among the attributes
        found = key = None
    if found is None:
        found = outcome(core, INSTRUCTIONS[name], inputs, given, over, dtype, space)
        if key is not None:
            remember(core, key, found)
    region = None if mask is None else region_of(mask, found.over)
    if region is not None:
        return _under_mask(core, found, inputs, region, over)
    return _whole(core, found, inputs)


def _whole(core: Core, found: Outcome, inputs: Mapping[str, Any]) -> Tensor:
    """The tile that an instruction gives without a mask."""
    operands = found.used.ordered(inputs)
    for i, value in enumerate(operands):
        if isinstance(value, Access):
            operands[i] = cut(value, None)
        elif isinstance(value, View) and value.core is not core:
            reject_foreign(value)
    ready = found.ready or check(core, found.used, operands, found.result)
    if ready.moving:  # the offset is resolved when it runs
        found = Outcome(found.used, found.result)
    elif any(isinstance(value, Access) for value in inputs.values()):  # another view next time
        found = replace(found, ready=ready)
    else:
        found.ready = ready
    return wait(PendingCall(core, found, operands))


def outcome(
    core: Core, record: Instruction, inputs: Mapping[str, Any], given: Mapping[str, Any],
    over: str, dtype: Any, space: MemorySpace | None,
) -> Outcome:  # fmt: skip
    """The result of the instruction for these inputs; raises KernelError for illegal kinds."""
    for field, value in inputs.items():
        kind = full_spec(value)
        if not takes(record.operands[field], kind):
            raise mismatch(record, field, value)
    used = usage(core, record, given)
    specs = {f: full_spec(inputs.get(f)) for f in record.operands}
    shape, kind, where = record.result(
        Call(record, specs, used.attrs, core.target, core.options, VERSION)
    )
    result = (
        on_chip_shape(shape), kind if dtype is None else as_dtype(dtype), space or where
    )  # fmt: skip
    core.check_fits(*result)
    return Outcome(used, result, specs[over].shape)  # type: ignore[union-attr]


def _kind(value: Any) -> Any:
    """The part of an operand in the key of an outcome."""
    if isinstance(value, View):
        return value.spec.initialized
    if isinstance(value, Access):
        return value.base.spec.initialized, value.shape
    return kind_of_number(value)


def _under_mask(
    core: Core, found: Outcome, inputs: Mapping[str, Any], region: Region, over: str
) -> Tensor:
    if region.is_empty:
        nothing = Region((slice(0, 0),) * len(found.result[0]))
        return emit(core, found.used, {}, found.result, nothing)
    masked = _MASKED[found.used.record.mask]
    parts, left = masked(core, found, inputs, region, over)
    return emit(core, found.used, parts, found.result, left)


def on_chip_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A 1-D result has one element per partition: tiles have at least two dimensions."""
    return (*shape, 1) if len(shape) == 1 else shape


# -- reductions along axes ------------------------------------------------------------------------


def reduce_axes(
    op: Any,
    x: Any,
    axis: Any,
    dtype: Any = None,
    mask: Any = None,
    keepdims: bool = False,
    *,
    name: str,
    negate: bool = False,
) -> Any:
    """`op` over free axes, which need not be the last ones: an access pattern puts them last.

    `name` is the function in the kernel.
    """
    core_of(name).flush()
    rank = len(x.shape)
    axes = _axes(axis, rank, name)
    attrs = {"op": op, "negate": negate}
    last = tuple(range(rank - len(axes), rank))
    if axes == last or not all(0 < a < rank for a in axes):
        return apply("tensor_reduce", {"data": x}, attrs | {"axis": axes, "keepdims": keepdims},
                     over="data", dtype=dtype, mask=mask)  # fmt: skip
    order = (*(d for d in range(rank) if d not in axes), *axes)
    region = region_of(mask, x.shape)
    result = apply("tensor_reduce", {"data": x.transposed(order)}, attrs | {"axis": last},
                   over="data", dtype=dtype, mask=region and region.permuted(order))  # fmt: skip
    if not keepdims:
        return result
    return result.reshape([1 if d in axes else n for d, n in enumerate(x.shape)])


def listed_axes(axis: Any) -> tuple[Any, ...]:
    """One axis or several, as a tuple."""
    return tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)


def _axes(axis: Any, rank: int, name: str) -> tuple[int, ...]:
    """The axes in order, negative ones counted from the end; raises ShapeError for duplicates."""
    numbers = map(_index, listed_axes(axis))
    axes = tuple(sorted(a + rank if a < 0 else a for a in numbers))
    if len(set(axes)) == len(axes):
        return axes
    raise ShapeError(
        f"axis names a dimension twice: {axis}",
        expected="each dimension once",
        operand="axis",
        position=1,
        instruction=f"nl.{name}",
    )


def _index(axis: Any) -> int:
    """An axis as an int; TypeError for other values, truth values included."""
    if isinstance(axis, (bool, np.bool_)):
        raise TypeError("a truth value")
    return operator.index(axis)


# -- what a mask does, by MaskBehaviour -----------------------------------------------------------

Masked = tuple[dict[str, Any], Region]


def _elementwise(
    core: Core, found: Outcome, inputs: Mapping[str, Any], region: Region, over: str
) -> Masked:
    """Elements outside the mask are not written."""
    parts = parts_of(found.used.record, inputs, region, over)
    more = len(found.result[0]) - len(region.rect)
    if more <= 0:
        return parts, region  # the same object: it remembers what it cuts
    ones, inside = [slice(0, 1)] * more, region.inside  # a 1-D access becomes a tile
    kept = None if inside is None else inside.reshape(*inside.shape, *[1] * more)
    return parts, Region((*region.rect, *ones), kept)


def parts_of(
    record: Instruction, inputs: Mapping[str, Any], region: Region, over: str
) -> dict[str, Any]:
    """The operands inside the rectangle; of those with other columns, its rows."""
    operands = record.operands
    letters = operands[over].letters
    return {
        f: cut(v, region if operands[f].letters == letters else _rows(region, v))
        for f, v in inputs.items()
    }


def _rows(region: Region, value: Any) -> Region | None:
    """The rectangle's partitions of a tensor with free axes of its own."""
    if not isinstance(value, (View, Access)):
        return None
    return Region((region.rect[0], *(slice(0, n) for n in value.shape[1:])))


def _reduction(
    core: Core, found: Outcome, inputs: Mapping[str, Any], region: Region, over: str
) -> Masked:
    """Elements outside the mask count as the identity; rows without any are not written."""
    record, attrs, shape = found.used.record, found.used.attrs, found.result[0]
    data = cut(inputs[over], region)
    if region.inside is not None:
        if attrs["op"].name == "subtract":  # a row's first element counts, whichever that is
            raise not_rectangular(record.name, region)
        data = _filled(core, data, region.inside, attrs["op"])
    call = Call(record, {over: full_spec(inputs[over])}, attrs, core.target, core.options, VERSION)
    return {over: data}, region.without(set(_AXES.get(record.name, reduced_axes)(call)), shape)


_AXES: dict[str, Callable[[Call], tuple[int, ...]]] = {"tensor_partition_reduce": lambda call: (0,)}
"""Along which axes an instruction reduces, where no attribute says it."""


def _filled(core: Core, data: View, inside: np.ndarray, op: AluOp) -> View:
    """A copy of data with the operation's identity outside the mask."""
    copy = core.allocate(data.shape, data.spec.dtype, data.spec.space)
    issue(core, usage(core, INSTRUCTIONS["tensor_copy"], {}), [copy, data], mask=inside)
    kind, identity = data.spec.dtype, np.asarray(op.identity)
    if not op.is_bitvec and not kind.is_float:  # the bits of -1 are all ones in every integer
        identity = np.clip(identity, kind.min, kind.max)
    np.copyto(copy.array, identity, where=~inside, casting="unsafe")
    core.moved(copy, at=~inside)
    return copy


def _rectangular(
    core: Core, found: Outcome, inputs: Mapping[str, Any], region: Region, over: str
) -> Masked:
    """The instruction runs on the rectangle that the mask selects."""
    record, shape = found.used.record, found.result[0]
    if region.inside is not None:
        raise not_rectangular(record.name, region)
    parts = parts_of(record, inputs, region, over)
    if record.name in _TRANSPOSES:
        first, *others, last = region.rect
        return parts, Region((last, *others, first))
    if record.operands[over].letters != record.operands[record.outputs[0]].letters:
        return parts, Region((region.rect[0], *(slice(0, n) for n in shape[1:])))
    return parts, region


_TRANSPOSES = frozenset({"dma_transpose", "nc_transpose"})
"""Instructions whose result has the first and the last axis of their operand exchanged."""


def not_rectangular(name: str, region: Region) -> ShapeError:
    return ShapeError(
        "the mask does not select a rectangle",
        expected="bounds on single axes, such as (i_p < rows) & (i_f < cols)",
        got=f"elements of {region}",
        hint="compute the whole rectangle, then choose with nisa.affine_select or nl.where",
        operand="mask",
        instruction=name,
        rule=MASK_RULE,
    )


def _rejected(
    core: Core, found: Outcome, inputs: Mapping[str, Any], region: Region, over: str
) -> Masked:
    raise AttributeValueError(
        "takes no mask", operand="mask", instruction=found.used.record.name, rule=MASK_RULE
    )


_MASKED: dict[MaskBehaviour, Callable[..., Masked]] = {
    MaskBehaviour.elementwise: _elementwise,
    MaskBehaviour.reduction: _reduction,
    MaskBehaviour.rectangular: _rectangular,
    MaskBehaviour.unsupported: _rejected,
}
