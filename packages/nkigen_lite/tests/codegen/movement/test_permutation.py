"""Elements in another order by way of SBUF: bit for bit, in long runs, where that is faster."""

from __future__ import annotations

from math import prod
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from neuroncore.enums import MemorySpace
from neuroncore.program import check, execute_program
from nki_dtypes import resolve
from nkigen_lite.codegen.emission.writer import Writer
from nkigen_lite.codegen.movement.axis_placement import by_copies, by_transposes
from nkigen_lite.codegen.movement.hbm_copy import steps_of
from nkigen_lite.codegen.movement.permutation import Reorder
from nkigen_lite.compiler.compile import compile
from nkigen_lite.fusion.array_view import ArrayView, array_view_of

PLANS = {"copies": by_copies, "transposes": by_transposes}
DTYPES = ["float32", "bfloat16", "float16", "int32", "uint16", "int8", "bool"]


def reverse_axes(x: Any) -> Any:
    return np.transpose(x, (3, 2, 1, 0))


def weight_transpose(x: Any) -> Any:
    return np.transpose(x, (0, 2, 3, 4, 1))


def strided(x: Any) -> Any:
    return x[:, :, 0:27:2, 0:27:2]


def numbers(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Every bit pattern of the dtype's size is as likely as any other."""
    width = np.dtype(dtype).itemsize
    rng = np.random.default_rng([width, *shape])
    if np.dtype(dtype) == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    bits = rng.integers(0, 1 << (8 * width), shape, dtype=np.uint64)
    return bits.astype(f"u{width}").view(dtype)


def moved(plan: Any, axes: tuple[int, ...], steps: tuple[int, ...], x: np.ndarray) -> Any:
    """x[::steps] transposed by the plan alone; None without such a plan. Steps may be
    negative."""
    writer, dtype = Writer("kernel", "trn2", "0.6"), resolve(x.dtype.name)
    given = array_view_of(writer.parameter("x", x.shape, dtype).name, x.shape, dtype)
    shape = tuple(-(-n // abs(s)) for n, s in zip(x.shape, steps, strict=True))
    last = sum((n - 1) * a for n, a, s in zip(x.shape, given.strides, steps, strict=True) if s < 0)
    strides = tuple(a * s for a, s in zip(given.strides, steps, strict=True))
    shape, strides = (tuple(t[a] for a in axes) for t in (shape, strides))
    made = writer.allocate("out", shape, dtype, MemorySpace.shared_hbm)
    source = ArrayView("x", last, shape, strides, given.dtype, given.look)
    target = array_view_of(made.name, shape, dtype)
    pieces = plan(steps_of(target, source), x.dtype.itemsize)
    if pieces is None:
        return None
    Reorder(writer, target, source, pieces).write()
    program = writer.finish((made.name,))
    check(program)
    return execute_program(program, [x])[0]


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, tuple[int, ...], tuple[int, ...], tuple[int, ...], str]:
    rank = draw(st.integers(2, 6))
    sizes = st.sampled_from([1, 2, 3, 7, 16, 31, 127, 128, 129, 257])
    shape = tuple(draw(sizes) for _ in range(rank))
    assume(prod(shape) <= 2**17)
    axes = tuple(draw(st.permutations(range(rank))))
    steps = tuple(draw(st.sampled_from([1, 1, 1, 2, 3, -1, -1, -2])) for _ in range(rank))
    name = draw(st.sampled_from(["copies", "transposes"]))
    dtype = draw(st.sampled_from(DTYPES))
    return name, shape, axes, steps, dtype


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(case=cases())
def test_every_plan_moves_every_element(case):
    name, shape, axes, steps, dtype = case
    x = numbers(*shape, dtype=getattr(ml_dtypes, dtype) if dtype == "bfloat16" else dtype)

    found = moved(PLANS[name], axes, steps, x)

    if found is not None:
        wanted = x[tuple(slice(None, None, s) for s in steps)].transpose(axes)
        assert found.tobytes() == np.ascontiguousarray(wanted).tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_transposed_bit_for_bit(moves, dtype):
    kind = getattr(ml_dtypes, dtype) if dtype == "bfloat16" else np.dtype(dtype)

    moves(lambda x: x.T, numbers(130, 257, dtype=kind))
    moves(lambda x: x.transpose(0, 2, 1), numbers(129, 3, 150, dtype=kind))


@pytest.mark.parametrize("rows", [1, 7, 127, 128, 129, 511, 513])
@pytest.mark.parametrize("columns", [127, 257, 1030])
def test_matrices_of_any_size_are_transposed(moves, rows, columns):
    moves(lambda x: x.T, numbers(rows, columns))


def test_joined_parts_in_another_order(moves):
    moves(lambda x, y: np.concatenate([x.T, y], axis=1), numbers(300, 140), numbers(140, 20))
    moves(lambda x, y: np.stack([x, y], axis=-1), numbers(130, 140), numbers(130, 140))


@pytest.mark.parametrize("dtype", DTYPES)
def test_interleaved_arrays(moves, dtype):
    kind = getattr(ml_dtypes, dtype) if dtype == "bfloat16" else np.dtype(dtype)
    x, y = numbers(129, 130, dtype=kind), numbers(129, 130, dtype=kind)[::-1]

    kernel = moves(lambda x, y: np.stack([x, y, x], -1), x, y)
    assert "parts put together in SBUF: " in kernel.explain()
    moves(lambda x, y: np.stack([x, x[::-1]], -1), x, y)
    moves(lambda x, y: np.concatenate([x[:, None], y[:, None, ::-1]], 1), x, y)


@pytest.mark.parametrize("size", [2049, 128 * 300, 40960 + 7])
def test_interleaved_lines(moves, size):
    moves(lambda x, y: np.stack([x, y, y, x], -1).reshape(-1), numbers(size), numbers(size))
    moves(lambda x, y: np.stack([x[::2], y[1::2]], 1), numbers(2 * size), numbers(2 * size))


def test_a_reshape_across_axes(moves):
    moves(lambda x: x.reshape(64, 4, 32).transpose(1, 0, 2).reshape(4, -1), numbers(64, 128))


BACKWARDS = {
    "columns": lambda x: x[:, ::-1],
    "both": lambda x: np.flip(x),
    "every other": lambda x: x[1:, ::-2],
    "transposed": lambda x: x[::-1, ::-1].T,
    "written backwards": lambda x: np.concatenate([x, x], 1)[:, ::-1] * 1,
}


@pytest.mark.parametrize("transposed", BACKWARDS.values(), ids=BACKWARDS)
@pytest.mark.parametrize("shape", [(130, 140), (3, 1030), (257, 129)])
def test_elements_backwards(moves, transposed, shape):
    moves(transposed, numbers(*shape, dtype=np.int32) >> 8)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_is_reversed(moves, dtype):
    kind = getattr(ml_dtypes, dtype) if dtype == "bfloat16" else np.dtype(dtype)

    moves(lambda x: x[:, ::-1], numbers(129, 260, dtype=kind))


def test_a_write_backwards(moves):
    def write(x: Any, y: Any) -> Any:
        x[:, ::-1] = y
        return x + 0

    x, y = (numbers(130, 140, dtype=np.int32) >> n for n in (8, 9))
    moves(write, x, y)


def test_columns_are_reversed_on_chip_between_two_dmas_with_long_runs():
    """460.0 us by the one DMA that moves elements one by one."""
    kernel = compile(lambda x: x[:, ::-1], "f32[1024, 1024]")

    assert (kernel.stats.instructions, kernel.stats.dmas) == (12, 8)
    assert kernel.stats.hbm_bytes == 2 * 4 * 1024 * 1024
    assert "pattern=[[2048, 128], [512, 4], [-1, 512]], offset=511" in kernel.source


def test_rows_backwards_are_one_dma():
    assert compile(lambda x: x[::-1], "f32[1024, 1024]").stats.dmas == 1


def test_a_number_repeated_along_rows(moves):
    moves(lambda x: np.broadcast_to(x[:, None], (300, 260)) * 1, numbers(300, dtype=np.int32) >> 9)


@pytest.mark.parametrize(
    ("function", "spec", "most", "mib", "dmas"),
    [
        (reverse_axes, "f32[2, 8, 128, 64]", 27, 1.1, 27),
        (reverse_axes, "f32[4, 16, 128, 128]", 100, 8.1, 100),
        (weight_transpose, "f32[1152, 3, 2, 16, 16]", 30, 13.6, 30),
        (strided, "f32[1, 16, 32, 32]", 3, 0.08, 2),
    ],
    ids=["reverse axes", "reverse 1 M elements", "weight transpose", "strided slice"],
)  # fmt: skip
def test_the_table(function, spec, most, mib, dmas):
    stats = compile(function, spec).stats

    assert stats.instructions <= most
    assert stats.dmas <= dmas
    assert stats.hbm_bytes <= mib * 2**20


@pytest.mark.parametrize(
    ("function", "spec", "microseconds"),
    [
        (reverse_axes, "f32[2, 8, 128, 64]", 58.6),
        (weight_transpose, "f32[1152, 3, 2, 16, 16]", 775.4),
        (lambda x: x.T, "f32[1024, 1024]", 460.0),
    ],
    ids=["reverse axes", "weight transpose", "matrix"],
)
def test_reordering_on_chip_is_faster_than_element_by_element(function, spec, microseconds):
    """`microseconds` is the latency of the one DMA that moves elements one by one."""
    assert compile(function, spec).stats.predicted_us < microseconds / 5


def test_the_single_dma_stays_where_it_is_faster():
    kernel = compile(strided, "f32[1, 16, 32, 32]")

    assert kernel.stats.instructions == 1
    assert "one DMA from HBM to HBM: " in kernel.explain()


def test_bytes_are_transposed_as_numbers():
    kernel = compile(lambda x: x.T, "int8[512, 512]")

    assert "transposed by TensorE: " in kernel.explain()


def test_the_first_trainium_turns_nothing_around_by_tensor_e():
    """It would change NaN and infinity."""
    kernel = compile(lambda x: x.T, "f32[256, 256]", target="trn1")

    assert "nc_transpose" not in kernel.source
