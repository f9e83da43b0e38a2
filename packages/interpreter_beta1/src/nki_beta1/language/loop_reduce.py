"""nl.loop_reduce: a sum, or another reduction, over the iterations of loops.

"The destination tile is also the second operand" [NKI 0.1: loop_reduce]. So the result depends on
its destination: `t[b] = nl.loop_reduce(x, np.add, [i])` adds x to t[b], and
`t = nl.loop_reduce(x, np.add, [i])` to the previous value of t. A destination that nothing has
written starts with x, as 0.1's own generated kernels have it.

`loop_indices` names the loops of one reduction. An iteration of any other loop around the call
begins the next reduction: a name has its value from before the reduction again. A tensor is always
its own second operand, with the content of earlier iterations, unless it is made or written anew.
"""

from __future__ import annotations

import ast
import dis
import linecache
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any, cast

import numpy as np

from neuroncore.alu import alu_op
from neuroncore.errors import Place, ShapeError, SignatureError, UnsupportedError, place_of
from neuroncore.memory import View, resolve_scalar, window
from neuroncore.memory.storage import INTEGER_POISON
from nki_beta1.call import elementwise
from nki_beta1.call.apply import not_rectangular
from nki_beta1.call.assignment import DestinationOperand, fit
from nki_beta1.execution.core import core_of
from nki_beta1.execution.indirection import check_indirect
from nki_beta1.execution.operands import without_ones
from nki_beta1.index.mask import region_of
from nki_beta1.loops.bytecode import kernel_frame, loops_around
from nki_beta1.values.attributes import nl_function

RULE = "NKI 0.1: loop_reduce"


@nl_function
def loop_reduce(x: Any, op: Any, loop_indices: Any, *, dtype: Any = None, mask: Any = None) -> Any:
    """op(x, destination), for the tensor or name to which the result is assigned.

    `loop_indices` are the variables of the loops that are reduced over.
    Raises UnsupportedError if it is unknown whether the destination has been written, or
    which loops around the call are reduced over.
    """
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
    frame = kernel_frame()
    reduction = Reduction(x, alu_op(op).name, dtype, mask)
    name = _assigned_name(frame.f_code, frame.f_lasti)
    if name is None:
        return reduction
    around, others = _loops(frame, len(loop_indices))
    if around[: len(others)] != others:
        raise UnsupportedError(
            f"the loop over {others[-1]} runs inside the ones that are reduced",
            expected=f"loop_indices with {others[-1]} too, or a tensor that is indexed with it",
            operand="loop_indices",
            instruction="nl.loop_reduce",
            rule=RULE,
        )
    return _rebound(reduction, frame, name, tuple(frame.f_locals.get(loop) for loop in others))


@dataclass(frozen=True, slots=True)
class Last:
    """The last reduction into a name: the iteration of the other loops, and the value before it."""

    turn: tuple[Any, ...]
    result: Any
    before: View | None


def _rebound(reduction: Reduction, frame: FrameType, name: str, turn: tuple[Any, ...]) -> Any:
    """The next value of a name: from its present value, or from its value before this reduction.

    `turn`: the variables of the loops that the reduction does not run over.
    """
    core: Any = core_of("loop_reduce")
    now = frame.f_locals.get(name, frame.f_globals.get(name))
    last = core.reductions.get((id(frame), name))
    if last is not None and last.result is now:
        before = last.before
        target = now if last.turn == turn else before
    else:
        target = before = now if isinstance(now, View) and reduction.continues(now) else None
    result = reduction.onto(target)
    core.reductions[id(frame), name] = Last(turn, result, before)
    return result


