"""Where running a loop's body for every number differs from tracing it once, as 0.1 did.

Used where the options ask for an error (`Options.traced_once`): what the text of a kernel shows is
refused before it runs, what only a run shows when a turn of a loop has ended.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from types import CodeType, FrameType
from typing import Any

import numpy as np

from neuroncore.checks.subset import check_function
from neuroncore.errors import AccessError, UnsupportedError
from nki_beta1._loops import kernel_frame

RULE = "NKI 0.1: the body of a loop is traced once"
_CODES = frozenset({"index-condition", "nested-output", "sequential-condition", "tensor-scope"})
"""Rules of the subset check that are about tracing."""


def refuse_untraceable(function: Callable[..., Any]) -> None:
    """Raise AccessError for control flow on an index and for tensors used outside their block.

    Raises UnsupportedError where the kernel's source cannot be read.
    """
    try:
        findings = check_function(function, nki="0.1")
    except OSError:
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


def turns(numbers: range) -> Iterator[int]:
    """The numbers of a loop; raises AccessError where Python's state carries over a turn."""
    frame = kernel_frame()
    for number in numbers:
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
