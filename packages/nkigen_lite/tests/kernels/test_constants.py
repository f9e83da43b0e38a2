"""Arrays of any content in the function: constants of the program and of its source."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nki_runtime
from neuroncore.checks.subset import check_script
from neuroncore.program import Allocate, elements_of, execute_program, parse_program, print_program
from nkigen_lite.compiler.compile import Compiled, compile
from nkigen_lite.fusion.constant_tables import MOST_RUNS

VERSIONS = ("0.2", "0.3", "0.4", "0.5", "0.6", "0.7")
LOW = ("bfloat16", "float16", "float8_e4m3", "float8_e4m3fn", "float8_e5m2")


def held(kernel: Compiled) -> list[Any]:
    """The constants of the program, and its parameters that were constants."""
    body = kernel.program.body
    small = [s.buffer for s in body if isinstance(s, Allocate) and s.buffer.content is not None]
    return [*(elements_of(b) for b in small), *kernel.constants.values()]


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


# -- what people write ----------------------------------------------------------------------------


def angles(rows: int, columns: int) -> np.ndarray:
    return np.outer(np.arange(rows), 1 / 10000 ** (np.arange(columns) / columns))


def rotated(x: Any, cos: Any, sin: Any) -> Any:
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


@pytest.mark.parametrize("rows", [1, 127, 512])
def test_rotary_positions_with_tables_around_the_function(assert_lowers_right, rows):
    table = angles(rows, 32)
    cos, sin = np.cos(table).astype(np.float32), np.sin(table).astype(np.float32)

    kernel = assert_lowers_right(lambda x: rotated(x, cos, sin), random(rows, 64))

    assert kernel.stats.dmas <= 6


def test_rotary_positions_computed_inside_the_function(assert_lowers_right):
    def rope(x):
        table = angles(x.shape[-2], x.shape[-1] // 2)
        return rotated(x, np.cos(table), np.sin(table))

    kernel = assert_lowers_right(rope, random(3, 130, 64))

    assert [c.shape for c in held(kernel)] == [(130, 32), (130, 32)]


def test_sinusoidal_positions(assert_lowers_right):
    def encoded(x):
        rows, columns = x.shape
        place = np.arange(rows)[:, None] / 10000 ** (2 * np.arange(columns // 2) / columns)
        return x + np.stack([np.sin(place), np.cos(place)], -1).reshape(rows, columns)

    assert_lowers_right(encoded, random(200, 48))


def test_attention_with_slopes(assert_lowers_right):
    def attention(q, k, v):
        heads, rows, columns = q.shape
        slopes = 2.0 ** (-8 * np.arange(1, heads + 1) / heads)
        bias = -slopes[:, None, None] * np.abs(np.arange(rows)[:, None] - np.arange(rows))
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(columns) + bias
        exp = np.exp(scores - scores.max(-1, keepdims=True))
        return exp / exp.sum(-1, keepdims=True) @ v

    assert_lowers_right(attention, *random(3, 4, 140, 32))


@pytest.mark.parametrize(
    "matrix",
    [
        np.eye(200, dtype=np.float32), np.eye(130, 200, k=3, dtype=np.float32),
        random(90, 200), np.ones((150, 200), np.float32), np.ones(200, np.float32), random(200),
        np.broadcast_to(random(200), (20, 200)),
    ],
    ids=["eye", "shifted", "weight", "ones", "a row of ones", "a row", "equal rows"],
)  # fmt: skip
def test_products_with_a_matrix_around_the_function(assert_lowers_right, matrix):
    assert_lowers_right(lambda x: matrix @ x, random(200, 70))
    assert_lowers_right(lambda x: x @ matrix.T, random(70, 200))


def test_a_batch_of_products_with_one_matrix(assert_lowers_right):
    weight = random(64, 32)

    assert_lowers_right(lambda x: np.tanh(x @ weight) @ weight.T, random(3, 50, 64))
    assert_lowers_right(lambda x: np.dot(x, np.broadcast_to(weight, (3, 64, 32))), random(50, 64))
    assert_lowers_right(lambda x: x @ np.stack([weight, weight * 2, weight]), random(3, 50, 64))


def test_numbers_in_between(assert_lowers_right):
    assert_lowers_right(lambda x: x + np.linspace(0, 1, 300), random(130, 300))


# -- how they are held ----------------------------------------------------------------------------


def test_what_is_the_same_along_an_axis_is_held_once(assert_lowers_right):
    row = random(300)
    full = np.broadcast_to(row, (256, 300))

    kernel = assert_lowers_right(lambda x: x * full, random(256, 300))

    assert [c.shape for c in held(kernel)] == [(300,)]


def test_equal_arrays_are_one(assert_lowers_right):
    first, second = random(40, 60), random(40, 60, seed=1)

    def function(x):
        return (x * first + second) * first.copy() + np.broadcast_to(second, (3, 40, 60))

    kernel = assert_lowers_right(function, random(3, 40, 60))

    assert len(held(kernel)) == 2


def test_an_even_count_is_made_on_chip():
    def function(x):
        return x + np.arange(7, 7 + 3 * 5000, 3, dtype=np.float32)

    assert held(compile(function, "f32[2, 5000]")) == []


def test_a_constant_takes_about_as_long_as_runs_that_stay_on_chip():
    table = np.repeat(np.array([1.5, 2.5, -1.0], np.float32), 100)
    kernel, old = (compile(lambda x: x + table, "f32[200, 300]", nki=v) for v in ("0.6", "0.2"))

    assert (len(held(kernel)), len(held(old))) == (1, 0)
    assert kernel.stats.predicted_us < 1.05 * old.stats.predicted_us


def test_where_no_array_is_documented_only_what_is_no_code_is_one():
    few = np.resize(np.array([0.5, 7, 7, -3], np.float32), 2 * MOST_RUNS // 3)
    many = np.resize(np.array([0.5, 7, -3], np.float32), 2 * MOST_RUNS)

    long = np.repeat(np.array([0.5, 7], np.float32), 100_000)
    for array, count in ((few, 0), (many, 1), (long, 1)):
        kernel = compile(lambda x, a=array: x + a, f"f32[2, {array.size}]", nki="0.2")
        assert len(held(kernel)) == count


@pytest.mark.parametrize(("size", "parameters"), [(1024, ["x"]), (1025, ["x", "table"])])
def test_arrays_of_more_than_4_kib_are_inputs_of_the_kernel(assert_lowers_right, size, parameters):
    table = random(size)

    kernel = assert_lowers_right(lambda x: x * table, random(3, size))

    assert [p.name for p in kernel.program.parameters] == parameters
    assert list(kernel.constants) == parameters[1:]
    assert len(kernel.source) < 9000
    alone = execute_program(kernel.self_contained, kernel.inputs(random(3, size))[:1])
    assert np.array_equal(alone[0], kernel(random(3, size)))


def test_a_large_array_is_not_looked_at_element_by_element():
    weight = random(1500, 1500)

    kernel = compile(lambda x: x @ weight, "f32[128, 1500]")

    (constant,) = held(kernel)
    assert constant.tobytes() == weight.tobytes()
    assert kernel.plan.tables["v0"].runs == ()


# -- bits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", LOW)
def test_low_floats_keep_their_bits(moves, dtype):
    numbers = random(130, 70).astype(dtype)

    kernel = moves(lambda x: np.concatenate([x, numbers]), random(2, 70).astype(dtype))

    assert held(kernel)[0].tobytes() == numbers.tobytes()


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "bool"]
)  # fmt: skip
def test_integers_and_truths_are_exact(exactly, dtype):
    rng = np.random.default_rng(7)
    size = np.dtype(dtype).itemsize
    bits = rng.integers(0, 256, 130 * 70 * size, dtype=np.uint8)
    numbers = (bits % 2).astype(bool) if dtype == "bool" else bits.view(dtype)
    table = numbers.reshape(130, 70)

    exactly(lambda x: (x ^ table, np.where(x > 1, table, table[::-1])), table[:, ::-1].copy())


def test_every_bit_of_a_float_arrives(moves):
    payloads = np.array([0x7FC00001, 0xFFC12345, 0x80000000, 1, 0x7F800000], np.uint32)
    table = np.tile(payloads.view(np.float32), 70)

    moves(lambda x: np.stack([x, table]), random(350))


def test_infinities_are_no_count(moves):
    ends = np.array([np.inf, -np.inf], np.float32)

    moves(lambda x: np.stack([x, ends]), random(2))


@pytest.mark.parametrize("place", range(6))
def test_a_mask_without_one_place_is_no_count(exactly, place):
    kept = np.arange(6) != place

    exactly(lambda x: np.where(kept, x, 0), np.arange(1, 7, dtype=np.float32))


@pytest.mark.parametrize("nki", ["0.2", "0.6"])
@pytest.mark.parametrize("numbers", [[-0.0, -1, -2, -3], [5, -0.0, 7.5, 1], [0, -0.0, 0, 0]])
def test_a_zero_keeps_its_sign(numbers, nki):
    table = np.array(numbers, np.float32)
    x = np.ones(4, np.float32)

    found = compile(lambda x: table, x, nki=nki)(x)

    assert np.array_equal(np.signbit(found), np.signbit(table))


def test_integers_that_stop_at_the_largest_are_no_count(exactly):
    largest = np.array([126, 127, 127, 127], np.int8)

    exactly(lambda x: x ^ largest, np.arange(4, dtype=np.int8))


def test_choices_by_a_random_mask(exactly):
    mask = np.random.default_rng(1).random((150, 90)) > 0.5

    exactly(lambda x: (np.where(mask, x, 0), np.where(~mask & (x > 0), x, -1)),
            np.random.default_rng(2).integers(-99, 99, (150, 90), dtype=np.int32))  # fmt: skip


def test_constants_of_low_precision_are_multiplied_as_they_are(assert_lowers_right):
    weight = random(70, 40).astype(ml_dtypes.bfloat16)

    assert_lowers_right(
        lambda x: x @ weight.astype(x.dtype), random(30, 70).astype(ml_dtypes.bfloat16)
    )


def test_a_constant_may_be_the_result(exactly):
    table = (random(20, 30) * 1e6).astype(np.int32)

    exactly(lambda x: (x, table + 0 * x[:1]), np.ones(30, np.int32))


def test_written_arguments_take_constants(moves):
    table = random(2, 30)

    def write(x):
        x[3:5] = table
        return x[::2] * 1

    moves(write, random(7, 30))


# -- source ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_the_source_of_every_version_runs_unchanged(version, tmp_path: Path):
    table, mask = random(130, 70), random(70) > 0
    low = random(70, seed=1).astype(ml_dtypes.bfloat16)

    def function(x):
        return np.where(mask, x * table, 3) + low.astype(np.float32)

    x = random(130, 70, seed=2)
    kernel = compile(function, x, nki=version)
    file = tmp_path / "kernel.py"
    file.write_text(kernel.source, encoding="utf-8")

    with nki_runtime.use(nki=version):
        given = runpy.run_path(str(file))["function"](*kernel.inputs(x.copy()))

    assert given.tobytes() == kernel(x).tobytes() == function(x).tobytes()
    assert [f for f in check_script(file, version) if f.severity == "error"] == []
    assert parse_program(print_program(kernel.program)) == kernel.program


def test_the_same_function_gives_the_same_source():
    def source() -> str:
        table = angles(40, 8)
        return compile(lambda x: x * np.sin(table), "f32[40, 8]").source

    assert source() == source()


@pytest.mark.parametrize("shape", [(8,), (1, 8), (4, 8), (2, 4, 8)])
@pytest.mark.parametrize("axis", [-1, 0, None])
def test_extremes_of_arrays_scaled_by_one_number_of_any_shape(
    shape, axis, normal, assert_lowers_right
):
    scale = np.full(shape, 0.25, np.float32)
    for x in (normal(4, 8), normal(8), normal(4, 1)):
        assert_lowers_right(lambda x: (x * scale).max(axis), x)
        assert_lowers_right(lambda x: (x * scale).min(axis, keepdims=True), x)


def test_a_constant_of_several_batches_times_one_matrix(normal, assert_lowers_right):
    assert_lowers_right(lambda x: (np.full((2, 3, 4), 3, np.float32) @ x).sum(-1), normal(4, 4))
