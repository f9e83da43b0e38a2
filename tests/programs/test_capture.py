"""Kernels become programs: loops, names, origins, tiles in lists, arguments, rejections."""

from __future__ import annotations

import functools
import runpy
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from neuroncore.errors import LaunchError, UnsupportedError
from neuroncore.program import calls, capture, emit, execute_program, parse_program
from nki_runtime import use

KERNELS = Path(__file__).parent / "kernels.py"
RANDOM = np.random.default_rng(11)


@pytest.fixture
def kernels() -> Iterator[SimpleNamespace]:
    with use("beta2", nki="0.6"):
        yield SimpleNamespace(**runpy.run_path(str(KERNELS)))


def lines_of(program) -> list[str]:
    return str(program).splitlines()


def random(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def matmul_lines(size: int) -> list[str]:
    """What the program of `kernels.py:matmul` prints for square matrices, a multiple of 512."""
    wide, tall = size // 512, size // 128
    return [
        f"    out = buffer(bfloat16[{size}, {size}], shared_hbm)",
        f"    for n in range({wide}):",
        f"        tile = buffer(bfloat16[128, {tall}, 512], sbuf)",
        f"        for k in range({tall}):",
        "            dma_copy(dst=tile[:, k, :], "
        "src=right[128*k : 128*k + 128, 512*n : 512*n + 512])",
        f"        for m in range({tall}):",
        "            total = buffer(float32[128, 512], psum)",
        f"            for k in range({tall}):",
        "                block = buffer(bfloat16[128, 128], sbuf)",
        "                dma_copy(dst=block[:, :], "
        "src=left[128*k : 128*k + 128, 128*m : 128*m + 128])",
        "                nc_matmul(dst=total[:, :], stationary=block[:, :], moving=tile[:, k, :])",
        "            result = buffer(bfloat16[128, 512], sbuf)",
        "            tensor_copy(dst=result[:, :], src=total[:, :])",
        "            dma_copy(dst=out[128*m : 128*m + 128, 512*n : 512*n + 512], src=result[:, :])",
        "    return out",
    ]


@pytest.mark.parametrize("size", [1024, pytest.param(2048, marks=pytest.mark.thorough)])
def test_a_tiled_matmul_is_a_page_however_large(kernels, size):
    left, right = (random(size, size).astype(ml_dtypes.bfloat16) for _ in range(2))

    program = capture(kernels.matmul, left, right)

    assert lines_of(program)[2:] == matmul_lines(size)


def test_unrolled_and_rolled_programs_give_the_same_bytes(kernels):
    left, right = random(256, 256), random(256, 1024)

    flat = capture(kernels.matmul, left, right, rolled=False)
    rolled = capture(kernels.matmul, left, right)

    assert len(lines_of(flat)) > 2 * len(lines_of(rolled))
    first, second = (execute_program(p, [left, right])[0] for p in (flat, rolled))
    assert first.tobytes() == second.tobytes()


def test_tiles_in_lists_of_lists_become_one_buffer(kernels):
    program = capture(kernels.nested_lists, random(256, 128))

    assert lines_of(program)[2:] == [
        "    tile = buffer(float32[128, 2, 4, 32], sbuf)",
        "    for i in range(2):",
        "        for j in range(4):",
        "            dma_copy(dst=tile[:, i, j, :], src=x[128*i : 128*i + 128, 32*j : 32*j + 32])",
        "    out = buffer(float32[256, 128], shared_hbm)",
        "    for j in range(4):",
        "        for i in range(2):",
        "            tensor_scalar(dst=tile[:, i, j, :], data=tile[:, i, j, :], operand0=2.0, "
        "op0=multiply)",
        "            dma_copy(dst=out[128*i : 128*i + 128, 32*j : 32*j + 32], "
        "src=tile[:, i, j, :])",
        "    return out",
    ]


def test_an_accumulation_group_that_starts_anew_says_so(kernels):
    program = capture(kernels.one_bank_for_all, random(128, 256))

    asked = [c.attrs["accumulate"] for c in calls(program.body) if c.instruction == "nc_matmul"]
    assert asked == [False, True]


def test_results_are_made_outside_of_loops(kernels):
    program = capture(kernels.results_of_a_loop, random(128, 64))

    assert len(program.results) == 4
    assert not [line for line in lines_of(program) if "for " in line]


def test_a_tile_that_is_made_for_the_next_iteration_is_made_before_its_loop(kernels):
    program = capture(kernels.next_tile_made_last, random(128, 64))

    assert lines_of(program)[3:] == [
        "    tile = buffer(float32[32, 64], sbuf)",
        "    dma_copy(dst=tile[:, :], src=x[0:32, :])",
        "    dma_copy(dst=out[0:32, :], src=tile[:, :])",
        "    for i in range(3):",
        "        tile_2 = buffer(float32[32, 64], sbuf)",
        "        dma_copy(dst=tile_2[:, :], src=x[32*i + 32 : 32*i + 64, :])",
        "        dma_copy(dst=out[32*i + 32 : 32*i + 64, :], src=tile_2[:, :])",
        "    return out",
    ]


def test_every_statement_knows_its_line(kernels):
    source = KERNELS.read_text(encoding="utf-8").splitlines()

    program = capture(kernels.matmul, random(128, 128), random(128, 512))

    for call in calls(program.body):
        assert call.origin is not None
        assert f"nisa.{call.instruction}(" in source[call.origin.line - 1]


def test_arguments_keep_their_names_and_are_not_touched(kernels):
    x, pair = random(8, 8), (random(4, 4), np.zeros((4, 4), np.float32))
    kept = x.copy()

    program = capture(kernels.in_place, x, pair, factor=0.5)

    assert [b.name for b in program.parameters] == ["x", "pair_0", "pair_1"]
    assert program.results == ("pair_1", "x")
    assert next(calls(program.body)).name == "fetch"
    assert np.array_equal(x, kept)
    assert not pair[1].any()


def test_a_captured_program_writes_the_arrays_it_is_given(kernels):
    program = capture(kernels.in_place, random(8, 8), (random(4, 4), random(4, 4)))
    x, first, second = random(8, 8), random(4, 4), random(4, 4)
    kept = x.copy()

    results = execute_program(program, [x, first, second])

    assert np.array_equal(x, 3 * kept)
    assert np.array_equal(second, first)
    assert all(np.array_equal(a, b) for a, b in zip(results, (second, x), strict=True))


def test_a_captured_program_parses_back(kernels):
    for program in (
        capture(kernels.matmul, random(256, 128), random(256, 512)),
        capture(kernels.nested_lists, random(256, 128)),
    ):
        assert parse_program(str(program)) == program


@pytest.mark.parametrize(
    ("shape", "dim", "step"),
    [((4, 2, 8), 0, 2), ((2, 4, 8), 1, 2), ((64,), 0, 2), ((2, 2, 2, 8), 1, 1)],
)
def test_an_index_into_a_reshaped_tensor_moves_by_its_dimensions(kernels, shape, dim, step):
    """The last one's dimension is half of one of the table's: a program would lose its end."""
    table, number = random(4, 2, 8), np.array([[step]], np.int32)
    first = step * int(np.prod(shape[dim + 1 :]))
    expected = table.reshape(-1)[None, first : first + 8]

    assert np.array_equal(kernels.row_of_a_reshaped(table, number, shape, dim), expected)
    if shape != table.shape:
        with pytest.raises(UnsupportedError, match="of a tensor that has been reshaped"):
            capture(kernels.row_of_a_reshaped, table, number, shape, dim)
        return
    program = capture(kernels.row_of_a_reshaped, table, number, shape, dim)
    assert np.array_equal(execute_program(program, [table, number])[0], expected)


def test_a_kernel_without_a_name_of_pythons_makes_a_program_that_parses_back(kernels):
    def odd(x):
        return kernels.results_of_a_loop(x)

    def debug(x):
        return odd(x)

    odd.__name__, debug.__name__ = "class", "__debug__"
    for kernel in (odd, debug, lambda x: odd(x), functools.partial(odd)):
        program = capture(kernel, random(128, 64))
        assert program.name == "kernel"
        assert parse_program(str(program)) == program
        assert "def kernel(" in emit(program, "0.6")


class Nameless:
    """Called like a kernel; its name is not text."""

    __name__ = None

    def __init__(self, kernel):
        self.kernel = kernel

    def __call__(self, x):
        return self.kernel(x)


def test_a_kernel_whose_name_is_no_text_is_called_kernel(kernels):
    assert capture(Nameless(kernels.results_of_a_loop), random(128, 64)).name == "kernel"


@pytest.mark.parametrize(
    ("first", "second"), [("\u00b5", "\u03bc"), ("s", "\u017f"), ("x", "\U0001d431")]
)
def test_names_that_python_reads_as_one_name_two_buffers(kernels, tmp_path, first, second):
    """Python folds the micro sign into mu, the long s into s."""
    x = random(128, 16)
    program = capture(kernels.difference_of_named, x, first, second)

    assert parse_program(str(program)) == program
    assert np.array_equal(execute_program(program, [x])[0], x - 5)
    path = tmp_path / "emitted.py"
    path.write_text(emit(program, "0.6"), encoding="utf-8")
    assert np.array_equal(runpy.run_path(str(path))[program.name](x), x - 5)


@pytest.mark.parametrize("container", [0, "\u00b5", "layer.weight", "a b", "class"])
def test_parameters_inside_arguments_have_names_of_their_own(kernels, tmp_path, container):
    """A tuple x beside a parameter x_0; keys that are not names, or one with a tile's."""
    one, other = random(128, 16), random(128, 16)
    given = (other,) if container == 0 else {container: other}
    program = capture(kernels.difference_of_parts, one, given)

    assert parse_program(str(program)) == program
    assert np.array_equal(execute_program(program, [one, other])[0], one - other)
    path = tmp_path / "emitted.py"
    path.write_text(emit(program, "0.6"), encoding="utf-8")
    found = runpy.run_path(str(path))[program.name](one, other)
    assert np.array_equal(found, one - other)


@pytest.mark.parametrize("what", [None, "rows_doubled", object(), dict, print, max, str.join])
def test_what_is_no_kernel_is_not_captured(what):
    with pytest.raises(LaunchError, match="capture takes a kernel"):
        capture(what, np.ones((4, 8), np.float32))


def test_what_a_program_cannot_say_is_rejected(kernels):
    with pytest.raises(UnsupportedError, match="returns a part of a tensor"):
        capture(kernels.returns_a_part, random(128, 64))
    with pytest.raises(UnsupportedError, match="do not give what the kernel gives"):
        capture(kernels.zeros_in_hbm, random(128, 64))
