"""Baseline kernels: what baseline means, and that they compute the function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from packages.nkigym.tests import functions

from neuroncore.program import Call, Loop, Program, calls, emit, execute_program, walk
from nkigym.baseline import BaselineError, baseline_kernel

Function = Callable[..., Any]

EXACT: dict[Function, tuple[str, ...]] = {
    functions.matmul: ("bf16[256, 256]", "bf16[256, 1024]"),
    functions.product: ("f32[256, 384]", "f32[384, 640]"),
    functions.product_transposed: ("bf16[256, 256]", "bf16[512, 256]"),
    functions.tensor_add: ("f32[256, 1024]", "f32[256, 1024]"),
    functions.relu_of_product: ("f32[256, 256]", "f32[256, 1024]", "f32[1024]"),
    functions.product_of_products: ("f32[1024, 256]", "f32[256, 256]", "f32[256, 512]"),
    functions.both: ("f32[2, 256, 512]", "f32[2, 256, 512]"),
    functions.product_and_sums: ("f32[256, 256]", "f32[256, 1024]"),
    functions.used_twice: ("f32[256, 256]", "f32[256, 256]"),
    functions.batches: ("f32[3, 128, 256]", "f32[3, 128, 128]"),
    functions.matrices_of_batches: ("f32[2, 3, 128, 64]", "f32[3, 64, 128]"),
    functions.product_of_product_and_sum: ("f32[256, 128]", "f32[128, 256]", "f32[256, 256]"),
    functions.gram: ("f32[256, 128]", "f32[128, 128]"),
}
"""Sums and products of small integers: every order gives the same."""

ROUNDED: dict[Function, tuple[str, ...]] = {
    functions.softmax: ("f32[256, 2048]",),
    functions.rmsnorm_matmul: ("f32[256, 256]", "f32[256]", "f32[256, 1024]"),
    functions.attention: ("f32[2, 256, 128]",) * 3,
    functions.layer_norm_mlp: (
        "f32[256, 256]",
        "f32[256]",
        "f32[256]",
        "f32[256, 512]",
        "f32[512, 256]",
    ),
    functions.self_attention: ("f32[256, 128]", *("f32[128, 128]",) * 3),
    functions.softmax_and_sums: ("f32[256, 300]",),
    functions.gated_mlp: ("f32[512, 256]", "f32[256, 512]", "f32[256, 512]", "f32[512, 256]"),
}

SMALL: dict[Function, tuple[str, ...]] = {
    functions.matmul: ("f32[96, 64]", "f32[96, 200]"),
    functions.softmax: ("f32[16, 100]",),
    functions.attention: ("f32[3, 64, 32]",) * 3,
    functions.gated_mlp: ("f32[64, 96]", "f32[96, 80]", "f32[96, 80]", "f32[80, 40]"),
}
"""Axes shorter than a tile."""

HALF_ULP = 2.0**-24
"""Of float32, relative."""


def integers(program: Program) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    return [rng.integers(-3, 4, b.shape).astype(b.dtype.storage) for b in program.parameters]


def results(function: Function, specs: tuple[str, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
    """(what the kernel gives, what the function gives in float64), by result."""
    program = baseline_kernel(function, *specs)
    arrays = integers(program)
    expected = function(*(a.astype(np.float64) for a in arrays))
    expected = expected if isinstance(expected, tuple) else (expected,)
    given = execute_program(program, arrays)
    return [(g.astype(np.float64), e) for g, e in zip(given, expected, strict=True)]


@pytest.mark.parametrize("function", EXACT)
def test_a_baseline_kernel_computes_its_function_exactly_on_integers(function: Function):
    for given, expected in results(function, EXACT[function]):
        assert np.array_equal(given, expected)


@pytest.mark.parametrize(("function", "specs"), [*ROUNDED.items(), *SMALL.items()])
def test_a_baseline_kernel_rounds_as_little_as_float32(function: Function, specs: tuple[str, ...]):
    terms = 512 * 8  # of the longest sum, and roundings of each: functions are within 4 ulps

    for given, expected in results(function, specs):
        assert np.max(np.abs(given - expected)) <= terms * HALF_ULP * np.max(np.abs(expected))


def loops(program: Program) -> list[int]:
    return [s.trips for s in walk(program.body) if isinstance(s, Loop)]


def test_a_matmul_has_one_loop_for_each_axis_and_loads_innermost():
    program = baseline_kernel(functions.matmul, "bf16[384, 256]", "bf16[384, 2048]")

    (rows,) = (s for s in program.body if isinstance(s, Loop))
    (columns,) = (s for s in rows.body if isinstance(s, Loop))
    (terms,) = (s for s in columns.body if isinstance(s, Loop))
    made = [s.instruction for s in terms.body if isinstance(s, Call)]
    assert loops(program) == [2, 4, 3]
    assert made == ["dma_copy", "dma_copy", "nc_matmul"]


@pytest.mark.parametrize("function", [*EXACT, *ROUNDED])
def test_every_load_reads_one_tile_and_serves_one_loop_body(function: Function):
    program = baseline_kernel(function, *(EXACT | ROUNDED)[function])
    buffers = program.buffers()

    for call in calls(program.body):
        into = call.accesses["dst"]
        if call.instruction == "dma_copy" and buffers[into.buffer].space.on_chip:
            assert into.shape == buffers[into.buffer].shape
            assert into.shape[0] <= 128


def test_results_of_rows_stay_on_chip_between_the_steps_of_attention():
    program = baseline_kernel(functions.attention, *ROUNDED[functions.attention])

    hbm = [b.name for b in program.buffers().values() if not b.space.on_chip]
    assert hbm == ["x0", "x1", "x2", "out"]


def test_a_product_that_only_a_product_needs_is_made_as_that_takes_it():
    program = baseline_kernel(functions.gated_mlp, *ROUNDED[functions.gated_mlp])
    transposed = [c for c in calls(program.body) if c.instruction == "nc_transpose"]
    buffers = program.buffers()

    assert {buffers[c.accesses["data"].buffer].name for c in transposed} == {"x0_tile", "x0_tile_2"}


def test_the_kernel_is_source_for_its_version():
    program = baseline_kernel(functions.softmax, "f32[256, 512]", target="trn3", nki="0.4")

    assert (program.target, program.nki) == ("trn3", "0.4")
    assert "def softmax" in emit(program, program.nki)


@pytest.mark.parametrize(
    ("function", "specs", "message"),
    [
        (functions.matmul, ("f32[128, 200]", "f32[128, 512]"), "200 rows are not a number of"),
        (functions.matmul, ("f32[200, 128]", "f32[200, 512]"), "200 contracted elements"),
        (functions.matmul, ("f32[128, 128]", "f32[128, 700]"), "700 columns are not a number"),
        (functions.tensor_add, ("f32[512]", "f32[512]"), "works on rows"),
        (lambda x: np.sum(x, axis=0), ("f32[256, 512]",), "sum: "),
        (lambda x: x.T, ("f32[256, 512]",), "another look at an array"),
        (lambda x, y: np.concatenate([x, y]), ("f32[128, 128]",) * 2, "puts no arrays together"),
        (functions.three_products, ("f32[128, 128]",) + ("f32[128, 20480]",) * 3, "cannot run"),
    ],
    ids=["rows", "contracted", "columns", "one axis", "columns summed", "look", "joined", "long"],
)
def test_a_function_without_a_baseline_kernel_is_rejected(function, specs, message: str):
    with pytest.raises(BaselineError) as rejected:
        baseline_kernel(function, *specs)

    assert message in str(rejected.value)
