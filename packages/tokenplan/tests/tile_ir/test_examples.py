"""The kernels of examples/tile_ir: both targets give the values of the NumPy reference."""

import numpy as np
import pytest
from packages.tokenplan.tests.tile_ir.examples import EXAMPLES, gemm

from neuroncore.program import execute_program
from tokenplan import analyse
from tokenplan.checker.tile_blocks import Execution
from tokenplan.neuroncore import schedule
from tokenplan.tile_ir import (
    DescriptionError,
    TileKernel,
    bytecode,
    emit,
    neuroncore_program,
    orders_of,
    total_orders,
)

TARGETS = ("sm_80", "sm_90", "sm_100", "sm_120")
SMALL = {
    "gemm": {"tile": (64, 64, 64), "dtype": "f16"},
    "attention": {"block": 32, "keys_block": 32, "dtype": "f16"},
    "layernorm": {"tile": (16, 128)},
}
"""Sizes that older targets compile in seconds."""
each_example = pytest.mark.parametrize("name", EXAMPLES)
LEEWAY = 256
"""Units in the last place of float32: sums of up to 512 rounded products, and exp of sums."""


def arrays_of(described, seed=0):
    rng = np.random.default_rng(seed)
    return {a.name: rng.standard_normal(a.shape).astype(np.float32) for a in described.arrays}


def assert_close(found, reference, arrays):
    exact = {name: array.astype(np.float64) for name, array in arrays.items()}
    for name, expected in reference(**exact).items():
        leeway = LEEWAY * np.finfo(np.float32).eps * max(1.0, np.abs(expected).max())
        assert np.abs(found[name] - expected).max() <= leeway, name


def executed(described, result):
    """Runs every block of the grid on the arrays, which it changes; no order is lost."""
    found = orders_of(described)
    module = bytecode.read(bytecode.write(emit(found.described, found.kernel, found.kept)))
    sizes = [size for _, size in described.grid]
    for block in np.ndindex(*sizes):
        place = (*block, 0, 0, 0)[:3]
        run = Execution(list(result.values()), place).run(module.functions[0])
        assert list(run.lost()) == []


@each_example
def test_tile_ir_has_the_values_of_the_reference_and_loses_no_order(name):
    described = EXAMPLES[name].make().described()
    arrays = arrays_of(described)
    result = {name: array.copy() for name, array in arrays.items()}
    executed(described, result)

    assert_close(result, EXAMPLES[name].reference, arrays)


@each_example
def test_the_neuroncore_program_has_the_values_of_the_reference_and_a_plan(name):
    described = EXAMPLES[name].make().described()
    program = neuroncore_program(described)
    arrays = arrays_of(described)
    result = {name: array.copy() for name, array in arrays.items()}
    execute_program(program, list(result.values()))
    plan = schedule(analyse(program), program)

    assert_close(result, EXAMPLES[name].reference, arrays)
    assert plan.as_json()["waits"]


@each_example
def test_the_compiler_accepts_every_example_for_every_target(tileiras, name):
    found = orders_of(EXAMPLES[name].make(**SMALL.get(name, {})).described())
    data = bytecode.write(emit(found.described, found.kernel, found.kept))

    assert all(tileiras.compile_bytecode(data, target).cubin for target in TARGETS)


def test_no_example_needs_a_token_that_a_loop_carries():
    for name, example in EXAMPLES.items():
        assert orders_of(example.make().described()).kept == (), name


@pytest.mark.parametrize("target", ["sm_90", "sm_100"])
def test_a_gemm_has_its_full_depth_without_a_total_order(tileiras, target):
    """14 buffers of 16 KiB fit into the shared memory; a total order leaves 7."""
    found = orders_of(gemm(1024, 1024, 1024, dtype="f16").described())
    shared = []
    for orders in (found.kept, total_orders(found.kernel, len(found.described.grid))):
        data = bytecode.write(emit(found.described, found.kernel, orders))
        cubin = tileiras.compile_bytecode(data, target).cubin
        shared.append(tileiras.statistics(cubin).shared_bytes)

    assert [size // 2**14 for size in shared] == [14, 7]


@pytest.mark.parametrize(
    ("dtype", "strides", "message"),
    [
        ("f64", None, "array a contains f64"),
        ("f8e5m2", None, "array a contains f8e5m2"),
        ("f32", (32, 1), "elements of array a may share bytes"),
        ("f32", (0, 1), "elements of array a may share bytes"),
    ],
)
def test_arrays_that_a_neuroncore_program_lacks_are_rejected_by_name(dtype, strides, message):
    with pytest.raises(DescriptionError, match=message):
        neuroncore_program(copy_of("a", dtype, strides).described())


NUMPY = {"f32": np.float32, "i8": np.int8, "i16": np.int16, "i32": np.int32}


@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("strides", [None, (1, 64), (80, 1), (-64, 1)])
def test_a_copy_of_any_distinct_elements_is_a_neuroncore_program(dtype, strides):
    """Also where an array has the name that a tile would have."""
    program = neuroncore_program(copy_of("t1", dtype, strides).described())
    first = np.arange(64 * 64).reshape(64, 64).astype(NUMPY[dtype])
    arrays = [first, np.zeros_like(first)]
    execute_program(program, arrays)

    assert (arrays[1] == first).all()


def copy_of(name, dtype, strides):
    kernel = TileKernel("copy")
    a, b = kernel.array(name, (64, 64), dtype, strides), kernel.array("b", (64, 64), dtype)
    kernel.store(b, (0, 0), kernel.load(a, (0, 0), (64, 64)))
    return kernel
