"""nl functions: values against float64, dtypes against the promotion rules."""

import math
import operator
from contextlib import contextmanager

import ml_dtypes
import numpy as np
import pytest

from neuroncore.errors import DTypeError, KernelError, ShapeError, UnsupportedError
from neuroncore.machine.backend import CURRENT, Choice
from neuroncore.options import Options
from nki_beta1 import nisa, nl

ulp = 2.0**-23


@contextmanager
def under(**options):
    token = CURRENT.set(Choice("beta1", "0.1", "trn2", Options(**options)))
    try:
        yield
    finally:
        CURRENT.reset(token)


ERF = np.vectorize(math.erf)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


UNARY = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "square": np.square,
    "abs": np.abs,
    "sign": np.sign,
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": sigmoid,
    "tanh": np.tanh,
    "silu": lambda x: x * sigmoid(x),
    "gelu": lambda x: 0.5 * x * (1 + ERF(x / math.sqrt(2))),
    "softplus": lambda x: np.logaddexp(0, x),
    "erf": ERF,
    "arctan": np.arctan,
    "sin": np.sin,
    "reciprocal": lambda x: 1 / x,
    "negative": np.negative,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
}
POSITIVE = {"log", "rsqrt", "reciprocal", "sqrt"}


@pytest.mark.parametrize("name", UNARY)
def test_a_function_of_one_tile(name, evaluate, rng):
    x = rng.uniform(0.1 if name in POSITIVE else -3, 3, (16, 64)).astype(np.float32)
    reference = UNARY[name](x.astype(np.float64))

    result = evaluate(getattr(nl, name), x)
    # A handful of float32 roundings, absolute where differences of numbers near 1 cancel.
    np.testing.assert_allclose(result, reference, rtol=8 * ulp, atol=8 * ulp)


def test_sin_reduces_its_argument(evaluate, rng):
    x = rng.uniform(-200, 200, (8, 256)).astype(np.float32)

    # the last of the three steps rounds at an ulp of 2π
    np.testing.assert_allclose(evaluate(nl.sin, x), np.sin(x.astype(np.float64)), atol=8 * ulp)


BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "maximum": np.maximum, "minimum": np.minimum, "power": np.power, "mod": np.mod,
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
    "greater": np.greater, "greater_equal": np.greater_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("shape", [(8, 12), (8, 1), (1, 12), (1, 1)], ids=str)
def test_a_function_of_two_tiles_broadcasts_along_both_axes(name, shape, evaluate, rng):
    x = rng.uniform(0.5, 4, (8, 12)).astype(np.float32)
    y = rng.uniform(0.5, 4, shape).astype(np.float32)
    y.flat[0] = x.flat[0]

    expected = BINARY[name](x.astype(np.float64), y.astype(np.float64))
    result = evaluate(getattr(nl, name), x, y)
    np.testing.assert_allclose(result.astype(np.float64), expected, rtol=8 * ulp, atol=8 * ulp)
    assert result.dtype == (np.bool_ if expected.dtype == np.bool_ else np.float32)


@pytest.mark.parametrize(
    "raised",
    [lambda x: nl.power(x, 1.5), lambda x: nl.power(1.5, x), lambda x: nl.power(x, x),
     lambda x: nl.power(x, x[:, 0:1]), lambda x: nl.power(x[:, 0:1], x)],
    ids=["number", "of a number", "tile", "column", "of a column"],
)  # fmt: skip
def test_a_power_of_what_is_in_psum_is_computed_in_sbuf(raised, evaluate, rng):
    """GpSimdE alone has it, which does not reach PSUM."""
    x = rng.uniform(0.5, 2, (8, 12)).astype(np.float32)

    def function(tile):
        total = nl.ndarray((8, 12), dtype=nl.float32, buffer=nl.psum)
        total[...] = nl.copy(tile)
        return raised(total)

    np.testing.assert_array_equal(evaluate(function, x), evaluate(raised, x))


