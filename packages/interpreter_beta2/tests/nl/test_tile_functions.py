"""`nl` functions on tiles against float64 NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from neuroncore.errors import EngineError, KernelError, ShapeError, SignatureError, UnsupportedError

ULP = 2.0**-23  # of float32: functions are within 4, sums of 16 terms within 16

VERSIONS = ("0.3", "0.4", "0.5", "0.6", "0.7")
DRAW = np.random.default_rng(3)
X = (DRAW.normal(size=(8, 16)) * 5).astype(np.float32)
Y = DRAW.normal(size=(8, 16)).astype(np.float32)
CUBE = DRAW.normal(size=(4, 3, 5)).astype(np.float32)
ODD = np.array(
    [[0.0, -0.5, 0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 2.0**22 + 0.5, -(2.0**23), 2.0**33, 3e38, np.inf]],
    np.float32,
)


@pytest.fixture(params=VERSIONS)
def lang(request: pytest.FixtureRequest, speak: Callable[..., Any]) -> Any:
    """Each version with functions on tiles."""
    return speak(request.param)


def on_tiles(lang: Any, function: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    """What a function of tiles gives, loaded and stored as kernels do it."""
    nl, nisa = lang.nl, lang.nisa

    def kernel(*sources):
        result = function(*(nl.load(s) for s in sources))
        if nl.is_psum(result.buffer):
            tile = nl.ndarray(result.shape, dtype=result.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(tile, result)
            result = tile
        out = nl.ndarray(result.shape, dtype=result.dtype, buffer=nl.shared_hbm)
        nl.store(out, result)
        return out

    return lang.run(kernel, *arrays)


def ulps(result: np.ndarray, reference: np.ndarray) -> float:
    """The largest distance in units of the reference's last place in float32."""
    assert result.shape == reference.shape
    unit = np.spacing(np.maximum(np.abs(reference).astype(np.float32), np.float32(1e-30)))
    return float(np.max(np.abs(result - reference) / unit))


# name, inputs, reference, most ulps
ELEMENTWISE = [
    ("abs", (X,), np.abs, 0),
    ("add", (X, Y), np.add, 0.5),
    ("ceil", (X,), np.ceil, 0),
    ("copy", (X,), np.copy, 0),
    ("divide", (X, Y), np.divide, 1.5),
    ("equal", (np.round(X), np.round(Y)), lambda x, y: 1.0 * (x == y), 0),
    ("exp", (Y,), np.exp, 2),
    ("floor", (X,), np.floor, 0),
    ("fmod", (X, Y), np.fmod, 0.5),
    ("greater", (X, Y), lambda x, y: 1.0 * (x > y), 0),
    ("logical_and", (np.round(X), np.round(Y)), np.logical_and, 0),
    ("logical_not", (np.round(Y),), np.logical_not, 0),
    ("log", (np.abs(X),), np.log, 2),
    ("maximum", (X, Y), np.maximum, 0),
    ("mod", (X, Y), np.mod, 0.5),
    ("multiply", (X, Y), np.multiply, 0.5),
    ("negative", (X,), np.negative, 0),
    ("power", (np.abs(X), Y), np.power, 2),
    ("reciprocal", (X,), np.reciprocal, 0.5),
    ("rsqrt", (np.abs(X),), lambda x: 1 / np.sqrt(x), 2),
    ("sqrt", (np.abs(X),), np.sqrt, 0.5),
    ("square", (X,), np.square, 0.5),
    ("subtract", (X, Y), np.subtract, 0.5),
    ("tanh", (X,), np.tanh, 3),
    ("transpose", (X,), np.transpose, 0),
    ("trunc", (X,), np.trunc, 0),
]


@pytest.mark.parametrize(
    ("name", "inputs", "reference", "most"), ELEMENTWISE, ids=[row[0] for row in ELEMENTWISE]
)
def test_a_function_of_tiles_is_numpys(lang, name, inputs, reference, most):
    result = on_tiles(lang, getattr(lang.nl, name), *inputs)

    assert result.dtype == np.float32
    assert ulps(result, reference(*(a.astype(np.float64) for a in inputs))) <= most


