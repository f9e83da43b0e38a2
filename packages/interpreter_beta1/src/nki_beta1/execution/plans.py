"""Plans of instructions: attributes, legality and execution for operands of known kinds.

The attributes of a call are converted once and become a `Usage`; whether operands of certain specs
are legal for it, and the function that executes them, is found out once and becomes a `Prepared`.
Both live in the core's `plans`, which cores of one machine share.

Instructions resolve the offset of a view that is in a tile themselves. Code that reads `array` of a
view does not: it works on a tensor of its own, copied by an instruction (`gathered`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroncore.enums import Engine, MemorySpace
from neuroncore.errors import Place, find_place
from neuroncore.instructions import INSTRUCTIONS, Call, Instruction, plan
from neuroncore.machine.observe import Event
from neuroncore.memory import View
from neuroncore.spec import Spec
from nki_beta1.execution.accumulation import note_written, preserved_marks
from nki_beta1.execution.core import Core
from nki_beta1.execution.indirection import check_indirect
from nki_beta1.execution.operands import Kind, kinds_of, mismatch, takes
from nki_dtypes import DType

VERSION = (0, 1)
PLANS_KEPT = 1 << 16

_VALUE_DEPENDENT = frozenset({"dropout", "local_gather", "nc_n_gather", "rand2", "sequence_bounds"})
"""Instructions whose legality depends on values: it is checked when they run."""


class Usage:
    """An instruction with its attributes.

    `fields` are its operands in order, `outputs` the positions of outputs among them, `output` the
    first (-1 for an instruction that writes registers only), `more_outputs` the others.
    `depends_on_values`: its legality depends on values; `loads`: it may be a load.
    """

    def __init__(self, record: Instruction, attrs: Mapping[str, Any]) -> None:
        self.record = record
        self.attrs = attrs
        self.fields = tuple(record.operands)
        self.loads = record.name == "dma_copy"
        self.outputs = tuple(map(self.fields.index, record.outputs))
        self.output, self.more_outputs = next(iter(self.outputs), -1), self.outputs[1:]
        self.depends_on_values = record.name in _VALUE_DEPENDENT or bool(attrs.get("is_transpose"))
        self._variants: dict[Any, Usage] = {}

    def but(self, core: Core, **changes: Any) -> Usage:
        """The same with some attributes changed."""
        key = tuple(changes.items())
        found = self._variants.get(key)
        if found is None:
            found = self._variants[key] = usage_of(core, self.record, {**self.attrs, **changes})
        return found

    def ordered(self, operands: Mapping[str, Any]) -> list[Any]:
        """Operands in the record's order, None for an absent one."""
        return [operands.get(field) for field in self.fields]


def usage(core: Core, record: Instruction, given: Mapping[str, Any]) -> Usage:
    """The usage with these attributes, which may need converting; others have their default."""
    key = (record, *given.items(), *map(type, given.values()))
    try:
        found = core.plans.get(key)
    except TypeError:  # a list, such as a pattern
        return usage_of(core, record, record.attributes(given))
    if found is None:
        found = usage_of(core, record, record.attributes(given))
        remember(core, key, found)
    return found


def usage_of(core: Core, record: Instruction, attrs: Mapping[str, Any]) -> Usage:
    """The usage with exactly these attributes: one object for equal ones."""
    key = (Usage, record, *attrs.values(), *map(type, attrs.values()))
    found = core.plans.get(key)
    if found is None:
        found = Usage(record, attrs)
        remember(core, key, found)
    return found


def remember(core: Core, key: Any, found: Any) -> None:
    """Keep a plan for later calls, on this core and on equal ones."""
    if len(core.plans) >= PLANS_KEPT:
        core.plans.clear()
    core.plans[key] = found


class Prepared:
    """A legal call, and the steps for its operands (by position) when it executes.

    `tiles` are the tensors, `written` the tensors that it writes, `more_written` all but the first
    output, `initialised` the outputs in PSUM that TensorE does not write, `moving` the operands
    with an index tile. `covers` as on the record. `result` is the spec of the first output, which
    has `size` elements.
    """

    def __init__(self, call: Call) -> None:
        self.call = call
        self.execute: Callable[..., Any] = plan(call)
        self.covers = call.record.covers(call)
        self.result: Any = call.specs[call.record.outputs[0]] if call.record.outputs else None
        self.size = self.result.size if isinstance(self.result, Spec) else 0
        places = [(i, call.record.operands[f], s) for i, (f, s) in enumerate(call.specs.items())]
        tiles = [(i, operand, spec) for i, operand, spec in places if isinstance(spec, Spec)]
        self.tiles = tuple(i for i, _, _ in tiles)
        self.written = tuple(i for i, operand, _ in tiles if operand.writes)
        self.more_written = self.written[1:]
        self.moving = tuple(i for i, _, s in tiles if s.indirect)
        self.initialised = tuple(
            i
            for i, operand, spec in tiles
            if operand.writes and spec.space is MemorySpace.psum
            if call.engine is not Engine.tensor
        )