def test_a_power_in_place_in_psum(evaluate, rng):
    x = rng.uniform(0.5, 2, (8, 12)).astype(np.float32)

    def function(tile):
        total = nl.ndarray((8, 12), dtype=nl.float32, buffer=nl.psum)
        total[...] = nl.copy(tile)
        total **= 1.5
        return total

    expected = x.astype(np.float64) ** 1.5
    np.testing.assert_allclose(evaluate(function, x), expected, rtol=2 * ulp)


def test_middle_axes_broadcast_without_copying(evaluate, rng):
    x = rng.uniform(0.5, 4, (4, 3, 5)).astype(np.float32)
    y = rng.uniform(0.5, 4, (4, 1, 5)).astype(np.float32)

    np.testing.assert_array_equal(evaluate(nl.add, x, y), x + y)


@pytest.mark.parametrize(
    ("name", "reference"),
    [("bitwise_and", np.bitwise_and), ("bitwise_or", np.bitwise_or),
     ("bitwise_xor", np.bitwise_xor), ("left_shift", np.left_shift)],
)  # fmt: skip
def test_bit_operations_keep_integers_exact(name, reference, evaluate, rng):
    x = rng.integers(0, 2**24, (8, 12), dtype=np.int32)
    y = rng.integers(0, 7, (8, 12), dtype=np.int32)

    np.testing.assert_array_equal(evaluate(getattr(nl, name), x, y), reference(x, y))
    np.testing.assert_array_equal(
        evaluate(lambda v: getattr(nl, name)(v, 5), x), reference(x, np.int32(5))
    )
    np.testing.assert_array_equal(evaluate(nl.invert, x), ~x)
    narrow = evaluate(lambda v: getattr(nl, name)(v, 3), (x % 16).astype(np.int8))
    assert narrow.dtype == np.int8
    np.testing.assert_array_equal(narrow, reference((x % 16).astype(np.int8), np.int8(3)))


PROMOTIONS = [
    ("float16", "bfloat16", "float32"),
    ("bfloat16", "float32", "float32"),
    ("int8", "uint8", "int16"),
    ("int32", "float16", "float16"),
    ("float8_e4m3", "float8_e5m2", "bfloat16"),
    ("bfloat16", 2.0, "float32"),
    ("bfloat16", 2, "bfloat16"),
    ("int8", 2, "int32"),
    ("int32", 0.5, "float32"),
]


@pytest.mark.parametrize(("first", "second", "result"), PROMOTIONS, ids=str)
def test_results_have_the_promoted_dtype(first, second, result, evaluate):
    x = np.ones((4, 4), np.float32)

    def expression(tile):
        a = nl.copy(tile, dtype=getattr(nl, first))
        b = nl.copy(tile, dtype=getattr(nl, second)) if isinstance(second, str) else second
        total = a + b
        assert total.dtype == np.dtype(getattr(nl, result))
        return nl.copy(total, dtype=nl.float32)

    evaluate(expression, x)


def test_dtype_overrides_the_inferred_one(evaluate):
    x = np.array([[0.5, 1.5, 2.6, -7.5]], np.float32)

    np.testing.assert_array_equal(
        evaluate(lambda t: nl.multiply(t, 1, dtype=nl.int32), x), [[0, 2, 3, -8]]
    )
    assert evaluate(lambda t: nl.exp(t, dtype=nl.bfloat16), x).dtype == ml_dtypes.bfloat16
    assert evaluate(lambda t: nisa.activation(nl.exp, t, dtype=nl.float16), x).dtype == np.float16