@pytest.mark.parametrize(("version", "wanted"), [("0.5", 2**24), ("0.6", 2**24 + 1)])
def test_a_copy_is_exact_from_0_6_on(speak, version, wanted):
    """Before, ScalarE makes it, in float32."""
    lang = speak(version)

    result = on_tiles(lang, lang.nl.copy, np.full((4, 8), 2**24 + 1, np.int32))

    assert (result == wanted).all() and result.dtype == np.int32


def rsqrt_of_psum(lang):
    """nl.rsqrt of a tile of fours in PSUM."""
    nl = lang.nl

    def function(_):
        tile = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.psum)
        lang.nisa.memset(tile, 4.0)
        return nl.rsqrt(tile)

    return on_tiles(lang, function, np.zeros((4, 8), np.float32))


@pytest.mark.parametrize("version", ["0.3", "0.4"])
def test_rsqrt_reaches_psum_up_to_0_4(speak, version):
    assert (rsqrt_of_psum(speak(version)) == 0.5).all()


@pytest.mark.parametrize("version", ["0.5", "0.6"])
def test_rsqrt_is_gpsimds_from_0_5_on(speak, version):
    """It does not reach PSUM, and its numbers differ from ScalarE's table."""
    lang = speak(version, activation_range="reject")

    large = on_tiles(lang, lang.nl.rsqrt, np.full((1, 1), 2.0**100, np.float32))

    assert large.tolist() == [[2.0**-50]]
    with pytest.raises(EngineError, match="the gpsimd engine does not reach PSUM"):
        rsqrt_of_psum(lang)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_angles_of_any_size_are_reduced_first(lang, name):
    """Absolute below 1 and relative above: near their zeros only the angle's rounding counts."""
    result = on_tiles(lang, getattr(lang.nl, name), X * 20)
    expected = getattr(np, name)((X * 20).astype(np.float64))

    slope = 1 + expected**2 if name == "tan" else 1.0
    assert np.all(np.abs(result - expected) <= 4e-6 * slope)


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc"])
def test_rounding_is_exact_for_every_float32(now, name):
    result = on_tiles(now, getattr(now.nl, name), ODD)

    assert np.array_equal(result, getattr(np, name)(ODD))
    assert np.isnan(on_tiles(now, getattr(now.nl, name), np.full((1, 1), np.nan, np.float32)))


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var"])
@pytest.mark.parametrize(
    ("array", "axis"), [(X, 1), (X, -1), (X, [1]), (CUBE, 2), (CUBE, (1, 2))], ids=str
)
@pytest.mark.parametrize("keepdims", [False, True])
def test_a_reduction_is_numpys(lang, name, array, axis, keepdims):
    result = on_tiles(
        lang, lambda t: getattr(lang.nl, name)(t, axis=axis, keepdims=keepdims), array
    )

    axes = tuple(axis) if isinstance(axis, (tuple, list)) else axis
    kept = keepdims or name == "var"  # whose keepdims has no effect
    expected = getattr(np, name)(array.astype(np.float64), axis=axes, keepdims=kept)
    expected = expected if expected.ndim > 1 else expected.reshape(-1, 1)
    scale = np.abs(array).sum(axis=axes, keepdims=True).max() if name in ("sum", "mean") else 1.0
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=16 * ULP, atol=ULP * scale)


def test_all_is_one_where_every_element_is_true(lang):
    given = np.array([[1, 2, 3], [1, 0, 3]], np.float32)

    assert on_tiles(lang, lambda t: lang.nl.all(t, axis=1), given).tolist() == [[1.0], [0.0]]


def test_softmax(lang):
    powers = np.exp(X.astype(np.float64) - X.max(1, keepdims=True))

    result = on_tiles(lang, lang.nl.softmax, X)

    np.testing.assert_allclose(result, powers / powers.sum(1, keepdims=True), rtol=16 * ULP)


@pytest.mark.parametrize("rows", [1, 8])
def test_rms_norm(lang, rows):
    result = on_tiles(lang, lambda x, w: lang.nl.rms_norm(x, w, axis=1, n=16), X, Y[:rows])

    x = X.astype(np.float64)
    expected = x / np.sqrt((x**2).sum(1, keepdims=True) / 16 + 1e-6) * Y[:rows]
    np.testing.assert_allclose(result, expected, rtol=16 * ULP)


