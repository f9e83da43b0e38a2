"""Kernels from the outside: launches, grids, what may be written, what comes back."""

import logging

import numpy as np
import pytest

from neuroncore.errors import (
    DTypeError,
    ImmutableError,
    KernelError,
    LaunchError,
    MemorySpaceError,
    PartitionError,
    SignatureError,
    UnsupportedError,
)
from neuroncore.instructions import KernelWarning
from neuroncore.machine.backend import CURRENT, Choice
from neuroncore.options import Options
from nki_beta1 import Kernel, nisa, nki, nl, nt

X = np.arange(8 * 12, dtype=np.float32).reshape(8, 12)


@nki.jit
def twice(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=nl.load(x) * 2)
    return out


@nki.jit
def program_numbers(rows, cols):
    """Every program writes its own number into its element of a shared tensor."""
    out = nl.ndarray((rows, cols), dtype=nl.int32, buffer=nl.shared_hbm)
    i, j = nl.program_id(0), nl.program_id(1)
    number = i * nl.num_programs(1) + j
    nl.store(out[nl.ds(i, 1), nl.ds(j, 1)], value=nl.full((1, 1), number, dtype=nl.int32))
    return out


def test_arrays_go_in_and_come_out():
    result = twice(X)

    assert type(result) is np.ndarray
    np.testing.assert_array_equal(result, 2 * X)


def test_several_results_come_back_in_their_structure():
    @nki.jit
    def kernel(x):
        first, second = twice(x), twice(x)
        return first, [second, 3]

    first, (second, three) = kernel(X)
    np.testing.assert_array_equal(first, second)
    assert three == 3


@pytest.mark.parametrize(
    "grid",
    [
        (3, 4),
        (nl.nc(3), 4),
        (nl.spmd_dim(1, nl.nc(3)), 2 * nl.nc(2)),
        (3, nl.spmd_dim(2, nl.nc(2))),
        (3, nl.spmd_dim(nl.nc(2), 2)),
    ],
    ids=["ints", "cores", "cores of programs", "spmd_dim last", "cores first"],
)
def test_a_grid_runs_one_program_per_point_over_shared_tensors(grid):
    np.testing.assert_array_equal(program_numbers[grid](3, 4), np.arange(12).reshape(3, 4))


def test_grids_have_any_rank():
    seen = []

    @nki.jit
    def kernel():
        seen.append(tuple(nl.program_id(a) for a in range(nl.program_ndim())))
        assert nl.num_programs() == 12 and nl.num_programs([0, 2]) == 6

    kernel[2, 2, 3]()

    assert seen == list(np.ndindex(2, 2, 3))