@pytest.mark.parametrize("axis", [1, [1], [2], [1, 2], -1, (1, 3), [2, 3], [1, 2, 3]], ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", ["sum", "max", "min", "mean"])
def test_reductions_over_any_free_axes(name, axis, keepdims, evaluate, rng):
    x = rng.standard_normal((4, 3, 5, 6)).astype(np.float32)
    axes = tuple(axis) if isinstance(axis, (list, tuple)) else axis

    expected = getattr(np, name)(x.astype(np.float64), axis=axes, keepdims=keepdims)
    result = evaluate(lambda t: getattr(nl, name)(t, axis=axis, keepdims=keepdims), x)
    # at most 90 terms of magnitude 4 are added: the sum is off by less than 90 · 4 roundings
    np.testing.assert_allclose(result.reshape(expected.shape), expected, atol=360 * 2.0**-24)


def test_softmax_variance_and_rms_norm(evaluate, rng):
    x = rng.standard_normal((8, 32)).astype(np.float32)
    w = rng.standard_normal((1, 32)).astype(np.float32)
    wide = x.astype(np.float64)
    powers = np.exp(wide - wide.max(1, keepdims=True))

    np.testing.assert_allclose(
        evaluate(lambda t: nl.softmax(t, axis=1), x), powers / powers.sum(1, keepdims=True),
        rtol=32 * ulp,
    )  # fmt: skip
    np.testing.assert_allclose(
        evaluate(lambda t: nl.var(t, axis=1), x), wide.var(1, keepdims=True), rtol=32 * ulp
    )
    expected = wide / np.sqrt((wide**2).sum(1, keepdims=True) / 32 + 1e-6) * w
    np.testing.assert_allclose(
        evaluate(lambda t, g: nl.rms_norm(t, g, axis=1, n=32), x, w), expected, rtol=32 * ulp
    )


def test_where_chooses_bit_for_bit(evaluate):
    x = np.array([[1.0, np.nan, np.inf, -0.0], [2.0, 3.0, -np.inf, 5.0]], np.float32)
    y = np.array([[np.inf, 1.0, np.nan, 7.0], [np.nan, -0.0, 8.0, 9.0]], np.float32)
    c = np.array([[1, 0, 1, 0], [0, 1, 1, 0]], np.float32)

    for dtype in (nl.float32, nl.bfloat16, nl.int32):
        a, b = (v.astype(dtype) if dtype is not nl.int32 else np.nan_to_num(v, posinf=3, neginf=4)
                .astype(np.int32) for v in (x, y))  # fmt: skip
        result = evaluate(lambda k, p, q: nl.where(k, p, q), c, a, b)
        assert result.tobytes() == np.where(c != 0, a, b).tobytes()
    np.testing.assert_array_equal(
        evaluate(lambda k, p: nl.where(k, p, 0.0), c, y), np.where(c != 0, y, 0)
    )


def test_matmul_with_and_without_transposing_first(evaluate, rng):
    a = rng.standard_normal((32, 16)).astype(np.float32)
    b = rng.standard_normal((32, 24)).astype(np.float32)
    expected = a.astype(np.float64).T @ b

    for result in (
        evaluate(lambda x, y: nl.matmul(x, y, transpose_x=True), a, b),
        evaluate(lambda x, y: nl.matmul(x, y), np.ascontiguousarray(a.T), b),
    ):
        # 32 products are added: 33 roundings of sums below 32 · 16
        np.testing.assert_allclose(result, expected, atol=33 * 40 * 2.0**-24)


def test_static_cast_of_an_array_is_an_array_outside_kernels_too(rng):
    x = rng.standard_normal((5, 7)).astype(np.float32)

    cast = nl.static_cast(x, nl.bfloat16)

    assert isinstance(cast, np.ndarray)
    np.testing.assert_array_equal(cast, x.astype(ml_dtypes.bfloat16))


def test_transposes_and_static_cast(evaluate, rng):
    x = rng.standard_normal((96, 40)).astype(np.float32)

    np.testing.assert_array_equal(evaluate(nl.transpose, x), x.T)
    np.testing.assert_array_equal(
        evaluate(lambda t: nisa.nc_transpose(t, dtype=nl.bfloat16), x),
        x.T.astype(ml_dtypes.bfloat16),
    )
    np.testing.assert_array_equal(
        evaluate(lambda t: nl.static_cast(t, nl.float16), x), x.astype(np.float16)
    )


def test_numpy_functions_are_operations(evaluate):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)

    scaled = evaluate(
        lambda t: nisa.tensor_scalar(t, np.multiply, 2.0, op1=np.subtract, operand1=1.0,
                                     reverse1=True), x
    )  # fmt: skip
    np.testing.assert_array_equal(scaled, 1 - 2 * x)
    np.testing.assert_array_equal(evaluate(lambda t: nisa.activation(np.exp, t * 0), x), x * 0 + 1)
    np.testing.assert_array_equal(evaluate(lambda t: nisa.tensor_tensor(t, t, op=np.add), x), 2 * x)