Result = tuple[tuple[int, ...], DType, MemorySpace]
"""The shape, dtype and memory of a new tensor."""


@dataclass(slots=True, eq=False)
class Outcome:
    """An instruction on operands of certain kinds, and its result.

    `over` is the shape that a mask refers to. `ready` is the plan of the call without a mask, once
    it was found legal for all operands of these kinds.
    """

    used: Usage
    result: Result
    over: tuple[int, ...] = ()
    ready: Prepared | None = None


def prepared(core: Core, used: Usage, kinds: Sequence[Kind], operands: Sequence[Any]) -> Prepared:
    """The plan for operands of these kinds; raises KernelError for illegal ones."""
    key = (used, *kinds)
    found = core.plans.get(key)
    if found is None:
        for field, kind, value in zip(used.fields, kinds, operands, strict=True):
            if not takes(used.record.operands[field], kind):
                raise mismatch(used.record, field, value)
        adds = used.attrs.get("accumulate") is True
        options = core.accumulating if adds else core.options
        specs = dict(zip(used.fields, kinds, strict=True))
        found = Prepared(Call(used.record, specs, used.attrs, core.target, options, VERSION))
        remember(core, key, found)
    return found


def issue(
    core: Core,
    used: Usage,
    operands: Sequence[Any],
    place: Place | None = None,
    mask: np.ndarray | None = None,
) -> None:
    """Check and execute an instruction on all its operands, in the record's order.

    `mask`: the elements of the result that the caller uses, None for all.
    """
    detach_outputs(used, operands)
    ready = prepared(core, used, kinds_of(core, operands), operands)
    if ready.moving:
        check_indirect(used.record.name, operands, ready.moving, used.attrs)
    execute(core, used, ready, operands, ready.written, place, mask)


def detach_outputs(used: Usage, operands: Sequence[Any]) -> None:
    """Give outputs that rely on another tensor's content memory of their own to be written."""
    for i in used.outputs:
        if isinstance(operands[i], View):
            operands[i].detach()


def execute(
    core: Core,
    used: Usage,
    ready: Prepared,
    operands: Sequence[Any],
    written: Sequence[int],
    place: Place | None = None,
    mask: np.ndarray | None = None,
) -> None:
    """Execute an instruction that is legal on operands of these kinds, and notify watchers.

    `written` are the positions of outputs that may have dependents or may depend on another
    tensor; a new result does neither.
    """
    ready = _about_to_execute(core, used, ready, operands, written)
    if not core.watchers:
        ready.execute(*operands)
        return
    views = dict(zip(used.fields, operands, strict=True))
    event = Event(ready.call, views, place or find_place(), mask=mask)
    core.perform(event, ready.execute, operands)


def _about_to_execute(
    core: Core, used: Usage, ready: Prepared, operands: Sequence[Any], written: Sequence[int]
) -> Prepared:
    """Prepare the operands before an instruction runs; its plan on them then."""
    if _detach(core, operands, written):  # outputs in other memory may have other strides
        ready = prepared(core, used, kinds_of(core, operands), operands)
    for i in ready.tiles:
        view = operands[i]
        if view.spec.fresh:
            view.claim() if ready.covers and i in ready.written else view.initialize()
    for i in ready.initialised:
        note_written(core, operands[i], True if ready.covers else _chosen(used, ready, operands))
    return ready


def _detach(core: Core, operands: Sequence[Any], written: Sequence[int]) -> bool:
    """Detach outputs and their dependents before they are written; whether any was."""
    moved = False
    for i in written:
        if operands[i].is_shared:
            operands[i].detach()
            moved = True
        if (core.dependents or core.masked) and core.about_to_write(operands[i].storage):
            moved = True
    return moved


def _chosen(used: Usage, ready: Prepared, operands: Sequence[Any]) -> np.ndarray | bool:
    """Which elements of its outputs an instruction writes that need not write all."""
    chosen = used.record.chooses(ready.call, dict(zip(used.fields, operands, strict=True)))
    return True if chosen is None else chosen


def gathered(view: View) -> View:
    """`view` itself; of a view that a tile moves, its elements in a tensor of their own.

    Raises AccessError where the tile's number leaves the dimension.
    """
    if view.dynamic is None:
        return view
    own = view.core.allocate(view.shape, view.spec.dtype, view.spec.space)
    _copy(own, view)
    return own


def write_back(view: View, own: View) -> None:
    """Write the tensor that `gathered` returned to its view; marks of written elements stay."""
    if own is not view:
        core: Any = view.core
        with preserved_marks(core, view):
            _copy(view, own)


def _copy(dst: View, src: View) -> None:
    core: Any = dst.core
    record = INSTRUCTIONS["tensor_copy" if dst.spec.space.on_chip else "dma_copy"]
    used = usage(core, record, {})
    issue(core, used, used.ordered({"dst": dst, "src": src}))
