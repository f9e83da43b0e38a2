"""Loops and the names that they carry, read from the bytecode of a kernel and its callers."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, takewhile
from types import CodeType, FrameType

from neuroncore.machine import launch
from nki_beta1.values.frames import is_ours


def kernel_frame() -> FrameType:
    """The frame of the kernel that is running."""
    frame = sys._getframe(1)
    while is_ours(frame) and frame.f_back:
        frame = frame.f_back
    return frame


@lru_cache(maxsize=1024)
def loops_around(code: CodeType, at: int) -> tuple[str, ...]:
    """The variables of the `for` loops around bytecode offset `at`, outermost first.

    A loop over several variables counts with the first; `while` loops are not among them.
    """
    return tuple(variables[0] for variables, _ in _loops_around(code, at))


def repeated_around() -> tuple[str, ...]:
    """The loops that the running program is in and whose body 0.1 ran once, outermost first.

    The loops of the kernel, of the functions that it called to get here, and of their
    comprehensions, over nl.affine_range, nl.sequential_range or range, as the loop's own expression
    calls them; nl.static_range was unrolled, and other iterables are Python's.
    """
    codes = [(frame.f_code, frame.f_lasti) for frame in frames_of_the_kernel()]
    found: list[str] = []
    for n, (code, at) in enumerate(codes):
        above = tuple([code for code, _ in codes[n + 1 :]])
        loops = _loops(code, at, above)
        found[:0] = [", ".join(variables) for variables, calls in loops if calls & TRACED]
    return tuple(found)


TRACED = frozenset({"affine_range", "sequential_range", "range"})


def frames_of_the_kernel() -> Iterator[FrameType]:
    """The frames that are not ours, from the innermost up to the kernel's."""
    frame: FrameType | None = kernel_frame()
    while frame is not None and frame.f_globals.get("__name__") != launch.__name__:
        if not is_ours(frame):
            yield frame
        frame = frame.f_back


@lru_cache(maxsize=1024)
def _loops(
    code: CodeType, at: int, above: tuple[CodeType, ...]
) -> tuple[tuple[tuple[str, ...], frozenset[str]], ...]:
    """As `_loops_around`; of a comprehension with its own code, the iterable is in a caller.

    `above` is the code of the functions that called it.
    """
    loops = list(_loops_around(code, at))
    if loops and code.co_varnames[:1] == (_ITERATED,):
        places = [names for caller in above if (names := _iterated_names(code, caller))]
        loops[0] = loops[0][0], places[0] if places else frozenset()
    return tuple(loops)


_ITERATED = ".0"  # what Python calls the iterator that a comprehension is given


def _iterated_names(comprehension: CodeType, caller: CodeType) -> frozenset[str]:
    """The names in the expression that a comprehension in the text of `caller` runs over."""
    steps = _steps(caller)
    made = [n for n, step in enumerate(steps) if step.argval is comprehension]
    over = takewhile(lambda step: step.opname != "GET_ITER", steps[made[0] :] if made else ())
    return frozenset(step.argval for step in over if isinstance(step.argval, str))


def _steps(code: CodeType) -> list[dis.Instruction]:
    return [step for step in dis.get_instructions(code) if step.opname != "CACHE"]


def _loops_around(code: CodeType, at: int) -> Iterator[tuple[tuple[str, ...], frozenset[str]]]:
    """Each loop's variables, and the names that the expression it runs over mentions."""
    steps = _steps(code)
    for n, step in enumerate(steps):
        if step.opname == "FOR_ITER" and step.offset < at < step.argval:
            yield _variables(islice(steps, n + 1, None)), _iterated_by(steps[:n])


def _iterated_by(before: list[dis.Instruction]) -> frozenset[str]:
    """The names in the expression whose value was made an iterator last."""
    end = next((n for n in reversed(range(len(before))) if before[n].opname == "GET_ITER"), 0)
    names, depth = [], 0
    for step in reversed(before[:end]):
        names.append(step.argval)
        depth += dis.stack_effect(step.opcode, step.arg)
        if depth == 1:
            break
    return frozenset(name for name in names if isinstance(name, str))


def _variables(following: Iterator[dis.Instruction]) -> tuple[str, ...]:
    """The names that a loop stores its next value in: more than one if it is unpacked."""
    names: list[str] = []
    missing = 1
    for step in following:
        if step.opname == "UNPACK_SEQUENCE":
            missing += step.argval - 1
        elif step.opname.startswith("STORE_"):
            both = step.argval if isinstance(step.argval, tuple) else (step.argval,)
            stored = both[:1] if step.opname == "STORE_FAST_LOAD_FAST" else both
            names += map(str, stored)
            missing -= len(stored)
        if missing <= 0:
            break
    return tuple(names)


