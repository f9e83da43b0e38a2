"""nl.loop_reduce: a sum, or another reduction, over the iterations of loops.

"The destination tile is also the second operand" [NKI 0.1: loop_reduce]. So the result depends on
what it is assigned to: `t[b] = nl.loop_reduce(x, np.add, [i])` adds x to t[b], and
`t = nl.loop_reduce(x, np.add, [i])` to what the name t stood for. A destination that nothing has
written starts with x, as 0.1's own generated kernels have it.
"""

from __future__ import annotations

import dis
import sys
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

import numpy as np

from neuroncore.alu import alu_op
from neuroncore.errors import OUR_PACKAGES, ShapeError, SignatureError, UnsupportedError
from neuroncore.memory import View, window
from neuroncore.memory.storage import INTEGER_POISON
from nki_beta1 import _elementwise as elementwise
from nki_beta1._apply import core_of, not_rectangular
from nki_beta1._assign import Joining, fit, without_ones
from nki_beta1._create import refuse_unknown
from nki_beta1._mask import region_of

RULE = "NKI 0.1: loop_reduce"


def loop_reduce(
    x: Any, op: Any, loop_indices: Any, *, dtype: Any = None, mask: Any = None, **unknown: Any
) -> Any:
    """op(x, destination), the destination being what the result is assigned to.

    `loop_indices` are the loops that 0.1's compiler may merge; the values do not depend on them.
    Raises UnsupportedError where it cannot be told whether the destination has been written.
    """
    unknown.pop("name", None)
    refuse_unknown("loop_reduce", unknown)
    core_of("loop_reduce").flush()
    if not isinstance(loop_indices, (list, tuple)) or not loop_indices:
        raise SignatureError(
            "loop_indices names no loop",
            expected="a list of loop variables, such as [i]",
            got=repr(loop_indices)[:80],
            operand="loop_indices",
            instruction="nl.loop_reduce",
            rule=RULE,
        )
    reduction = Reduction(x, alu_op(op).name, dtype, mask)
    frame = _kernel_frame()
    name = _assigned_name(frame.f_code, frame.f_lasti)
    if name is None:
        return reduction
    previous = frame.f_locals.get(name, frame.f_globals.get(name))
    return reduction.joined(previous if isinstance(previous, View) else None)


class Reduction(Joining):
    """`x` on its way into a destination, which is the other operand."""

    def __init__(self, x: Any, op: str, dtype: Any, mask: Any) -> None:
        self.x, self.op, self.dtype, self.mask = x, op, dtype, mask

    def joined(self, target: View | None) -> Any:
        """op(x, target), or a copy of x where nothing has been written to target."""
        if target is None:
            return elementwise.copy(self.x, self.dtype, self.mask)
        if without_ones(target.shape) != without_ones(self.x.shape):
            raise ShapeError(
                f"a tile of shape {self.x.shape} is reduced into one of shape {target.shape}",
                expected="equal shapes",
                operand="x",
                instruction="nl.loop_reduce",
                rule=RULE,
            )
        region = region_of(self.mask, self.x.shape)
        if region is not None and region.inside is not None:
            raise not_rectangular("nl.loop_reduce", region)
        if region is not None and region.is_empty:
            return target
        other = fit(target, self.x.shape)
        if not _is_started(other if region is None else region.of(other), self.op):
            return elementwise.copy(self.x, self.dtype, self.mask)
        return elementwise.binary(self.op, self.x, other, self.dtype, self.mask)

    def __getattr__(self, name: str) -> Any:
        raise SignatureError(
            "the result of nl.loop_reduce is used before it is assigned",
            expected="t[…] = nl.loop_reduce(…) or t = nl.loop_reduce(…)",
            got=f".{name}",
            hint="the tensor that it is assigned to is its second operand",
            rule=RULE,
        )


def _is_started(target: View, op: str) -> bool:
    """Whether the destination has been written; from now on it has.

    Elements that no reduction has marked count as unwritten while they hold new memory's poison.
    """
    core: Any = target.core
    target.settle()
    marked = core.reduced.get(id(target.storage))
    if marked is None:
        marked = core.reduced[id(target.storage)] = np.zeros(target.storage.flat.shape, np.bool_)
    marks = window(marked, target.offset, target.shape, target.spec.strides)
    written = marks | ~_poisoned(target)
    marks[...] = True
    if written.all():
        return True
    if core.options.uninitialized == "zero" and op == "add":
        return True
    can_tell = target.spec.dtype.is_float and core.options.uninitialized == "nan"
    if can_tell and not written.any():
        return False
    raise UnsupportedError(
        "whether the destination has been written cannot be told"
        if not can_tell
        else "part of the destination has been written, part has not",
        got=repr(target),
        hint="write all of it before the loop, such as with nl.full",
        instruction="nl.loop_reduce",
        rule=RULE,
    )


def _poisoned(target: View) -> np.ndarray:
    """The elements that look like memory which nothing has written (Options.uninitialized)."""
    target.core.need_values()
    if target.core.options.uninitialized == "zero":
        return target.array == 0
    if target.spec.dtype.is_float:
        return np.isnan(target.array)
    return target.array == INTEGER_POISON


# -- what the result is assigned to ---------------------------------------------------------------


def _kernel_frame() -> FrameType:
    """The frame of the kernel that is running."""
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__", "").partition(".")[0] in OUR_PACKAGES and frame.f_back:
        frame = frame.f_back
    return frame


@lru_cache(maxsize=256)
def _assigned_name(code: CodeType, at: int) -> str | None:
    """The variable to which the result of the call at bytecode offset `at` goes, if it is one."""
    following = next((i for i in dis.get_instructions(code) if i.offset > at), None)
    if following is None or not following.opname.startswith("STORE_"):
        return None
    named = following.argval
    return named[0] if isinstance(named, tuple) else named