def test_where_takes_bits_as_they_are(lang):
    nan = np.where(X > 0, np.nan, X).astype(np.float32)

    result = on_tiles(lang, lang.nl.where, (X > 0).astype(np.float32), Y, nan)

    assert np.array_equal(result, np.where(X > 0, Y, X))


def test_where_with_numbers(now):
    result = on_tiles(now, lambda c: now.nl.where(c, 2.0, -1.0), (X > 0).astype(np.float32))

    assert np.array_equal(result, np.where(X > 0, 2.0, -1.0))


def test_numbers_stand_on_either_side(lang):
    nl = lang.nl

    assert np.array_equal(on_tiles(lang, lambda t: nl.subtract(t, 1.5), X), X - np.float32(1.5))
    assert np.array_equal(on_tiles(lang, lambda t: nl.subtract(1.5, t), X), np.float32(1.5) - X)


def test_a_free_axis_of_one_is_repeated(lang):
    assert np.array_equal(on_tiles(lang, lang.nl.add, X, Y[:, :1]), X + Y[:, :1])


def test_partitions_are_not_repeated(lang):
    with pytest.raises(ShapeError, match=r"nl\.add: the shapes of two tiles do not fit"):
        on_tiles(lang, lang.nl.add, X, Y[:1])


def test_broadcast_to_repeats_partitions_too(lang):
    nl = lang.nl

    assert np.array_equal(
        on_tiles(lang, lambda t: nl.broadcast_to(t, (8, 16)), X[:1]),
        np.broadcast_to(X[:1], (8, 16)),
    )
    with pytest.raises(ShapeError, match="does not broadcast"):
        on_tiles(lang, lambda t: nl.broadcast_to(t, (8, 15)), X)


def test_a_dtype_that_is_asked_for_is_given(lang):
    nl = lang.nl
    result = on_tiles(lang, lambda t: nl.add(t, t, dtype=nl.bfloat16), X)

    assert str(result.dtype) == "bfloat16"
    assert np.array_equal(result, (X + X).astype(result.dtype))


def test_integers_have_bit_operations(lang):
    nl = lang.nl
    bits = np.arange(12, dtype=np.int32).reshape(3, 4)

    assert np.array_equal(on_tiles(lang, lambda t: nl.bitwise_and(t, 5), bits), bits & 5)
    assert np.array_equal(on_tiles(lang, nl.invert, bits), ~bits)


@pytest.mark.parametrize("version", VERSIONS)
def test_products(speak, version):
    lang = speak(version)
    nl, y = lang.nl, Y.T.copy()
    error = ULP * (len(X) * (np.abs(X).T @ np.abs(Y)).max())  # a rounding of each partial sum

    product = on_tiles(lang, lambda a, b: nl.matmul(a, b, transpose_x=True), X, Y)
    np.testing.assert_allclose(product, X.astype(np.float64).T @ Y, atol=error)
    if version in ("0.3", "0.4"):
        with pytest.raises(UnsupportedError, match="without transpose_x"):
            on_tiles(lang, nl.matmul, X, y)
    else:
        np.testing.assert_allclose(
            on_tiles(lang, nl.matmul, X, y), X.astype(np.float64) @ y, atol=error
        )