def test_private_tensors_are_each_programs_own():
    @nki.jit
    def kernel():
        scratch = nl.ndarray((1, 1), dtype=nl.float32, buffer=nl.private_hbm)
        if nl.program_id(0) == 0:
            nl.store(scratch, value=7.0)
        out = nl.ndarray((2, 1), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(out[nl.ds(nl.program_id(0), 1), 0:1], value=nl.load(scratch))
        return out

    np.testing.assert_array_equal(kernel[2](), [[7.0], [np.nan]])


def test_zeros_in_shared_hbm_are_made_once():
    @nki.jit
    def kernel():
        out = nl.zeros((2, 1), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(out[nl.ds(nl.program_id(0), 1), 0:1], value=1.0)
        return out

    np.testing.assert_array_equal(kernel[2](), [[1.0], [1.0]])


@pytest.mark.parametrize(
    ("launch", "text"),
    [
        (lambda: program_numbers(3, 4), r"program_id\(0\): the kernel was launched without a grid"),
        (lambda: program_numbers[3](3, 4), r"program_id\(1\): the kernel was launched with a grid"),
        (lambda: twice[0](X), "a launch grid is made of positive ints"),
        (lambda: twice[2.5](X), "a launch grid is made of positive ints"),
        (lambda: twice[[4, 2]](X), r"a launch grid is made of positive ints(.*\n)*.*tuple\(grid\)"),
        (lambda: twice[[4]](X), "a launch grid is made of positive ints"),
        (lambda: nl.program_id(0), "nl.program_id is used outside a kernel"),
        (lambda: nl.zeros((2, 2), dtype=nl.float32), "used outside a kernel"),
    ],
)  # fmt: skip
def test_a_launch_that_does_not_fit_is_explained(launch, text):
    with pytest.raises(LaunchError, match=text):
        launch()


def test_a_kernel_called_in_a_kernel_is_part_of_it():
    @nki.jit
    def four_times(x):
        return twice(twice(x))

    np.testing.assert_array_equal(four_times(X), 4 * X)


def test_a_parameter_is_read_only_unless_it_is_declared_mutable():
    @nki.jit
    def overwrite(x: nt.tensor):
        nl.store(x, value=nl.load(x) + 1)

    @nki.jit
    def update(x: nt.mutable_tensor):
        nl.store(x, value=nl.load(x) + 1)
        return x

    x = X.copy()
    with pytest.raises(ImmutableError) as caught:
        overwrite(x)
    assert str(caught.value).splitlines()[1:] == [
        "    nl.store(x, value=nl.load(x) + 1)",
        "    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
        "    got:      shape (8, 12)",
        "    store to nl.ndarray(…, buffer=nl.shared_hbm) and return it, or annotate the "
        "parameter with nt.mutable_tensor",
        "    [NKI 0.1: kernel parameters are immutable]",
    ]
    np.testing.assert_array_equal(update(x), X + 1)
    np.testing.assert_array_equal(x, X + 1)


@pytest.mark.parametrize("annotation", [nt.tensor[nt.mutable], "nt.tensor[nt.mutable]"])
def test_a_mutable_tensor_may_be_marked_in_brackets(annotation):
    def update(x):
        nl.store(x, value=nl.load(x) + 1)
        return x

    update.__annotations__["x"] = annotation

    np.testing.assert_array_equal(nki.jit(update)(X.copy()), X + 1)


def test_a_loop_may_be_bounded_by_a_number_of_the_device():
    @nki.jit
    def repeated(x, times):
        tile = nl.load(x)
        for _ in range(nt.scalar(nl.load(times))):
            tile = nl.add(tile, 1.0)
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, tile)
        return out

    np.testing.assert_array_equal(repeated(X, np.array([[3]], np.int32)), X + 3)
    with pytest.raises(KernelError, match=r"nt\.scalar takes one element"):
        repeated(X, np.ones((2, 2), np.int32))
    with pytest.raises(KernelError, match=r"nt\.scalar of float32"):
        repeated(X, np.ones((1, 1), np.float32))


def test_a_loop_goes_on_while_a_number_of_the_device_says_so():
    @nki.jit
    def doubled(x, limit):
        tile, go_on = nl.load(x), True
        while nt.scalar(go_on):
            tile = nl.add(tile, tile)
            go_on = nl.less(tile[0:1, 0:1], nl.load(limit), dtype=nl.int32)
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, tile)
        return out

    x = np.ones((2, 3), np.float32)

    np.testing.assert_array_equal(doubled(x, np.array([[5.0]], np.float32)), 8 * x)


def test_lazy_zeros_are_zeros():
    @nki.jit
    def squares(x):
        acc = nl.zeros((12, 12), nl.float32, buffer=nl.psum, lazy_initialization=True)
        for _ in nl.affine_range(2):
            acc += nl.matmul(nl.load(x), nl.load(x), transpose_x=True)
        out = nl.ndarray((12, 12), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, acc)
        return out

    np.testing.assert_array_equal(squares(X), 2 * X.T @ X)


def test_too_many_partitions_are_rejected_where_the_kernel_loads_them():
    with pytest.raises(PartitionError) as caught:
        twice(np.zeros((129, 4), np.float32))

    lines = str(caught.value).splitlines()
    assert lines[0].startswith(__file__) and lines[0].endswith("129 partitions in SBUF")
    assert lines[1].strip() == "nl.store(out, value=nl.load(x) * 2)"
    assert lines[2].index("^") == lines[1].index("x) * 2")
    assert lines[3:5] == [
        "    expected: at most 128",
        "    got:      shape (129, 4), float32",
    ]


