"""From a call without a destination to an instruction of the machine with one.

0.1 functions return their result; the machine's instructions write to a destination. An
instruction is therefore checked when it is called and executed when its destination is known: the
tensor it is assigned to at once (`t[i, j] = nl.exp(x)`, `acc += nisa.nc_matmul(a, b)`), or, as soon
as anything else happens, a fresh tile. At most one instruction is pending, and everything that
could observe the difference executes it first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuroncore.instructions import INSTRUCTIONS
from neuroncore.memory import View
from neuroncore.spec import make_spec, row_major
from nki_beta1.execution.core import Core, core_of
from nki_beta1.execution.indirection import check_indirect
from nki_beta1.execution.operands import kinds_of
from nki_beta1.execution.pending_call import PendingCall
from nki_beta1.execution.plans import (
    Outcome,
    Prepared,
    Result,
    Usage,
    detach_outputs,
    issue,
    prepared,
    usage,
)
from nki_beta1.execution.tensor import Tensor
from nki_beta1.index.mask import Region

_MATMUL = INSTRUCTIONS["nc_matmul"]


def emit(
    core: Core,
    used: Usage,
    inputs: Mapping[str, Any],
    result: Result,
    region: Region | None = None,
) -> Tensor:
    """The tile that an instruction gives; it is checked now, executed when it has a destination.

    `inputs` are already cut to the region's rectangle.
    """
    core.flush()
    shape, dtype, space = result
    core.check_fits(shape, dtype, space)
    operands = used.ordered(inputs)
    covers = False
    if region is None or not region.is_empty:
        part = (shape if region is None else region.shape, dtype, space)
        covers = check(core, used, operands, part).covers
    return wait(PendingCall(core, Outcome(used, result), operands, region, covers))


def wait(pending: PendingCall) -> Tensor:
    """The tile that a checked instruction gives."""
    core, operands = pending.core, pending.operands
    tile: Any = _new(core.view_class)
    tile.core = core
    tile.wait(pending)
    core.pending = tile
    more = pending.used.more_outputs
    second_output = more and any(operands[i] is not None for i in more)
    is_checked = core.options.activation_range == "reject" and pending.used.record is not _MATMUL
    if second_output or is_checked:
        core.flush()
    return tile


_new = View.__new__


def check(core: Core, used: Usage, operands: list[Any], result: Result) -> Prepared:
    """The plan of a call; raises its errors at the call in the kernel."""
    detach_outputs(used, operands)
    kinds = kinds_of(core, operands)
    shape, dtype, space = result
    kinds[used.output] = make_spec(shape, row_major(shape), dtype, space, core.stored_as(dtype))
    found = prepared(core, used, kinds, operands)
    if found.moving:
        check_indirect(used.record.name, operands, found.moving, used.attrs)
    return found


def run(name: str, operands: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Execute instruction `name` on operands that include its destination, now."""
    core = core_of(name)
    core.flush()
    used = usage(core, INSTRUCTIONS[name], given)
    issue(core, used, used.ordered(operands))
