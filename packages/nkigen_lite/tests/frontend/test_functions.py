"""Every translated function against NumPy: dtypes, ranks, empty arrays, sizes at the edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nkigen_lite
from nki_dtypes import resolve
from nkigen_lite import as_spec, trace

FORMATS = (
    "f32", "f16", "bf16", "tf32", "e4m3", "e4m3fn", "e5m2", "int8", "int16", "int32", "uint8",
    "uint16", "uint32", "bool",
)  # fmt: skip
FLOATS = ("f32", "f16", "bf16", "e4m3", "e5m2")
INTEGERS = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
SHAPES = [(), (1,), (0,), (127,), (129,), (3, 128), (2, 0, 3), (2, 3, 4), (2, 1, 3, 2)]

UNARY = {
    "negative": np.negative, "abs": np.abs, "sign": np.sign, "square": np.square, "exp": np.exp,
    "log": lambda x: np.log(np.abs(x) + 1), "log1p": lambda x: np.log1p(np.abs(x)),
    "expm1": np.expm1, "sqrt": lambda x: np.sqrt(np.abs(x)), "sin": np.sin, "cos": np.cos,
    "tanh": np.tanh, "floor": np.floor, "ceil": np.ceil, "rint": np.rint, "trunc": np.trunc,
    "logical_not": np.logical_not, "isnan": np.isnan, "isfinite": np.isfinite, "isinf": np.isinf,
    "positive": np.positive, "copy": np.copy, "rsqrt": lambda x: nkigen_lite.rsqrt(np.abs(x) + 1),
    "sigmoid": nkigen_lite.sigmoid, "silu": nkigen_lite.silu, "gelu": nkigen_lite.gelu,
    "erf": nkigen_lite.erf, "plus_half": lambda x: x + 0.5, "half_minus": lambda x: 0.5 - x,
    "cube": lambda x: x**3, "clip": lambda x: np.clip(x, 1, 3), "round": np.round,
}  # fmt: skip
BINARY = {
    "add": np.add, "subtract": lambda x, y: x - y, "multiply": np.multiply,
    "divide": lambda x, y: x / (np.abs(y) + 1), "maximum": np.maximum, "minimum": np.minimum,
    "floor_divide": lambda x, y: x // y, "mod": lambda x, y: x % y, "equal": np.equal,
    "not_equal": lambda x, y: x != y, "less": np.less, "less_equal": np.less_equal,
    "greater": np.greater, "greater_equal": np.greater_equal, "logical_and": np.logical_and,
    "logical_or": np.logical_or, "logical_xor": np.logical_xor,
    "where": lambda x, y: np.where(x > y, x, y),
}  # fmt: skip
FORMULAS = {
    u.__name__: u
    for u in (
        np.fabs, np.exp2, np.cbrt, np.sinh, np.cosh, np.arcsinh, np.signbit, np.degrees,
        np.radians, np.hypot, np.logaddexp, np.logaddexp2, np.copysign, np.heaviside, np.fmax,
        np.fmin, np.fmod, np.divmod, np.float_power,
    )
}  # fmt: skip
BITS = {
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "left_shift": lambda x, y: x << (y & 7), "right_shift": lambda x, y: x >> (y & 7),
    "invert": lambda x, y: ~x,
}  # fmt: skip
REDUCTIONS = {
    "sum": np.sum, "mean": np.mean, "prod": np.prod, "any": np.any, "all": np.all, "var": np.var,
    "std": np.std, "max": np.max, "min": np.min,
}  # fmt: skip


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "tf32", "e4m3fn", "bool"])
@pytest.mark.parametrize("function", UNARY.values(), ids=UNARY)
def test_a_function_of_one_array_gives_numpys_values_and_type(function, dtype, agree, arrays_for):
    for shape in SHAPES:
        agree(function, *arrays_for([f"{dtype}{list(shape)}"]))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool"])
@pytest.mark.parametrize("function", BINARY.values(), ids=BINARY)
def test_a_function_of_two_arrays_broadcasts_as_numpy_does(function, dtype, agree, arrays_for):
    for shapes in ([(), ()], [(4, 3), (3,)], [(2, 1, 3), (5, 1)], [(0, 2), (1,)]):
        agree(function, *arrays_for([f"{dtype}{list(s)}" for s in shapes]))


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", *INTEGERS, "bool"])
@pytest.mark.parametrize("function", FORMULAS.values(), ids=FORMULAS)
def test_functions_written_with_others_have_numpys_types(function, dtype, agree, arrays_for):
    specs = [f"{dtype}[4, 3]", f"{dtype}[3]"][: function.nin]
    x, *rest = arrays_for(specs)
    y = [(r * 0 + 3).astype(r.dtype) for r in rest]
    agree(lambda x, *y: function(x, *y), x, *y, ulps=16)


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
@pytest.mark.parametrize("function", BITS.values(), ids=BITS)
def test_bits_are_numpys(function, dtype, agree, arrays_for):
    agree(function, *arrays_for([f"{dtype}[4, 3]", f"{dtype}[3]"]))


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "int8", "uint8", "int32", "bool"])
@pytest.mark.parametrize("function", REDUCTIONS.values(), ids=REDUCTIONS)
def test_reductions_over_any_axes(function, dtype, keepdims, agree, arrays_for):
    cases: list[tuple[tuple[int, ...], Any]] = [
        ((), None), ((129,), 0), ((3, 4, 5), None), ((3, 4, 5), (0, -1)), ((2, 3), -2),
        ((2, 3), ()),
    ]  # fmt: skip
    for shape, axis in cases:
        if dtype == "bf16" and function in (np.var, np.std):
            continue  # ours is computed in float32, NumPy's in bfloat16
        agree(
            lambda x, a=axis: function(x, axis=a, keepdims=keepdims),
            *arrays_for([f"{dtype}{list(shape)}"]),
        )


@pytest.mark.parametrize("function", [np.argmax, np.argmin], ids=["argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "int8", "bool"])
def test_places_are_int32_and_the_first_of_equals(function, dtype, agree, arrays_for):
    for axis in (None, 0, -1):
        agree(lambda x, a=axis: function(x, axis=a), *arrays_for([f"{dtype}[5, 6]"]))
    x = np.array([1, np.nan, 3, np.nan], np.float32)
    agree(function, x)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "int8", "int32", "bool"])
@pytest.mark.parametrize(
    "shapes",
    [
        ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 2)), ((3, 4), (4, 2)), ((5, 3, 4), (4, 2)),
        ((2, 1, 3, 4), (5, 4, 2)), ((0, 4), (4, 2)), ((3, 0), (0, 2)),
    ],
    ids=str,
)  # fmt: skip
def test_matrix_products_of_every_rank(shapes, dtype, agree, arrays_for):
    given = arrays_for([f"{dtype}{list(s)}" for s in shapes])
    agree(np.matmul, *given)
    if dtype not in ("bf16", "bool"):
        agree(np.dot, *given)


def test_dot_contracts_the_last_with_the_last_but_one_axis(agree, arrays_for):
    agree(np.dot, *arrays_for(["f32[2, 3, 4]", "f32[5, 4, 6]"]))
    agree(np.dot, *arrays_for(["f32[2, 3, 4]", "f32[4]"]))


MOVES = {
    "T": lambda x: x.T,
    "transpose": lambda x: np.transpose(x, (1, -1, 0)),
    "swapaxes": lambda x: x.swapaxes(0, -1),
    "moveaxis": lambda x: np.moveaxis(x, 0, -1),
    "reshape": lambda x: x.reshape(-1, 6),
    "reshape_of_T": lambda x: x.T.reshape(4, -1),
    "squeeze": lambda x: np.squeeze(x[None, :, :1], axis=(0, 2)),
    "expand_dims": lambda x: np.expand_dims(x, (0, -1)),
    "broadcast_to": lambda x: np.broadcast_to(x, (2, *x.shape)),
    "concatenate": lambda x: np.concatenate([x, x[:1]], axis=0),
    "concatenate_flat": lambda x: np.concatenate([x, x[:1]], axis=None),
    "stack": lambda x: np.stack([x, x], axis=-1),
    "split": lambda x: tuple(np.split(x, 2, axis=0)),
    "split_at": lambda x: tuple(np.split(x, [1, 3], axis=2)),
    "flip": lambda x: np.flip(x, 1),
    "reversed": lambda x: x[::-1, ::-2, ...],
    "strided": lambda x: x[1::2, None, 0, 1:-1],
    "row": lambda x: x[-1, 2],
    "element": lambda x: x[1, 2, 3],
    "tril": lambda x: np.tril(x, 1),
    "triu": lambda x: np.triu(x, -1),
    "ravel": lambda x: x.ravel(),
    "flatten": lambda x: x.T.flatten(),
    "rows": lambda x: sum(row for row in x) if x.dtype != bool else x[0],
    "zeros_like": lambda x: np.zeros_like(x) + np.ones_like(x, shape=(2, 1, 1, 1)),
    "full_like": lambda x: np.full_like(x, 1, dtype=np.int64),
}


@pytest.mark.parametrize("dtype", ["f32", "tf32", "e4m3fn", "bf16", "int8", "uint32", "bool"])
@pytest.mark.parametrize("function", MOVES.values(), ids=MOVES)
def test_moving_elements_keeps_their_bits(function, dtype, agree, arrays_for):
    agree(function, *arrays_for([f"{dtype}[4, 3, 4]"]))


@pytest.mark.parametrize("target", [*FORMATS, "int64", "float64"])
@pytest.mark.parametrize("source", FORMATS)
def test_astype_converts_as_numpy_does(source, target, agree, arrays_for):
    name = target if target.endswith("64") else as_spec(f"{target}[]").storage
    (x,) = arrays_for([f"{source}[3, 5]"])
    if "u" in target or target == "bool":
        x = np.abs(x)
    agree(lambda x: x.astype(name), x)


def test_tfloat32_is_kept_by_moves_and_is_float32_in_arithmetic():
    graph = trace(lambda x: (x.T[::2], x + x, x.astype("tf32")), "tf32[2, 2]")

    assert [str(graph.specs[v].dtype) for v in graph.outputs] == ["tfloat32", "float32", "tfloat32"]


def test_constants_of_any_content_and_python_numbers(agree, arrays_for):
    table = np.arange(12).reshape(3, 4) % 5
    (x,) = arrays_for(["f32[3, 4]"])
    agree(lambda x: x * table + np.float64(0.1) - (table > 2) + [1, 2, 3, 4], x)
    agree(lambda x: (x, table, 3, 2.5, np.bool_(True)), x)


def test_64_bits_in_between_are_tracked_as_numpy_would(agree, arrays_for):
    (x,) = arrays_for(["uint8[5]"])

    agree(lambda x: x.sum() + np.int32(1), x)  # uint64 + int32 is float64
    agree(lambda x: x.astype(np.int64) - 300, x)


@pytest.mark.parametrize(
    "compare", [np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal]
)
def test_comparisons_with_integers_beyond_the_type(compare, agree, arrays_for):
    (x,) = arrays_for(["uint8[5]"])
    for number in (300, -1):
        agree(lambda x, n=number: (compare(x, n), compare(n, x)), x)


def test_sums_of_narrow_floats_are_rounded_once():
    ones = np.ones(4096, resolve("bf16").storage)

    assert trace(np.sum, ones).run(ones) == 4096


def test_variance_of_narrow_floats_is_computed_in_float32(arrays_for, same):
    (x,) = arrays_for(["bf16[64]"])
    exact = x.astype(np.float64).var(ddof=1)

    assert same(trace(lambda x: x.var(ddof=1), x).run(x), np.asarray(exact).astype(x.dtype), ulps=1)


def test_no_freedom_left_is_infinite_variance_for_any_integer_type():
    x = np.array([1.0, 2.0, 4.0], np.float32)

    assert trace(lambda x: x.var(ddof=np.uint8(4)), x).run(x) == np.inf


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum, np.minimum])
def test_truths_accumulate_as_truths(ufunc, agree, arrays_for):
    (x,) = arrays_for(["int8[3, 9]"])
    agree(lambda x: ufunc.accumulate(x > 0, axis=1, dtype=bool), x)


def test_a_quotient_and_its_rest_come_together():
    x = np.array([-7.5, 7.5, 3.0], np.float32)

    quotient, rest = trace(lambda x: divmod(x, 2), "f32[3]").run(x)

    assert (quotient.tolist(), rest.tolist()) == ([-4.0, 3.0, 1.0], [0.5, 1.5, 1.0])


def test_a_function_may_only_write_into_its_arguments():
    def step(p, g):
        p -= 0.5 * g

    p, g = np.ones(4, np.float32), np.arange(4, dtype=np.float32)

    assert trace(step, p, g).run(p, g) is None
    assert p.tolist() == [1.0, 0.5, 0.0, -0.5]


def test_truths_are_close_where_they_are_equal():
    left, right = np.array([True, True, False]), np.array([True, False, False])
    near = nkigen_lite.compile(np.isclose, left, right)

    assert np.array_equal(near(left, right), np.isclose(left, right))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "float16"])
@pytest.mark.parametrize(
    "function",
    [lambda x: np.polyval([2, 1], x), lambda x: np.multiply.outer(x, 3),
     lambda x: np.add.outer(300, x), lambda x: np.kron(x, 3), lambda x: np.outer(x, 3)],
    ids=["polyval", "multiply.outer", "add.outer", "kron", "outer"],
)  # fmt: skip
def test_numbers_that_numpy_makes_arrays_of_are_not_weak(function, dtype):
    x = np.array([1, 100, 120]).astype(dtype)
    expected = function(x)

    found = trace(function, x).run(x)

    assert found.dtype == nkigen_lite.tensors.spec.narrow(expected.dtype).dtype
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("weights", ["int8", "bool", "float16", "float32"])
@pytest.mark.parametrize("dtype", ["int8", "bool", "int32", "float16"])
def test_averages_of_integers_are_taken_of_floats(dtype, weights):
    x = np.array([[1, 100, 120], [3, 4, 90]]).astype(dtype)
    w = np.array([1, 2, 3]).astype(weights)
    expected = np.average(x, 1, w)

    found = trace(lambda x, w: np.average(x, 1, w), x, w).run(x, w)

    assert found.dtype == nkigen_lite.tensors.spec.narrow(expected.dtype).dtype
    assert np.allclose(found, expected, rtol=4 * np.finfo(found.dtype).eps)


@pytest.mark.parametrize("dtype", ["e5m2", "e4m3", "bf16", "f16"])
@pytest.mark.parametrize("whole", ["int8", "uint8"])
def test_whole_numbers_are_not_rounded_to_the_format_they_are_near_to(whole, dtype):
    a = np.array([1, 96, 120]).astype(resolve(dtype).storage)
    b = np.array([1, 101, 120], whole)

    found = trace(lambda a, b: (np.isclose(a, b, atol=1), np.isclose(b, a, atol=1)), a, b).run(a, b)

    assert np.array_equal(found, [[True, False, dtype != "e5m2"]] * 2)  # 120 is 128 in e5m2


@pytest.mark.parametrize("tolerance", [{"atol": 2}, {"rtol": 0.1}, {"atol": 0.5, "rtol": 0}])
@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
def test_distances_of_integers_do_not_wrap(dtype, tolerance):
    ends = [(2**31 - 1, -(2**31)), (2**24 + 1, 2**24), (127, -128), (255, 0), (3, 4), (4, 3)]
    a, b = np.array(ends).T.astype(dtype)

    found = trace(lambda a, b: np.isclose(a, b, **tolerance), a, b).run(a, b)

    assert np.array_equal(found, np.isclose(a, b, **tolerance))


@pytest.mark.parametrize("dtype", ["int8", "int16", "float16", "float32"])
@pytest.mark.parametrize(
    "choices",
    [lambda x, b: ([x, 3], 2), lambda x, b: ([x, b], 0), lambda x, b: ([x, True], 1),
     lambda x, b: ([3, x], x), lambda x, b: ([x, 2.5], 0), lambda x, b: ([[1, 2, 3], x], 0)],
    ids=["numbers", "truths", "a truth", "arrays behind", "a float", "a list"],
)  # fmt: skip
def test_choices_have_the_dtype_of_all_of_them(choices, dtype):
    def selected(x):
        chosen, default = choices(x, x > 5)
        return np.select([x > 2, x < 0], chosen, default)

    x = np.array([1, 100, -12]).astype(dtype)
    expected = selected(x)

    found = trace(selected, x).run(x)

    assert found.dtype == nkigen_lite.tensors.spec.narrow(expected.dtype).dtype
    assert np.array_equal(found, expected)