def is_in_iteration(frame: FrameType, asked_at: int) -> bool:
    """Whether a frame is still in the iteration whose number it requested at `asked_at`.

    It is while that instruction goes on (`list(map(f, numbers))` calls f), in the body of the `for`
    that asked, and in a `while` that requests a number every time.
    """
    return _is_in_iteration(frame.f_code, asked_at, frame.f_lasti)


@lru_cache(maxsize=1024)
def _is_in_iteration(code: CodeType, asked_at: int, at: int) -> bool:
    asked, now = _step_at(code, asked_at), _step_at(code, at)
    in_body = asked.opname == "FOR_ITER" and asked.offset < now.offset < asked.argval
    return now.offset == asked.offset or in_body or _is_in_while(code, asked, now)


def _is_in_while(code: CodeType, asked: dis.Instruction, now: dis.Instruction) -> bool:
    """Whether both are in a `while`; Python compiles its condition twice, also in front of it."""
    steps = _steps(code)
    in_front_of_a_for = {step.offset for step in steps if step.opname == "FOR_ITER"}
    for step in steps:
        if "JUMP_BACKWARD" not in step.opname or step.argval in in_front_of_a_for:
            continue
        loop = [s for s in steps if step.argval <= s.offset <= step.offset]
        if now in loop and any(s.positions == asked.positions for s in loop):
            return True
    return False


def _step_at(code: CodeType, at: int) -> dis.Instruction:
    """The instruction at bytecode offset `at`, which may be that of one of its caches."""
    return [step for step in _steps(code) if step.offset <= at][-1]


def position(frame: FrameType) -> tuple[int, int]:
    """Line and column of the call that a frame is in; -1 where Python does not keep them."""
    where = _step_at(frame.f_code, frame.f_lasti).positions
    line, column = (where.lineno, where.col_offset) if where else (None, None)
    return line or -1, -1 if column is None else column


def is_loop_of(frame: FrameType, asking: FrameType, line: int) -> bool:
    """Whether a `for` of `frame` over a range on that line requests a number."""
    return asking is frame and _is_loop_at(frame.f_code, frame.f_lasti, line)


@lru_cache(maxsize=1024)
def _is_loop_at(code: CodeType, at: int, line: int) -> bool:
    step = _step_at(code, at)
    where = step.positions
    first, last = (where.lineno, where.end_lineno) if where else (None, None)
    return step.opname == "FOR_ITER" and (first or 0) <= line <= (last or 0)


@lru_cache(maxsize=256)
def carried_names(code: CodeType, at: int) -> frozenset[str]:
    """Names that an iteration of the `for` at offset `at` sets, and may read before that.

    Names that inner functions set (`nonlocal`) are among them.
    """
    steps = [step for step in dis.get_instructions(code) if step.opname != "CACHE"]
    loop = next((s for s in steps if s.offset == at and s.opname == "FOR_ITER"), None)
    body = [s for s in steps if loop is not None and at < s.offset < loop.argval]
    names = {name for step in body for name, is_set in _mentions(step) if is_set}
    around = {name for name in names if _may_read_first(body, name)}
    return frozenset(around | set(_set_by_functions(code)))


def _may_read_first(body: list[dis.Instruction], name: str) -> bool:
    """Whether a path through the body reads the name before it sets it."""
    places = {step.offset: n for n, step in enumerate(body)}
    to_do, seen = [0], {len(body)}
    while to_do:
        at = to_do.pop()
        if at in seen:
            continue
        seen.add(at)
        step = body[at]
        first = next((is_set for found, is_set in _mentions(step) if found == name), None)
        if first is False:
            return True
        if first is None:
            if not step.opname.startswith(_JUMPS):
                to_do.append(at + 1)
            if step.opcode in dis.hasjrel and step.argval in places:
                to_do.append(places[step.argval])
    return False


_JUMPS = ("JUMP_", "RETURN_", "RAISE_", "RERAISE")
"""Instructions after which the next one does not run, but for a jump's target."""


def _mentions(step: dis.Instruction) -> Iterator[tuple[str, bool]]:
    """The names that an instruction reads (False) or sets (True), in their order."""
    kinds = [part for part in step.opname.split("_") if part in ("LOAD", "STORE")]
    names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
    is_name = any(part in step.opname for part in ("FAST", "DEREF", "GLOBAL", "NAME"))
    if kinds and is_name and step.opname != "LOAD_FAST_AND_CLEAR":  # a comprehension's variable
        yield from ((str(n), k == "STORE") for n, k in zip(names, kinds, strict=False))


def _set_by_functions(code: CodeType) -> Iterator[str]:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            steps = dis.get_instructions(inner)
            yield from (s.argval for s in steps if s.opname == "STORE_DEREF")
            yield from _set_by_functions(inner)
