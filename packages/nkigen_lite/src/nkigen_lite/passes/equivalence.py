"""Equivalence of a graph before and after a pass, by executing both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ml_dtypes
import numpy as np

from nkigen_lite.ir import Graph, run_graph, verify_graph
from nkigen_lite.ir.interpreter import FLOAT32, FLOAT64
from nkigen_lite.tensors.errors import RewriteError

SLACK_ULPS = 16.0
"""Ulps of a result's largest magnitude that a rewrite may add to the error of what it replaces."""
SLACK_FACTOR = 8.0
"""How many times the error of what it replaces a rewrite may have."""


def check_pass(name: str, before: Graph, after: Graph, arrays: Iterable[Any]) -> Graph:
    """`after`, which is well formed and computes what `before` does on these inputs.

    Truth is `before` computed in float64. On each output the error of `after` in float32 may not
    exceed SLACK_FACTOR times that of `before` plus SLACK_ULPS of the largest finite value; integers
    and bool must be equal, except where `before` itself differs from the truth.

    Raises RewriteError naming the pass, the output and the first element that differs.
    """
    arrays = list(arrays)
    verify_graph(after)
    if [v.spec for v in before.inputs] != [v.spec for v in after.inputs]:
        raise RewriteError(f"{name} changed the inputs")
    truth = run_graph(before, arrays, FLOAT64)
    old, new = run_graph(before, arrays, FLOAT32), run_graph(after, arrays, FLOAT32)
    for number, (t, o, n) in enumerate(zip(truth, old, new, strict=True)):
        wrong = _differs(np.asarray(t), np.asarray(o), np.asarray(n))
        if wrong is not None:
            shown = ", ".join(f"{k} {np.asarray(a)[wrong]}" for k, a in (("was", o), ("is", n)))
            raise RewriteError(f"{name} changed output {number} at {wrong}: {shown}")
    return after


def _differs(truth: np.ndarray, old: np.ndarray, new: np.ndarray) -> tuple[int, ...] | None:
    """The first element whose change is not rounding."""
    if old.shape != new.shape or old.dtype != new.dtype:
        return (0,) * old.ndim
    with np.errstate(all="ignore"):
        bad = _bad_integers if old.dtype.kind in "iub" else _bad_floats
        places = np.argwhere(bad(truth, old, new))
    return tuple(int(i) for i in places[0]) if len(places) else None


def _bad_integers(truth: np.ndarray, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return (old != new) & (old == truth)


def _bad_floats(truth: np.ndarray, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    epsilon = float(ml_dtypes.finfo(old.dtype).eps)
    t, o, n = (a.astype(np.float64) for a in (truth, old, new))
    same = (o == n) | (np.isnan(o) & np.isnan(n))
    finite = np.isfinite(o) & np.isfinite(n) & np.isfinite(t)
    largest = np.abs(t[finite]).max(initial=0.0)
    old_error = np.abs(o - t)[finite].max(initial=0.0)
    allowed = SLACK_FACTOR * old_error + SLACK_ULPS * epsilon * largest
    return ~same & (~finite | (np.abs(n - t) > allowed)) & (np.isfinite(t) == np.isfinite(o))
