"""The independent checker: what the emitted tokens order, on executed blocks."""

import operator

import numpy as np
import pytest
from packages.tokenplan.tests.tile_ir import kernels
from packages.tokenplan.tests.tile_ir.random_kernels import random_kernel

from neuroncore.layout import Layout
from nki_dtypes import bfloat16
from tokenplan.checker import Execution, ExecutionError
from tokenplan.checker.memory import runs_of_box, runs_of_elements
from tokenplan.tile_ir import TileKernel, bytecode, emit, orders_of, total_orders
from tokenplan.tile_ir.bytecode.building import BodyBuilder
from tokenplan.tile_ir.bytecode.types import TOKEN, pointer, tile
from tokenplan.tile_ir.description import ATOMIC_MODES

SEED = 27
QUICK, ALL = 100, 10_000


def executed(found, orders, footprints_only=True):
    """The block that the decoded bytecode of these orders describes, run on zeros."""
    module = bytecode.read(bytecode.write(emit(found.described, found.kernel, orders)))
    arrays = [np.zeros(array.shape, np.float32) for array in found.described.arrays]
    return Execution(arrays, footprints_only=footprints_only).run(module.functions[0])


def test_runs_are_the_bytes_of_all_elements():
    rng = np.random.default_rng(SEED)
    for _ in range(200):
        dims = [(int(n), int(s) * 4) for n, s in rng.integers(1, 9, (rng.integers(1, 4), 2))]
        strides = np.reshape([stride for _, stride in dims], (-1, *[1] * len(dims)))
        elements = 64 + (np.indices([count for count, _ in dims]) * strides).sum(axis=0)
        every = {byte + n for byte in elements.ravel().tolist() for n in range(4)}
        for found in (runs_of_box(64, dims, 4), runs_of_elements(elements, 4)):
            assert sorted(every) == [b for a, end in found.tolist() for b in range(a, end)], dims
            assert (found[1:, 0] > found[:-1, 1]).all()


@pytest.mark.parametrize("seed", range(20))
def test_footprints_alone_are_those_of_the_values(seed):
    found = orders_of(random_kernel(seed).described())
    both = [executed(found, found.kept, alone).accesses for alone in (True, False)]

    for a, b in zip(*both, strict=True):
        assert (a.name, a.before, a.runs.tolist()) == (b.name, b.before, b.runs.tolist())


def test_an_address_that_depends_on_loaded_values_is_anywhere_without_the_values():
    body = BodyBuilder()
    (pointer_in,) = parameters = body.values([tile(pointer("i32"))])
    (at, token) = (tile("i32"), TOKEN)
    first = {"order": "weak"}
    loaded, _ = body.add("load_ptr_tko", (at, token), first, source=pointer_in)
    moved = body.one("offset", pointer_in.type, pointers=pointer_in, offsets=loaded)
    body.add("load_ptr_tko", (at, token), first, source=moved)
    body.add("return", ())
    function = bytecode.Function("indirect", bytecode.Block(parameters, tuple(body.operations)))
    arrays = [np.array([2, 0, 7], np.int32)]

    assert Execution(arrays).run(function).accesses[1].runs.tolist() == [[8, 12]]
    run = Execution(arrays, footprints_only=True).run(function)
    assert run.accesses[1].runs.tolist() == [[0, 12]]


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


@pytest.mark.parametrize("family", kernels.LITMUS)
def test_every_kept_order_of_the_litmus_kernels_is_necessary(family):
    found = orders_of(kernels.litmus(family).described())
    reason = (
        "share byte 0 of parameter" if family.isupper() else "are ordered by acquire or release"
    )

    assert found.kept and list(executed(found, found.kept).lost()) == []
    for order in found.kept:
        rest = tuple(other for other in found.kept if other != order)
        assert reason in next(executed(found, rest).lost())


INTEGERS = {
    "add": lambda old, new: (old + new + 2**31) % 2**32 - 2**31, "and": operator.and_,
    "or": operator.or_, "xor": operator.xor, "max": max, "min": min, "xchg": lambda old, new: new,
    "umax": lambda old, new: max(old, new, key=lambda n: n % 2**32),
    "umin": lambda old, new: min(old, new, key=lambda n: n % 2**32),
}  # fmt: skip
"""Of Python's integers, as 32 bits in two's complement."""


def test_every_mode_of_every_dtype_is_calculated():
    assert {*INTEGERS} == {*ATOMIC_MODES["i32"]} == {*ATOMIC_MODES["i64"]}
    assert {mode for modes in ATOMIC_MODES.values() for mode in modes} == {*INTEGERS, "addf"}


@pytest.mark.parametrize("mode", INTEGERS)
def test_an_atomic_update_has_the_values_of_integers(mode):
    """Twice, so that the second one sees the first."""
    before, operand = [3, -5, 2**31 - 1, -(2**31)], -7
    kernel = TileKernel("update")
    a, b = (kernel.array(name, (4,), "i32") for name in "ab")
    for _ in range(2):
        old = kernel.atomic(a, (0,), mode, kernel.full((4,), operand, "i32"))
    kernel.store(b, (0,), old)
    arrays = [np.array(before, np.int32), np.zeros(4, np.int32)]
    Execution(arrays).run(function_of(kernel))

    once = [INTEGERS[mode](n, operand) for n in before]
    assert arrays[1].tolist() == once
    assert arrays[0].tolist() == [INTEGERS[mode](n, operand) for n in once]


def test_an_atomic_update_of_rows_that_overlap_adds_each_element_in_turn():
    kernel = TileKernel("overlapping")
    a = kernel.array("a", (4, 4), strides=(2, 1))
    kernel.atomic(a, (0, 0), "addf", kernel.full((4, 4), 1.0))
    found = np.zeros(10, np.float32)
    Execution([found]).run(function_of(kernel))

    assert found.tolist() == [1, 1, 2, 2, 2, 2, 2, 2, 1, 1]


def function_of(kernel):
    found = orders_of(kernel.described())
    module = bytecode.read(bytecode.write(emit(found.described, found.kernel, found.kept)))
    return module.functions[0]


def test_a_recurrence_without_its_order_is_found_by_name():
    found = orders_of(kernels.recurrence().described())
    gone = next(iter(executed(found, ()).lost()))

    assert gone.startswith("store (line ") and " and load (line " in gone
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


TILED = Layout(dims=(((64, 12),), ((4, 768), (12, 1))))
"""64 rows in four blocks of 12 columns."""


@pytest.mark.parametrize("index", [(0, 6), (0, 7), (16, 0), (17, 6)])
@pytest.mark.parametrize(
    ("kind", "layout"),
    [("atomic", Layout.of((64, 48))), *((kind, TILED) for kind in ("atomic", "store", "load"))],
)
def test_a_pointer_tile_outside_of_its_array_accesses_nothing(index, kind, layout):
    kernel = TileKernel("outside")
    a = kernel.array("a", layout)
    ones = kernel.full((4, 8), 1.0)
    with kernel.loop("i", 2) as i:
        at = (index[0] + i, index[1])
        if kind == "atomic":
            kernel.atomic(a, at, "addf", ones, order="relaxed")
        elif kind == "store":
            kernel.store(a, at, ones)
        else:
            kernel.load(a, at, (4, 8))
    described = orders_of(kernel.described())
    found = executed(described, described.kept, footprints_only=False)

    assert not found.arrays[0].any()
    assert [len(access.runs) for access in found.accesses] == [0, 0]