def test_rows_of_scalars_may_be_narrow(evaluate, rng):
    """0.1's compiler widened them; float32 keeps every bfloat16 and int32 below 2^24."""
    x = rng.integers(-8, 8, (8, 12)).astype(np.float32)
    rows = np.arange(8).reshape(8, 1)

    for kind in (ml_dtypes.bfloat16, np.int32):
        row = rows.astype(kind)
        added = evaluate(lambda t, r: nisa.tensor_scalar(t, np.add, r), x, row)
        scaled = evaluate(lambda t, r: nisa.activation(nl.copy, t, scale=r), x, row)
        np.testing.assert_array_equal(added, x + rows)
        np.testing.assert_array_equal(scaled, x * rows)


def test_tensor_tensor_repeats_free_axes(evaluate, rng):
    x, column = rng.standard_normal((8, 12)).astype(np.float32), np.ones((8, 1), np.float32)

    for operands in ((x, column), (column, x)):
        difference = evaluate(lambda a, b: nisa.tensor_tensor(a, b, np.subtract), *operands)
        np.testing.assert_array_equal(difference, operands[0] - operands[1])
    with pytest.raises(ShapeError, match="shapes do not broadcast"):
        evaluate(lambda a: nisa.tensor_tensor(a, a[:, 0:5], np.add), x)


def test_scores_are_selected_where_the_matmul_left_them(evaluate, rng):
    a = rng.integers(-8, 8, (32, 16)).astype(np.float32)
    row, column = nl.arange(16)[:, None], nl.arange(16)[None, :]

    causal = evaluate(
        lambda t: nisa.affine_select(
            pred=(row >= column), on_true_tile=nl.matmul(t, t, transpose_x=True), on_false_value=0
        ),
        a,
    )

    np.testing.assert_array_equal(causal, np.tril(a.T @ a))


def test_bitwise_rows_are_not_converted(evaluate):
    x, row = np.arange(32, dtype=np.int32).reshape(8, 4), np.full((8, 1), 5, np.int32)

    masked = evaluate(lambda t, r: nisa.tensor_scalar(t, np.bitwise_and, r), x, row)

    np.testing.assert_array_equal(masked, x & 5)


