"""The independent checker: what the emitted tokens order, on executed blocks."""

import numpy as np
import pytest
from packages.tokenplan.tests.tile_ir import kernels
from packages.tokenplan.tests.tile_ir.random_kernels import random_kernel

from nki_dtypes import bfloat16
from tokenplan.checker.tile_blocks import Execution, ExecutionError
from tokenplan.tile_ir import TileKernel, bytecode, emit, orders_of, total_orders

QUICK, ALL = 250, 10_000


def executed(found, orders):
    """The block that the decoded bytecode of these orders describes, run on zeros."""
    module = bytecode.read(bytecode.write(emit(found.described, found.kernel, orders)))
    arrays = [np.zeros(array.shape, np.float32) for array in found.described.arrays]
    return Execution(arrays).run(module.functions[0])


def lost(seed: int) -> list[str]:
    """Orders of the random kernel of a seed that its tokens lose; and needless kept ones."""
    found = orders_of(random_kernel(seed).described())
    missing = [f"seed {seed}: {gone}" for gone in executed(found, found.kept).lost()]
    if not missing and list(executed(found, total_orders(found.kernel)).lost()):
        missing = [f"seed {seed}: the total order loses an order"]
    return missing


def test_random_kernels_lose_no_order():
    assert [text for seed in range(QUICK) for text in lost(seed)] == []


@pytest.mark.thorough
@pytest.mark.timeout(3600)
def test_many_random_kernels_lose_no_order():
    assert [text for seed in range(ALL) for text in lost(seed)] == []


@pytest.mark.parametrize("family", ["RAW", "WAR", "WAW"])
def test_every_kept_order_of_the_litmus_kernels_is_necessary(family):
    found = orders_of(kernels.litmus(family).described())

    assert list(executed(found, found.kept).lost()) == []
    for order in found.kept:
        rest = tuple(other for other in found.kept if other != order)
        (gone,) = executed(found, rest).lost()
        assert "share byte 0 of parameter" in gone


def test_a_recurrence_without_its_order_is_found_by_name():
    found = orders_of(kernels.recurrence().described())
    gone = next(iter(executed(found, ()).lost()))

    assert "store_view_tko" in gone and "load_view_tko" in gone
    assert "share byte 32768 of parameter 0, and no token orders them" in gone


def test_elements_that_numpy_lacks_take_their_dtype_from_the_caller():
    kernel = TileKernel("copy")
    a, b = (kernel.array(name, (64, 64), "bf16") for name in "ab")
    kernel.store(b, (0, 0), kernel.load(a, (0, 0), (64, 64)))
    found = orders_of(kernel.described())
    (function,) = bytecode.read(
        bytecode.write(emit(found.described, found.kernel, found.kept))
    ).functions
    first = np.arange(64 * 64).reshape(64, 64).astype(bfloat16)
    arrays = [first, np.zeros_like(first)]

    Execution(arrays, dtypes={"bf16": first.dtype}).run(function)
    assert (arrays[1] == first).all()
    with pytest.raises(ExecutionError, match="dtype of bf16"):
        Execution(arrays).run(function)
