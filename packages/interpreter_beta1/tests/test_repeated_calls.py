"""The same call again, with operands of the same kinds and other values, memories or lives."""

import numpy as np
import pytest

from neuroncore.errors import KernelError
from nki_beta1 import nki, nl


def stored(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=tile)
    return out


OPERATIONS = {
    "x + y": (lambda x, y: x + y, lambda a, b: a + b),
    "y - x": (lambda x, y: y - x, lambda a, b: b - a),
    "x * 0.5": (lambda x, y: x * 0.5, lambda a, b: a * 0.5),
    "2.0 - x": (lambda x, y: 2.0 - x, lambda a, b: 2.0 - a),
    "x * x": (lambda x, y: x * x, lambda a, b: a * a),
    "x / column": (lambda x, y: x / y[:, 0:1], lambda a, b: a / b[:, :1]),
    "column - x": (lambda x, y: nl.subtract(y[:, 0:1], x), lambda a, b: b[:, :1] - a),
    "x + row": (lambda x, y: nl.add(x, y[0:1, :]), lambda a, b: a + b[:1]),
    "x < y": (lambda x, y: nl.less(x, y, dtype=nl.float32), lambda a, b: a < b),
    "in bfloat16": (lambda x, y: nl.copy(nl.add(x, y, dtype=nl.bfloat16), dtype=nl.float32),
                    lambda a, b: a + b),
}  # fmt: skip


@pytest.mark.parametrize("memory", ["sbuf", "psum"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_turn_of_a_loop_computes_with_its_own_values(name, memory):
    operation, expected = OPERATIONS[name]
    x = np.arange(4 * 8 * 16, dtype=np.float32).reshape(4, 8, 16) % 61
    y = x[::-1] + 1

    @nki.jit
    def kernel(x, y):
        out = nl.ndarray((4, 8, 16), dtype=nl.float32, buffer=nl.shared_hbm)
        for b in nl.affine_range(4):
            first = nl.ndarray((8, 16), dtype=nl.float32, buffer=getattr(nl, memory))
            first[...] = nl.load(x[b])
            nl.store(out[b], value=operation(first, nl.load(y[b])))
        return out

    expected_values = np.stack([expected(a, b) for a, b in zip(x, y, strict=True)])
    np.testing.assert_allclose(kernel(x, y), expected_values, rtol=2**-22)


def test_another_number_is_another_result():
    @nki.jit
    def kernel(x):
        tile = nl.load(x)
        return tuple(stored(tile * factor) for factor in (0.5, 2.0, -3.0, 4, True))

    x = np.arange(32, dtype=np.float32).reshape(2, 16)
    for found, factor in zip(kernel(x), (0.5, 2, -3, 4, 1), strict=True):
        np.testing.assert_array_equal(found, factor * x)


def test_results_that_are_kept_stay_apart():
    @nki.jit
    def kernel(x):
        tile = nl.load(x)
        kept = [tile + float(n) for n in range(4)]
        return tuple(stored(t) for t in kept)

    x = np.zeros((2, 16), np.float32)
    for n, found in enumerate(kernel(x)):
        np.testing.assert_array_equal(found, x + n)


def test_the_same_shapes_on_other_rows_are_checked_again():
    @nki.jit
    def kernel(x):
        tile = nl.load(x)
        whole = tile + tile
        return stored(whole + tile[0:32, :])

    with pytest.raises(KernelError):
        kernel(np.ones((64, 16), np.float32))


def test_an_operator_and_a_function_keep_their_own_rules():
    @nki.jit
    def kernel(x, by_operator):
        tile = nl.load(x)
        summed = nl.add(tile, tile[0:1, :])
        return stored(tile + tile[0:1, :] if by_operator else summed)

    x = np.arange(64, dtype=np.float32).reshape(4, 16)
    np.testing.assert_array_equal(kernel(x, False), x + x[:1])
    with pytest.raises(KernelError, match="operator on tiles of 4 and 1 partitions"):
        kernel(x, True)