def test_load_transpose2d(lang):
    nl = lang.nl

    def kernel(x):
        out = nl.ndarray((16, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(out, nl.load_transpose2d(x))
        return out

    assert np.array_equal(lang.run(kernel, X), X.T)


def test_gather_flattened(lang):
    places = np.array([[3, 0, 15]] * 8, np.uint32)

    assert np.array_equal(on_tiles(lang, lang.nl.gather_flattened, X, places), X[:, [3, 0, 15]])


@pytest.mark.parametrize("dtype", ["uint8", "float32", "bfloat16"])
def test_the_identity_is_in_sbuf(every, dtype):
    nl = every.nl
    seen = []

    def kernel():
        made = nl.shared_identity_matrix(5, dtype=getattr(nl, dtype))
        seen.append(made.buffer)
        return every.out(made)

    result = every.run(kernel)

    assert np.array_equal(result.astype(np.float32), np.eye(5))
    assert str(result.dtype) == dtype
    assert seen == [nl.sbuf]


def test_the_identity_is_written_where_the_kernel_says(lang):
    nl = lang.nl

    def kernel():
        tile = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.sbuf)
        assert nl.shared_identity_matrix(4, nl.float32, tile) is tile
        return lang.out(tile)

    assert np.array_equal(lang.run(kernel), np.eye(4))


@pytest.mark.parametrize(("size", "fits"), [(1, True), (128, True), (129, False), (0, False)])
def test_the_identity_has_1_to_128_rows(now, size, fits):
    def kernel():
        return now.out(now.nl.shared_identity_matrix(size))

    if fits:
        assert np.array_equal(now.run(kernel), np.eye(size))
    else:
        with pytest.raises(ShapeError):
            now.run(kernel)


def test_memories_are_distinguished(lang):
    nl = lang.nl
    answers = {
        name: [getattr(nl, name)(m) for m in (nl.sbuf, nl.psum, nl.hbm, nl.shared_hbm)]
        for name in ("is_sbuf", "is_psum", "is_hbm", "is_on_chip")
    }

    assert answers == {
        "is_sbuf": [True, False, False, False],
        "is_psum": [False, True, False, False],
        "is_hbm": [False, False, True, True],
        "is_on_chip": [True, True, False, False],
    }


def test_random_numbers_are_in_their_interval_and_follow_their_seed(lang):
    nl = lang.nl

    def kernel():
        seed = nl.full((1, 1), 42, dtype=nl.int32)
        nl.random_seed(seed)
        first = nl.rand((8, 64), dtype=nl.float32)
        nl.random_seed(seed)
        second = nl.rand((8, 64), dtype=nl.float32)
        return lang.out(first), lang.out(second)

    first, second = lang.run(kernel)

    assert np.array_equal(first, second)
    assert 0 <= first.min() < 0.1 < 0.9 < first.max() < 1
    with pytest.raises(SignatureError, match="seed cannot be a int"):
        lang.inside(lambda: nl.random_seed(42))


def test_dropout_drops_all_or_nothing(lang):
    assert np.array_equal(on_tiles(lang, lambda t: lang.nl.dropout(t, 0.0), X), X)
    assert not on_tiles(lang, lambda t: lang.nl.dropout(t, 1.0), X).any()


def test_device_print_takes_any_prefix(every, capsys):
    every.run(lambda x: every.nl.device_print(3, x), np.ones((1, 2), np.float32))

    assert capsys.readouterr().out.startswith("3 ")


def test_device_print_shows_shape_dtype_memory_and_elements(every, capsys):
    every.run(lambda x: every.nl.device_print("here:", x), np.ones((1, 2), np.float32))

    assert capsys.readouterr().out == "here: <(1, 2), float32, HBM>\n[[1. 1.]]\n"


@pytest.mark.parametrize("name, args", [
    ("device_print", ("a", "b")), ("empty_like", ("a",)), ("zeros_like", (3,)),
], ids=str)  # fmt: skip
def test_what_is_no_tensor_is_rejected_by_name(every, name, args):
    if not hasattr(every.nl, name):
        assert every.version == "0.2"
        return
    with pytest.raises(SignatureError, match=rf"nl\.{name}: \w+ cannot be a (str|int)"):
        every.inside(lambda: getattr(every.nl, name)(*args))


def test_the_root_mean_square_of_no_elements_is_rejected(lang):
    with pytest.raises(KernelError, match="n=0, and the sum of squares is divided by it"):
        on_tiles(lang, lambda t: lang.nl.rms_norm(t, t, 1, 0), X)


def test_what_is_no_shape_is_rejected(lang):
    for wrong in (3.0, "x", (4, "y"), (4, 0)):
        with pytest.raises(ShapeError, match="a shape is a tuple of positive ints"):
            on_tiles(lang, lambda t, wrong=wrong: lang.nl.broadcast_to(t, wrong), X)


def test_psum_is_not_printed(every):
    nl = every.nl

    with pytest.raises(KernelError, match="tensor is in PSUM"):
        every.inside(lambda: nl.device_print("p", nl.zeros((2, 2), nl.float32, buffer=nl.psum)))


def test_order_is_kept_and_loops_of_registers_are_rejected_inside(lang):
    nl = lang.nl
    name = "fori_loop" if lang.version == "0.7" else "dynamic_range"

    def device_loop(turns):
        if lang.version == "0.7":
            nl.fori_loop(0, turns, lambda i: None)
        else:
            assert len(list(nl.dynamic_range(turns))) == turns

    def kernel(x, *, loop):
        with nl.no_reorder():
            tile = nl.load(x)
            if loop:
                device_loop(2)
            for _ in range(2):
                tile = nl.add(tile, tile)
        return lang.out(tile)

    assert np.array_equal(lang.run(lambda x: kernel(x, loop=False), X), 4 * X)
    with pytest.raises(UnsupportedError, match=rf"nl\.{name} inside nl\.no_reorder"):
        lang.run(lambda x: kernel(x, loop=True), X)
    lang.inside(lambda: device_loop(2))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda nl, t: nl.exp(3), r"nl\.exp: x cannot be a int"),
        (lambda nl, t: nl.exp(t, t, t), r"nl\.exp: too many positional arguments"),
        (lambda nl, t: nl.exp(t, axis=1), r"nl\.exp: got an unexpected keyword argument"),
        (lambda nl, t: nl.sum(t, 0), r"nl\.sum: axis \(0,\) is not the trailing free axes"),
        (lambda nl, t: nl.add(1, 2), r"nl\.add: needs at least one tile"),
        (lambda nl, t: nl.power(t, 2), r"nl\.power: a power with a number"),
        (lambda nl, t: nl.load(t), r"nl\.load: src is in SBUF"),
        (lambda nl, t: nl.store(t, t), r"nl\.store: dst is in SBUF"),
        (lambda nl, t: nl.transpose(nl.expand_dims(t, 1)), r"nl\.transpose: a tile of 3 dim"),
        (lambda nl, t: nl.gather_flattened(t, t, axis=1), r"nl\.gather_flattened: axis=1"),
        (lambda nl, t: nl.rand((2, 2), nl.int32), r"nl\.rand: nl\.rand gives no int32"),
        (lambda nl, t: nl.rand((2, 2), nl.float32, nl.hbm), r"nl\.rand: random numbers in"),
        (lambda nl, t: nl.is_sbuf(t), r"is not a memory"),
    ],
)
def test_misuse_is_told_under_the_functions_name(now, call, said):
    with pytest.raises(KernelError, match=said):
        now.run(lambda x: call(now.nl, now.nl.load(x)), X)


def test_functions_are_operations_at_the_same_time(lang):
    nl, nisa = lang.nl, lang.nisa

    def both(t):
        out = nl.ndarray(t.shape, dtype=t.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(out, t, t, nl.add)
        return out

    assert np.array_equal(on_tiles(lang, both, X), on_tiles(lang, lambda t: nl.add(t, t), X))
    assert repr(nl.add) == "nl.add"


@pytest.mark.parametrize("name", ["abs_max", "abs_min"])
def test_the_larger_and_the_smaller_magnitude_need_trn3(speak, name):
    lang = speak("0.6", "trn3")
    bigger = np.abs(X) > np.abs(Y)
    expected = np.where(bigger if name == "abs_max" else ~bigger, X, Y)

    assert np.array_equal(on_tiles(lang, getattr(lang.nl, name), X, Y), expected)
    with pytest.raises(KernelError, match="not an operation of trn2"):
        on_tiles(speak("0.6"), getattr(speak("0.6").nl, name), X, Y)
    assert not hasattr(speak("0.3", "trn3").nl, name)


def test_range_is_a_name_of_0_3(speak):
    assert list(speak("0.3").nl.range(1, 7, 2)) == [1, 3, 5]
    assert not hasattr(speak("0.6").nl, "range")