class Reduction(DestinationOperand):
    """`x` on its way into a destination, which is the other operand."""

    def __init__(self, x: Any, op: str, dtype: Any, mask: Any) -> None:
        self.x, self.op, self.dtype, self.mask = x, op, dtype, mask

    def combined_with(self, target: View | None) -> Any:
        """op(x, target), or a copy of x where nothing has been written to target."""
        is_started = target is not None and self.continues(target, marks=True)
        return self.onto(target if is_started else None)

    def continues(self, target: View, *, marks: bool = False) -> bool:
        """Whether the elements of `target` that the mask selects have been written."""
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
            return True
        other = fit(target, self.x.shape)
        return _is_started(other if region is None else region.of(other), self.op, marks)

    def onto(self, target: View | None) -> Any:
        """op(x, target); a copy of x without a target."""
        if target is None:
            return elementwise.copy(self.x, self.dtype, self.mask)
        region = region_of(self.mask, self.x.shape)
        if region is not None and region.is_empty:
            return target
        other = fit(target, self.x.shape)
        return elementwise.binary(self.op, self.x, other, self.dtype, self.mask)

    def __getattr__(self, name: str) -> Any:
        raise SignatureError(
            "the result of nl.loop_reduce is used before it is assigned",
            expected="t[…] = nl.loop_reduce(…) or t = nl.loop_reduce(…)",
            got=f".{name}",
            hint="the tensor that it is assigned to is its second operand",
            rule=RULE,
        )


def _is_started(target: View, op: str, marks_it: bool) -> bool:
    """Whether the destination has been written; from now on it has, where it is marked.

    Elements that no reduction has marked count as unwritten while they hold new memory's poison.
    """
    core: Any = target.core
    target = _resolved(target)
    target.initialize()
    marked = core.reduced.get(id(target.storage))
    if marked is None:
        marked = core.reduced[id(target.storage)] = np.zeros(target.storage.flat.shape, np.bool_)
    marks = window(marked, target.offset, target.shape, target.spec.strides)
    written = marks | ~_poisoned(target)
    if marks_it:
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


def _resolved(target: View) -> View:
    """The destination itself; one that a tile moves where it is now."""
    if target.dynamic is None:
        return target
    target.core.need_values()
    check_indirect("nl.loop_reduce", [target], [0], {})
    return cast(View, resolve_scalar(target))


def _poisoned(target: View) -> np.ndarray:
    """The elements that look like memory which nothing has written (Options.uninitialized)."""
    target.core.need_values()
    if target.core.options.uninitialized == "zero":
        return target.array == 0
    if target.spec.dtype.is_float:
        return np.isnan(target.array)
    return target.array == INTEGER_POISON


# -- what the result is assigned to ---------------------------------------------------------------


def _loops(frame: FrameType, count: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The loops around the call in `frame`, and the loops outside its `count` loop_indices."""
    around = loops_around(frame.f_code, frame.f_lasti)
    named = _named_loops(place_of(frame))
    if named is not None:
        return around, tuple(loop for loop in around if loop not in named)
    if count >= len(around):
        return around, ()
    raise UnsupportedError(
        f"which of the loops over {', '.join(around)} are meant cannot be read",
        expected="loop variables written out in the call: loop_indices=[i]",
        operand="loop_indices",
        instruction="nl.loop_reduce",
        rule=RULE,
    )


@lru_cache(maxsize=256)
def _named_loops(place: Place) -> frozenset[str] | None:
    """The variables in the text of the call's loop_indices; None where it is not such a list."""
    call = _call_at(place)
    if call is None:
        return None
    given = [k.value for k in call.keywords if k.arg == "loop_indices"] + call.args[2:3]
    items = given[0].elts if given and isinstance(given[0], (ast.List, ast.Tuple)) else []
    names = frozenset(item.id for item in items if isinstance(item, ast.Name))
    return names if items and len(names) == len(items) else None


def _call_at(place: Place) -> ast.Call | None:
    """The call whose text is at a place, parsed."""
    last = place.end_line or place.line
    lines = [linecache.getline(place.file, n).encode() for n in range(place.line, last + 1)]
    lines[-1] = lines[-1][: place.end_column]
    try:
        call = ast.parse(b"(" + b"".join(lines)[place.column :] + b")", mode="eval").body
    except SyntaxError:
        return None
    return call if isinstance(call, ast.Call) else None


@lru_cache(maxsize=256)
def _assigned_name(code: CodeType, at: int) -> str | None:
    """The variable to which the result of the call at bytecode offset `at` goes, if it is one."""
    following = next((i for i in dis.get_instructions(code) if i.offset > at), None)
    if following is None or not following.opname.startswith("STORE_"):
        return None
    named = following.argval
    return named[0] if isinstance(named, tuple) else named
