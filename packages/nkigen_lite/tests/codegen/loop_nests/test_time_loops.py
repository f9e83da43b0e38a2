"""Loops over time steps: values in every version, code that does not grow with the steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nkigen_lite import compile, scan

Kernel = Callable[..., Any]


def selective_scan(x: Any, dt: Any, a: Any, b: Any, c: Any) -> Any:
    h, ys = np.zeros(a.shape, np.float32), []
    for t in range(x.shape[1]):
        h = np.exp(dt[:, t, None] * a) * h + (dt[:, t] * x[:, t])[:, None] * b[t]
        ys.append(np.sum(h * c[t], -1))
    return np.stack(ys, 1)


def written_average(x: Any, a: Any) -> Any:
    out, s = np.empty_like(x), x[0]
    for t in range(x.shape[0]):
        s = s * a + x[t] * (1 - a)
        out[t] = s
    return out, s


def exchanged(a: Any, b: Any) -> Any:
    for _ in range(20):
        a, b = b, np.tanh(a + b)
    return a, b


def backwards(x: Any) -> Any:
    s, left = np.zeros(x.shape[0], np.float32), []
    for t in reversed(range(x.shape[1])):
        s = np.maximum(s * 0.5, x[:, t])
        left.append(s)
    return np.stack(left[::-1], 1)


def batched(x: Any, gate: Any) -> Any:
    h, ys = x[:, 0] * 0, []
    for t in range(x.shape[1]):
        h = h * gate[:, t, None] + x[:, t]
        ys.append(h / np.sqrt(np.sum(h * h, -1, keepdims=True) + 1))
    return np.stack(ys, 1), h


def delayed(x: Any) -> Any:
    """Carries what a step is given, and leaves what it was carried."""

    def step(last: Any, now: Any) -> Any:
        return now, last + now

    return scan(step, x[0] * 0, x)


def scanned(x: Any, decay: Any) -> Any:
    def step(carry: Any, at: Any) -> Any:
        total, peak = carry
        total = total * decay + at
        return (total, np.maximum(peak, total)), (total - peak, np.sum(total, -1))

    (total, peak), (change, sums) = scan(step, (x[0], x[0]), x)
    return total, peak, change, sums


def online_softmax(x: Any) -> Any:
    top, norm = x[:, :8].max(-1, keepdims=True), x[:, :1] * 0
    for t in range(20):
        now = x[:, 8 * t : 8 * t + 8]
        higher = np.maximum(top, now.max(-1, keepdims=True))
        norm = norm * np.exp(top - higher) + np.exp(now - higher).sum(-1, keepdims=True)
        top = higher
    return top + np.log(norm)


CASES: dict[str, tuple[Kernel, tuple[tuple[int, ...], ...]]] = {
    "selective scan": (selective_scan, ((128, 20), (128, 20), (128, 8), (20, 8), (20, 8))),
    "selective scan of 130 channels": (
        selective_scan, ((130, 18), (130, 18), (130, 4), (18, 4), (18, 4)),
    ),
    "written average": (written_average, ((40, 32), (32,))),
    "average of 300 columns": (written_average, ((17, 300), (300,))),
    "exchanged": (exchanged, ((4, 4), (4, 4))),
    "backwards": (backwards, ((16, 24),)),
    "batches": (batched, ((3, 20, 24), (3, 20))),
    "delayed": (delayed, ((20, 8, 40),)),
    "two carried values": (scanned, ((20, 130, 12), (12,))),
    "chunks of steps": (batched, ((2, 70, 512), (2, 70))),
    "blocks of columns": (online_softmax, ((64, 160),)),
}  # fmt: skip


@pytest.mark.parametrize("nki", ["0.2", "0.6", "0.7"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_step_has_numpys_values(case, nki, normal, versioned_results):
    function, shapes = case
    arrays = tuple(np.abs(normal(*s, seed=n)) % 1 for n, s in enumerate(shapes))
    kernel = compile(function, *arrays, nki=nki)
    expected = function(*(a.astype(np.float64) for a in arrays))

    for found in (kernel(*arrays), versioned_results(kernel, arrays)):
        for ours, numpys in zip(*map(_several, (found, expected)), strict=True):
            assert ours.shape == numpys.shape
            np.testing.assert_allclose(ours, numpys, rtol=2e-5, atol=2e-5)


def _several(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_all_cases_but_overlapping_slices_are_loops(case, normal):
    function, shapes = case
    kernel = compile(function, *(normal(*s) for s in shapes))

    assert ("rolled" in kernel.passes) == (function is not online_softmax)


def scan_of(steps: int) -> Any:
    shapes = f"f32[128,{steps}]", f"f32[128,{steps}]", "f32[128,8]", *[f"f32[{steps},8]"] * 2
    return compile(selective_scan, *shapes)


def test_a_scan_moves_its_operands_once_in_four_instructions_a_step():
    stats = scan_of(64).stats
    least = 4 * (3 * 128 * 64 + 128 * 8 + 2 * 64 * 8)

    assert stats.hbm_bytes == least
    assert stats.instructions <= 4 * 64 + 40


def test_code_does_not_grow_with_the_steps():
    assert len(scan_of(512).source.splitlines()) == len(scan_of(1024).source.splitlines())


def test_fewer_than_sixteen_steps_are_left_unrolled():
    kernel = compile(lambda x: np.tanh(np.tanh(np.tanh(x))), "f32[4,4]")

    assert "rolled" not in kernel.passes


@pytest.mark.parametrize("reverse", [np.s_[:, ::-1], np.s_[::-1], np.s_[::-1, ::-1]])
def test_a_loop_may_begin_with_an_array_backwards(bitwise, reverse):
    def function(x, y):
        x = x[reverse]
        for _ in range(18):
            x = np.maximum(np.minimum(x, y), 1 - x)
        return x

    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    bitwise(function, x, x.T.reshape(4, 5).copy())
