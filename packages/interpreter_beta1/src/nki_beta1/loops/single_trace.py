"""Differences between running a loop's body for every number and tracing it once, as 0.1 did.

Used where the options request an error (`Options.traced_once`): differences that the text of a
kernel shows are errors before it runs, others when an iteration has ended.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from neuroncore.errors import AccessError, UnsupportedError
from neuroncore.source_location import Place
from nki_beta1.loops.bytecode import (
    carried_names,
    frames_of_the_kernel,
    is_loop_of,
    kernel_frame,
    position,
)

RULE = "NKI 0.1: the body of a loop is traced once"
_CODES = frozenset({"index-condition", "nested-output", "sequential-condition", "tensor-scope"})
"""Rules of the subset check that are about tracing."""


_LOOPS = ("affine_range", "sequential_range")
_LOOKED_AT: ContextVar[Collection[tuple[str, int, int]]] = ContextVar("nki_beta1.loops", default=())
"""Files, lines and columns of what the loops that the text of the kernel shows run over."""


def check_traceable(function: Callable[..., Any]) -> None:
    """Raise AccessError for control flow on an index and for tensors used outside their block.

    Raises UnsupportedError where the kernel's source cannot be read.
    """
    from neuroncore.checks.subset import check_function, loops_reached  # 50 ms

    try:
        findings = check_function(function, nki="0.1")
        _LOOKED_AT.set(loops_reached(function, [f"nki.language.{name}" for name in _LOOPS]))
    except OSError:  # also a file in which the kernel does not stand, such as a document
        raise UnsupportedError(
            f"the source of kernel {function.__name__} cannot be read",
            expected="a kernel in a file, for the option traced_once='error'",
            rule=RULE,
        ) from None
    for finding in findings:
        if finding.code in _CODES:
            place = finding.place if isinstance(finding.place, Place) else None
            raise AccessError(finding.message, place=place, hint=finding.cure, rule=finding.source)


def iterations(name: str, numbers: Iterable[int]) -> Iterator[int]:
    """The numbers of a loop; raises AccessError where Python's state carries over a turn.

    Raises UnsupportedError for a loop that the text of the kernel does not show as one.
    """
    frame = kernel_frame()
    line, column = position(frame)
    if (str(Path(frame.f_code.co_filename).resolve()), line, column) not in _LOOKED_AT.get():
        raise _not_shown(name)
    return _turns(frame, line, name, numbers)


def _not_shown(name: str) -> UnsupportedError:
    return UnsupportedError(
        f"cannot tell from the kernel's text that a for runs over nl.{name} here",
        expected="for … in nl.affine_range(…), in the kernel or in a function that it names",
        hint="write import neuronxcc.nki.language as nl at the top of the file, and call "
        "functions by the names of their definitions; a comprehension, enumerate and zip count "
        "turns that 0.1 did not take",
        rule=RULE,
    )


def _turns(frame: FrameType, line: int, name: str, numbers: Iterable[int]) -> Iterator[int]:
    for number in numbers:
        if not is_loop_of(frame, sys._getframe(1), line):
            raise _not_shown(name)
        before = _state()
        yield number
        after = _state()
        for key in before:
            if key in after and after[key] != before[key]:
                raise AccessError(
                    f"{key[1]} is {before[key]} before a turn of the loop and {after[key]} after",
                    expected="tiles, or Python values that depend on the loop's index only",
                    hint="0.1 ran the body once; write nl.static_range to run it for every number",
                    rule=RULE,
                )


def _state() -> dict[tuple[int, str], Any]:
    """Values that iterations of the loop change, and the lengths of collections.

    By frame, from the one that requests a number up to the kernel's, and name; global numbers have
    frame 0.
    """
    found: dict[tuple[int, str], Any] = {}
    frames = list(frames_of_the_kernel())
    for frame in frames:
        derived_indirection = carried_names(frame.f_code, frame.f_lasti)
        for name, value in frame.f_locals.items():
            if isinstance(value, (list, dict, set)):
                found[id(frame), f"the length of {name}"] = len(value)
            elif name in derived_indirection and isinstance(value, _PLAIN):
                found[id(frame), name] = value
    for name, value in frames[-1].f_globals.items() if frames else ():
        if isinstance(value, _PLAIN):
            found[0, name] = value
    return found


_PLAIN = (int, float, str, tuple, np.number)