def test_a_name_of_an_instruction_is_a_label():
    @nki.jit
    def named(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nisa.tensor_copy(nl.load(x), name="copied")
        nl.store(out, nisa.tensor_scalar(data=tile, op0=nl.add, operand0=1.0, name="more"))
        return out

    np.testing.assert_array_equal(named(X), X + 1)


WRONG = {
    "a name that is none": (
        lambda t: nisa.tensor_copy(t, name=3), SignatureError, "tensor_copy: no parameter 'name'"),
    "a keyword of the compiler": (
        lambda t: nisa.tensor_copy(t, tensorizer="x"), SignatureError,
        "tensor_copy: no parameter 'tensorizer'"),
    "a missing argument": (
        lambda t: nisa.tensor_tensor(t, t), SignatureError, "missing a required argument: 'op'"),
    "positional where keyword-only": (
        lambda t: nisa.activation(nl.exp, t, None), SignatureError, "too many positional"),
    "a result outside HBM": (lambda t: t, MemorySpaceError, "returns a tensor in SBUF"),
    "a load from SBUF": (lambda t: nl.load(t), MemorySpaceError, "nl.load: src is in SBUF"),
    "a store to SBUF": (lambda t: nl.store(t, t), MemorySpaceError, "nl.store: dst is in SBUF"),
    "a string stored": (lambda t: nl.store(twice, t), SignatureError, "dst is a Kernel"),
    "a matmul of PSUM": (
        lambda t: nisa.nc_matmul(nisa.nc_matmul(t, t), t), MemorySpaceError,
        "stationary is in PSUM"),
    "a buffer that is none": (
        lambda t: nl.ndarray((2, 2), dtype=nl.float32, buffer="dram"), MemorySpaceError,
        "'dram' is not a memory"),
    "two partition dimensions": (
        lambda t: nl.ndarray((nl.par_dim(2), nl.par_dim(2)), dtype=nl.float32), KernelError,
        "a shape has one partition dimension"),
    "a tile as a condition": (
        lambda t: 1 if t > 0 else 2, KernelError, "a tile has no truth value"),
    "a tile as an index": (
        lambda t: t[nl.arange(8)[:, None], t], KernelError, "indirect"),
    "a mask that is a number": (
        lambda t: nl.copy(t, mask=3), SignatureError, "mask is a int"),
}  # fmt: skip


@pytest.mark.parametrize(("use", "error", "text"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_reported_at_its_line(use, error, text):
    @nki.jit
    def kernel(x):
        return use(nl.load(x))

    with pytest.raises(error, match=text) as caught:
        kernel(X)
    if error is not MemorySpaceError:  # a returned tile has no line
        assert str(caught.value).startswith(__file__)


def test_a_value_of_another_shape_is_not_stored():
    @nki.jit
    def kernel(x):
        out = nl.ndarray((8, 6), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, value=nl.load(x))

    with pytest.raises(KernelError, match=r"a value of shape \(8, 12\) is stored to .* \(8, 6\)"):
        kernel(X)


def test_sixty_four_bit_arrays_are_rejected():
    with pytest.raises(DTypeError, match="float64"):
        twice(X.astype(np.float64))


@pytest.mark.parametrize("mode", ["auto", "trace", "simulation", "baremetal", "jax", "torchxla"])
def test_every_mode_of_jit_runs_here(mode):
    kernel = nki.jit(twice.function, mode=mode, show_compiler_tb=True)

    np.testing.assert_array_equal(kernel(X), 2 * X)


def test_a_kernel_that_returns_nothing_writes_the_tensors_it_is_given():
    """The dialect of SDK 2.20; 0.1 keeps it under kernel_return=False."""

    @nki.jit(kernel_return=False)
    def half(x, out):
        row = nl.program_id(0)
        nl.store(out[row : row + 1], nl.load(x[row : row + 1]) * 0.5)

    @nki.jit
    def through_another(x):
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        half(x, out)
        return out

    out = np.zeros_like(X)

    assert half[len(X)](X, out) is None
    np.testing.assert_array_equal(out, X / 2)
    np.testing.assert_array_equal(through_another[len(X)](X), X / 2)


def test_jit_rejects_what_would_change_the_call():
    with pytest.raises(UnsupportedError, match="jit\\(grid=2\\) is not modelled"):
        nki.jit(twice.function, grid=2)
    with pytest.raises(LaunchError, match="has no mode 'fast'"):
        nki.jit(twice.function, mode="fast")


def test_options_for_the_compiler_change_nothing_and_are_noted(caplog):
    with caplog.at_level(logging.INFO, logger="neuroncore.notes"):
        kernel = nki.jit(twice.function, show_compiler_tb=True, tensorizer_options="-O2")

    np.testing.assert_array_equal(kernel(X), 2 * X)
    said = " ".join(record.getMessage() for record in caplog.records)
    assert "nki.jit(show_compiler_tb=True)" in said
    assert "nki.jit(tensorizer_options='-O2')" in said


@pytest.mark.parametrize("harness", ["baremetal", "benchmark", "profile"])
def test_device_harnesses_run_here_and_say_so(harness):
    kernel = getattr(nki, harness)(warmup=5, iters=10)(twice)

    with pytest.warns(KernelWarning, match=f"nki.{harness} runs on the simulated machine"):
        np.testing.assert_array_equal(kernel(X), 2 * X)
    with pytest.raises(UnsupportedError, match="no measured latency"):
        kernel.benchmark_result  # noqa: B018


def test_simulate_kernel_takes_kernels_grids_and_functions():
    np.testing.assert_array_equal(nki.simulate_kernel(twice, X), 2 * X)
    np.testing.assert_array_equal(nki.simulate_kernel(twice.function, X), 2 * X)
    np.testing.assert_array_equal(
        nki.simulate_kernel(program_numbers[2, 2], 2, 2), [[0, 1], [2, 3]]
    )


def test_a_call_follows_the_choice_in_force_and_otherwise_the_one_at_decoration():
    @nki.jit
    def generation():
        assert nisa.get_nc_version() is wanted
        assert nisa.nc_version.gen2 <= nisa.get_nc_version() < nisa.nc_version.gen4

    assert isinstance(generation, Kernel) and generation.choice.target == "trn2"
    wanted = nisa.nc_version.gen3
    generation()
    wanted = nisa.nc_version.gen2
    token = CURRENT.set(Choice("beta1", "0.1", "trn1"))
    try:
        generation()
    finally:
        CURRENT.reset(token)
    token = CURRENT.set(Choice("beta2", "0.6", "trn1"))
    wanted = nisa.nc_version.gen3
    try:
        generation()
    finally:
        CURRENT.reset(token)


def test_options_of_the_choice_reach_the_machine():
    @nki.jit
    def kernel():
        out = nl.ndarray((2, 2), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(out, value=nl.ndarray((2, 2), dtype=nl.float32))
        return out

    assert np.isnan(kernel()).all()
    token = CURRENT.set(Choice("beta1", "0.1", options=Options(uninitialized="zero")))
    try:
        np.testing.assert_array_equal(kernel(), np.zeros((2, 2)))
    finally:
        CURRENT.reset(token)


def test_loop_bodies_run_once_per_number():
    """0.1 ran them once; here Python state in the body behaves as Python (documented)."""
    seen = []

    @nki.jit
    def kernel():
        for i in nl.affine_range(3):
            seen.append(i)
        for i in nl.sequential_range(4, 10, 3):
            seen.append(i)
        for i in nl.static_range(2):
            seen.append(i)

    kernel()
    assert seen == [0, 1, 2, 4, 7, 0, 1]


def test_bytes_of_a_block_are_read_as_another_dtype():
    @nki.jit
    def kernel(x):
        blocks = nl.ndarray((2, nl.par_dim(4), 2), np.float32, buffer=nl.sbuf)
        for b in nl.affine_range(2):
            blocks[b] = nl.load(x[:, 2 * b : 2 * b + 2])
        seen = blocks.view(nl.uint8)
        assert seen.shape == (2, 4, 8)
        out = nl.ndarray((4, 4), nl.uint8, buffer=nl.shared_hbm)
        nl.store(out, seen[1, :, 4:8])
        return out

    x = np.arange(16, dtype=np.float32).reshape(4, 4)

    np.testing.assert_array_equal(kernel(x), x[:, 3:].copy().view(np.uint8))
