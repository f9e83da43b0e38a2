"""Where running a loop's body for every number differs from tracing it once, as 0.1 did.

Used where the options ask for an error (`Options.traced_once`): what the text of a kernel shows is
refused before it runs, what only a run shows when a turn of a loop has ended.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextvars import ContextVar
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

from neuroncore.checks.subset import calls_reached, check_function
from neuroncore.errors import AccessError, UnsupportedError
from nki_beta1._loops import is_loop_of, kernel_frame

RULE = "NKI 0.1: the body of a loop is traced once"
_CODES = frozenset({"index-condition", "nested-output", "sequential-condition", "tensor-scope"})
"""Rules of the subset check that are about tracing."""


_LOOPS = ("affine_range", "sequential_range")
_LOOKED_AT: ContextVar[Collection[tuple[str, int]]] = ContextVar("nki_beta1.loops", default=())
"""Files and lines of the loops that the text of the kernel shows."""


def refuse_untraceable(function: Callable[..., Any]) -> None:
    """Raise AccessError for control flow on an index and for tensors used outside their block.

    Raises UnsupportedError where the kernel's source cannot be read.
    """
    try:
        findings = check_function(function, nki="0.1")
        _LOOKED_AT.set(calls_reached(function, [f"nki.language.{name}" for name in _LOOPS]))
    except OSError:  # also a file in which the kernel does not stand, such as a document
        raise UnsupportedError(
            f"the source of kernel {function.__name__} cannot be read",
            expected="a kernel in a file, for the option traced_once='error'",
            rule=RULE,
        ) from None
    for finding in findings:
        if finding.code in _CODES:
            raise AccessError(
                finding.message, place=finding.place, hint=finding.hint, rule=finding.rule
            )


def turns(name: str, numbers: Iterable[int]) -> Iterator[int]:
    """The numbers of a loop; raises AccessError where Python's state carries over a turn.

    Raises UnsupportedError for a loop that the text of the kernel does not show as one.
    """
    frame = kernel_frame()
    file, line = Path(frame.f_code.co_filename).resolve(), frame.f_lineno
    if (str(file), line) not in _LOOKED_AT.get():
        raise _not_shown(name)
    return _turns(frame, line, name, numbers)


def _not_shown(name: str) -> UnsupportedError:
    return UnsupportedError(
        f"cannot tell from the kernel's text that nl.{name} is called here",
        expected="for … in nl.affine_range(…), in the kernel or in a function that it names",
        hint="write import neuronxcc.nki.language as nl at the top of the file, and call "
        "functions by the names of their definitions",
        rule=RULE,
    )


def _turns(frame: FrameType, line: int, name: str, numbers: Iterable[int]) -> Iterator[int]:
    for number in numbers:
        if not is_loop_of(frame, sys._getframe(1), line):
            raise _not_shown(name)
        before = _state(frame)
        yield number
        after = _state(frame)
        for name in before:
            if name in after and after[name] != before[name]:
                raise AccessError(
                    f"{name} is {before[name]} before a turn of the loop and {after[name]} after",
                    expected="tiles, or Python values that depend on the loop's index only",
                    hint="0.1 ran the body once; write nl.static_range to run it for every number",
                    rule=RULE,
                )


def _state(frame: FrameType) -> dict[str, Any]:
    """The numbers that the code counts up or down, and the lengths of its collections, by name."""
    counted = _changed_in_place(frame.f_code)
    found: dict[str, Any] = {}
    for name, value in frame.f_locals.items():
        if isinstance(value, (list, dict, set)):
            found[f"the length of {name}"] = len(value)
        elif name in counted and isinstance(value, (int, float, str, tuple, np.number)):
            found[name] = value
    return found


@lru_cache(maxsize=256)
def _changed_in_place(code: CodeType) -> frozenset[str]:
    """The names that stand before `+=` and its like."""
    steps = [step for step in dis.get_instructions(code) if step.opname != "CACHE"]
    stores = (b for a, b in pairwise(steps) if a.opname == "BINARY_OP" and a.argrepr.endswith("="))
    names = (b.argval for b in stores if b.opname.startswith("STORE_") and b.argval is not None)
    return frozenset(n[0] if isinstance(n, tuple) else n for n in names)
