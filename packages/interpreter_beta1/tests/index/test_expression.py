"""Index expressions: the shape of an access, and which elements it names."""

import numpy as np
import pytest

from neuroncore.errors import AccessError, ShapeError
from nki_beta1 import nisa, nki, nl


def loaded(access, x):
    """The elements that `access(x)` names, loaded to SBUF and stored again."""

    @nki.jit
    def kernel(x):
        tile = nl.load(access(x))
        out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
        nl.store(out, value=tile)
        return out

    return kernel(x)


def p(n):
    return nl.arange(n)[:, None]


def f(n):
    return nl.arange(n)[None, :]


X = np.arange(32 * 48, dtype=np.float32).reshape(32, 48)
CUBE = np.arange(4 * 6 * 8, dtype=np.float32).reshape(4, 6, 8)

ACCESSES = {
    "the whole tensor": (lambda x: x[p(32), f(48)], X),
    "offsets": (lambda x: x[3 + p(8), f(16) + 5], X[3:11, 5:21]),
    "steps in HBM": (lambda x: x[2 * p(8) + 1, 3 * f(16)], X[1:17:2, 0:48:3]),
    "backwards": (lambda x: x[p(4), 47 - f(48)], X[:4, ::-1]),
    "an int and an axis": (lambda x: x[5, f(48)], X[5:6]),
    "axes in other places": (lambda x: x[f(32), p(48)], X.T),
    "two axes in one dimension": (
        lambda x: x[nl.arange(4)[:, None, None],
                    nl.arange(6)[None, :, None] * 8 + nl.arange(8)[None, None, :]],
        X[:4].reshape(4, 6, 8),
    ),
    "floor division and remainder": (lambda x: x[p(32), (f(48) // 6) * 6 + f(48) % 6], X),
    "a gather that no strides describe": (lambda x: x[p(4), f(48) // 5], X[:4, np.arange(48) // 5]),
    "overlapping windows": (
        lambda x: x[nl.arange(4)[:, None, None],
                    nl.arange(46)[None, :, None] + nl.arange(3)[None, None, :]],
        np.lib.stride_tricks.sliding_window_view(X[:4], 3, axis=1),
    ),
    "slices and ds": (lambda x: x[nl.ds(4, 8), 10:20], X[4:12, 10:20]),
    "an index expression, then a slice": (lambda x: x[p(4), 0:48], X[:4, None, :]),
}  # fmt: skip


@pytest.mark.parametrize(("access", "expected"), ACCESSES.values(), ids=ACCESSES)
def test_an_access_names_the_elements_of_its_index_expressions(access, expected):
    np.testing.assert_array_equal(loaded(access, X), expected)


def test_missing_indices_take_the_rest_of_the_tensor():
    access = loaded(lambda x: x[nl.arange(4)[:, None], 2 + nl.arange(3)[None, :]], CUBE)

    np.testing.assert_array_equal(access, CUBE[:, 2:5, :])


def test_mgrid_gives_open_axes_by_number_and_by_letter():
    grid = nl.mgrid[0:4, 2:8, 0:8]

    assert [axis.shape for axis in grid] == [(4, 1, 1), (1, 6, 1), (1, 1, 8)]
    assert grid.p is grid[0] and grid.x is grid[1] and grid.y is grid[2]
    np.testing.assert_array_equal(grid.x.values.ravel(), range(2, 8))


def test_arithmetic_on_index_expressions_is_that_of_integers():
    i, j = p(5), f(7)
    a, b = np.arange(5)[:, None], np.arange(7)[None, :]

    np.testing.assert_array_equal((3 * i - j * 2 + 1).values, 3 * a - 2 * b + 1)
    np.testing.assert_array_equal((10 - i).values, np.broadcast_to(10 - a, (5, 1)))
    np.testing.assert_array_equal(((i * 7 + j) // 3 % 4).values, (a * 7 + b) // 3 % 4)
    np.testing.assert_array_equal((i * j).values, a * b)
    np.testing.assert_array_equal(((i + 3) - (j + 2)).values, a - b + 1)


def test_free_axes_are_transposed_inside_partitions(rng):
    """A kernel's way of permuting free dimensions: two index axes folded into one dimension."""
    x = rng.standard_normal((5, 12)).astype(np.float32)

    @nki.jit
    def kernel(x):
        source = nl.load(x)
        i, a, b = nl.mgrid[0:5, 0:3, 0:4]
        out = nl.ndarray((5, 12), dtype=x.dtype)
        out[i, b * 3 + a] = nl.copy(source[i, a * 4 + b])
        result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(result, value=out)
        return result

    expected = x.reshape(5, 3, 4).transpose(0, 2, 1).reshape(5, 12)
    np.testing.assert_array_equal(kernel(x), expected)


def test_a_scatter_without_strides_writes_every_element_once():
    @nki.jit
    def kernel(x):
        tile = nl.zeros((4, 12), dtype=x.dtype)
        i, j = nl.arange(4)[:, None], nl.arange(6)[None, :]
        tile[i, (j // 3) * 7 + j % 3] = nl.load(x)
        out = nl.ndarray((4, 12), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, value=tile)
        return out

    x = np.arange(24, dtype=np.float32).reshape(4, 6) + 1
    expected = np.zeros((4, 12), np.float32)
    expected[:, [0, 1, 2, 7, 8, 9]] = x
    np.testing.assert_array_equal(kernel(x), expected)


def test_a_scatter_that_names_an_element_twice_is_rejected():
    @nki.jit
    def kernel(x):
        tile = nl.zeros((4, 12), dtype=x.dtype)
        tile[nl.arange(4)[:, None], nl.arange(6)[None, :] // 2] = nl.load(x)

    with pytest.raises(AccessError, match="several values are assigned to one element"):
        kernel(np.ones((4, 6), np.float32))


def test_an_access_that_was_inside_is_checked_again_where_it_moves():
    @nki.jit
    def kernel(x, last):
        for t in range(last):
            nl.load(x[t * 8 + p(8), f(48)])

    kernel(X, 4)
    with pytest.raises(AccessError, match="indices 32 to 39 on a tensor of shape"):
        kernel(X, 5)


WRONG = {
    "axes of different extents": (lambda x: x[p(4), nl.arange(3)[:, None]], ShapeError,
                                  "index expressions of different extents meet on one axis"),
    "out of range": (lambda x: x[p(4), 1 + f(48)], AccessError,
                     "index out of range in dimension 1"),
    "negative": (lambda x: x[p(4) - 1, f(48)], AccessError, "index out of range in dimension 0"),
    "too many": (lambda x: x[p(4), f(4), 0], AccessError, "too many indices"),
    "a float": (lambda x: x[p(4) * 0.5, f(4)], AccessError,
                "an index expression is combined with a float"),
    "a slice in the middle": (lambda x: x.reshape((4, 8, 48))[p(4), 0:8, f(4)], AccessError,
                              "a slice between index expressions"),
}  # fmt: skip


@pytest.mark.parametrize(("access", "error", "text"), WRONG.values(), ids=WRONG)
def test_a_wrong_access_says_what_is_wrong(access, error, text):
    with pytest.raises(error, match=text) as caught:
        loaded(access, X)

    assert __file__ in str(caught.value)


@pytest.mark.parametrize(
    "access",
    [lambda t: t[2 * p(4), f(8)], lambda t: t[f(8), p(8)], lambda t: t[p(8), p(8)]],
    ids=["a step over partitions", "permuted axes", "a diagonal"],
)
def test_on_chip_axis_0_runs_over_consecutive_partitions(access):
    @nki.jit
    def kernel(x):
        return nl.copy(access(nl.load(x)))

    with pytest.raises(AccessError, match="axis 0 of an on-chip access"):
        kernel(X[:8])


def test_iota_gives_the_values_of_an_affine_expression(evaluate):
    expression = lambda x: nisa.iota(p(4) * 10 + f(6) - 3, dtype=nl.int32)  # noqa: E731

    expected = np.arange(4)[:, None] * 10 + np.arange(6)[None, :] - 3
    np.testing.assert_array_equal(evaluate(expression, X[:4, :6]), expected)


def test_index_expressions_are_numbers_for_functions_of_tiles(evaluate):
    x = X[:4, :6]

    shifted = evaluate(lambda t: nl.add(t, p(4) * 10 + f(6)), x)
    wrapped = evaluate(lambda t: nl.mod(nl.add(p(4), nl.int32(7)), np.int32(8)), x)
    chosen = evaluate(lambda t: nl.where(p(4) > f(6), t, -1.0), x)

    rows, columns = np.indices((4, 6))
    np.testing.assert_array_equal(shifted, x + 10 * rows + columns)
    np.testing.assert_array_equal(wrapped, (np.arange(4)[:, None] + 7) % 8)
    np.testing.assert_array_equal(chosen, np.where(rows > columns, x, -1))


def test_affine_select_keeps_what_the_predicate_names(evaluate):
    def causal(x):
        return nisa.affine_select(pred=(p(8) >= f(8)), on_true_tile=x, on_false_value=-9.0)

    x = X[:8, :8]
    np.testing.assert_array_equal(evaluate(causal, x), np.where(np.tri(8) > 0, x, -9))