@pytest.mark.parametrize(
    ("use", "error", "text"),
    [
        (lambda t: nl.add(t, "1"), KernelError, "nl.add: cannot take a str"),
        (lambda t: nl.add(t, np.ones((8, 12))), KernelError, "cannot take a ndarray"),
        (lambda t: nl.exp(2.0), KernelError, "data cannot be a float"),
        (lambda t: nl.copy(t, dtype="float64"), DTypeError, "float64"),
        (lambda t: nl.sum(t, axis=0), KernelError, "not the trailing free axes"),
        (lambda t: nl.exp(t, foo=3), UnsupportedError, "nl.exp has no parameter 'foo' here"),
        (lambda t: nl.mean(t, axis=1, mask=(nl.arange(8)[:, None] < 3)), UnsupportedError,
         "nl.mean with a mask is not modelled"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_explained(use, error, text, evaluate):
    with pytest.raises(error, match=text) as caught:
        evaluate(use, np.ones((8, 12), np.float32))

    assert __file__ in str(caught.value)


@pytest.mark.parametrize(
    ("option", "expected"),
    [("float", np.array([[3.5, -3.5, 2.0]], np.float32)), ("promoted", np.array([[4, -4, 2]]))],
)
def test_a_quotient_of_integers_keeps_its_fraction_unless_told_otherwise(
    evaluate, option, expected
):
    x = np.array([[7, -7, 4]], np.int32)
    with under(integer_quotient=option):
        result = evaluate(lambda t: t / 2, x)

    np.testing.assert_array_equal(result, expected)
    assert result.dtype == (np.float32 if option == "float" else np.int32)


@pytest.mark.parametrize(("option", "divisor"), [("selected", 5), ("all", 12)])
def test_a_mean_under_a_mask_divides_as_an_option_says(evaluate, option, divisor):
    x = np.arange(96, dtype=np.float32).reshape(8, 12)
    _, column = nl.mgrid[0:8, 0:12]
    with under(masked_mean=option):
        result = evaluate(lambda t: nl.mean(t, axis=1, mask=column < 5, keepdims=True), x)

    expected = x[:, :5].sum(axis=1, keepdims=True, dtype=np.float64) / divisor
    np.testing.assert_array_equal(result, expected.astype(np.float32))


def test_a_mean_of_rows_of_different_lengths_is_an_error(evaluate):
    row, column = nl.mgrid[0:8, 0:12]
    with (
        under(masked_mean="selected"),
        pytest.raises(UnsupportedError, match="with different numbers"),
    ):
        evaluate(lambda t: nl.mean(t, axis=1, mask=column <= row), np.ones((8, 12), np.float32))


BESIDE_A_NUMBER = {
    "t * n": lambda t, n: t * n,
    "n - t": lambda t, n: n - t,
    "t / n": lambda t, n: t / n,
    "n < t": lambda t, n: n < t,
    "t **= n": lambda t, n: operator.ipow(t, n),
    "nl.multiply": nl.multiply,
    "nl.maximum": lambda t, n: nl.maximum(n, t),
    "nl.where": lambda t, n: nl.where(t > n, t, n),
    "nl.fmod": nl.fmod,
    "nl.bitwise_and": nl.bitwise_and,
    "nisa.tensor_scalar": lambda t, n: nisa.tensor_scalar(t, op0=np.multiply, operand0=n),
}


@pytest.mark.parametrize("number", [np.float64(2), np.int64(2), np.uint64(2)], ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.int8])
@pytest.mark.parametrize("name", BESIDE_A_NUMBER)
def test_a_numpy_number_of_64_bits_is_one_of_python(name, dtype, number, evaluate):
    x = np.arange(32).reshape(4, 8).astype(dtype)

    def outcome(n):
        try:
            found = evaluate(lambda t: BESIDE_A_NUMBER[name](t, n), x)
        except KernelError as rejected:
            return type(rejected)
        return found.dtype, found.tobytes()

    assert outcome(number) == outcome(number.item())


def test_attention_scales_by_a_numpy_root(evaluate):
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    np.testing.assert_array_equal(evaluate(lambda t: t * (1 / np.sqrt(64)), x), x / 8)


@pytest.mark.parametrize(
    ("combined", "expected"),
    [
        (lambda ip, i: (i < 6) & (ip < i), lambda ip, i: (i < 6) & (ip < i)),
        (lambda ip, i: (i < 2) | (ip == i), lambda ip, i: (i < 2) | (ip == i)),
        (lambda ip, i: ~(ip > i), lambda ip, i: ~(ip > i)),
    ],
    ids=["and", "or", "not"],
)
def test_where_takes_combined_predicates(evaluate, rng, combined, expected):
    x = rng.standard_normal((4, 8)).astype(np.float32)

    def chosen(tile):
        return nl.where(combined(nl.arange(4)[:, None], nl.arange(8)[None, :]), tile, -1.0)

    ip, i = np.arange(4)[:, None], np.arange(8)[None, :]
    np.testing.assert_array_equal(evaluate(chosen, x), np.where(expected(ip, i), x, -1))
