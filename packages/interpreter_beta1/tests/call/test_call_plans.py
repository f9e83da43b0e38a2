"""The same call again, with operands of the same kinds and other values, memories or lives."""

import numpy as np
import pytest

from neuroncore.errors import KernelError
from nki_beta1 import nisa, nki, nl


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


def test_results_that_are_kept_do_not_share_memory():
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


REPEATED = {
    "nl.add": lambda x, y, mask: nl.add(x, y, mask=mask),
    "nl.multiply by a number": lambda x, y, mask: nl.multiply(x, 2.0, mask=mask),
    "nl.square": lambda x, y, mask: nl.square(x, mask=mask),
    "nl.copy": lambda x, y, mask: nl.copy(x, mask=mask),
    "nisa.tensor_tensor": lambda x, y, mask: nisa.tensor_tensor(x, y, np.subtract, mask=mask),
    "nisa.activation": lambda x, y, mask: nisa.activation(np.square, x, mask=mask),
}
MEANT = {
    "nl.add": np.add,
    "nl.multiply by a number": lambda a, b: 2 * a,
    "nl.square": lambda a, b: a * a,
    "nl.copy": lambda a, b: a,
    "nisa.tensor_tensor": np.subtract,
    "nisa.activation": lambda a, b: a * a,
}


@pytest.mark.parametrize("name", REPEATED)
def test_a_mask_that_covers_all_but_the_last_turn_counts_in_every_turn(name):
    x = np.arange(20 * 16, dtype=np.float32).reshape(20, 16)
    y = x[::-1] + 1

    @nki.jit
    def kernel(x, y):
        i_p, i_f = nl.arange(8)[:, None], nl.arange(16)[None, :]
        out = nl.ndarray((24, 16), dtype=nl.float32, buffer=nl.shared_hbm)
        for b in nl.affine_range(3):
            mask = b * 8 + i_p < 20
            first, second = (nl.load(t[b * 8 + i_p, i_f], mask=mask) for t in (x, y))
            result = nl.zeros((8, 16), dtype=nl.float32, buffer=nl.sbuf)
            result[i_p, i_f] = REPEATED[name](first, second, mask)
            nl.store(out[b * 8 + i_p, i_f], value=result)
        return out

    found = kernel(x, y)
    np.testing.assert_array_equal(found[:20], MEANT[name](x, y))
    np.testing.assert_array_equal(found[20:], 0)


def test_attributes_count_by_value_and_kind():
    @nki.jit
    def kernel(x):
        tile = nl.load(x)
        zeros = [stored(nisa.tensor_scalar(tile, np.add, zero)) for zero in (0.0, -0.0, 0.0)]
        sums = [
            stored(nisa.tensor_reduce(np.add, tile, axis=[1], negate=negate))
            for negate in (False, True, False)
        ]
        kinds = [stored(nisa.tensor_copy(tile, dtype=k)) for k in (nl.float32, nl.int32)]
        return (*zeros, *sums, *kinds)

    x = np.full((4, 8), -0.0, np.float32)
    x[:, 1:] = np.arange(7)
    *found, wide, whole = kernel(x)

    np.testing.assert_array_equal(np.signbit([f[0, 0] for f in found[:3]]), [False, True, False])
    for sums, sign in zip(found[3:], (1, -1, 1), strict=True):
        np.testing.assert_array_equal(sums[:, 0], sign * x.sum(axis=1))
    assert (wide.dtype, whole.dtype) == (np.float32, np.int32)


def test_one_tile_twice_and_then_two_tiles():
    @nki.jit
    def kernel(x, y):
        first, second = nl.load(x), nl.load(y)
        pairs = [(first, first), (first, second), (second, second), (second, first)]
        return tuple(stored(nisa.tensor_tensor(a, b, np.subtract)) for a, b in pairs)

    x = np.arange(32, dtype=np.float32).reshape(2, 16)
    same, there, same_again, back = kernel(x, 3 * x)

    np.testing.assert_array_equal([same, there, same_again, back], [0 * x, -2 * x, 0 * x, 2 * x])


def test_stores_repeat_with_their_own_masks_and_memories():
    @nki.jit
    def kernel(x):
        i_p, i_f = nl.arange(8)[:, None], nl.arange(16)[None, :]
        out = nl.zeros((24, 16), dtype=nl.float32, buffer=nl.shared_hbm)
        for b in nl.affine_range(3):
            mask = b * 8 + i_p < 20
            tile = nl.load(x[b * 8 + i_p, i_f], mask=mask)
            nl.store(out[b * 8 + i_p, i_f], value=tile, mask=mask)
        transposed = nl.ndarray((16, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        for b in nl.affine_range(2):
            nl.store(transposed, value=nl.transpose(nl.load(x[b * 8 + i_p, i_f])))
        return out, transposed

    x = np.arange(20 * 16, dtype=np.float32).reshape(20, 16)
    found, transposed = kernel(x)

    np.testing.assert_array_equal(found, np.concatenate([x, np.zeros((4, 16), np.float32)]))
    np.testing.assert_array_equal(transposed, x[8:16].T)


def test_a_repeated_store_to_a_parameter_is_rejected_every_time():
    @nki.jit
    def kernel(x, y):
        nl.store(y, value=nl.load(x))
        return y

    x = np.ones((4, 8), np.float32)
    for _ in range(2):
        with pytest.raises(KernelError, match="read-only"):
            kernel(x, x.copy())


def test_filled_tensors_are_new_and_of_their_own_number_shape_and_memory():
    @nki.jit
    def kernel(x):
        found = []
        for value in (1.5, -0.0, 0.0, 2, 3):
            tile = nl.full((4, 8), value, dtype=nl.float32, buffer=nl.sbuf)
            tile[:, 0:1] = 7.0
            found.append(stored(tile))
        blocks = nl.zeros((4, nl.par_dim(8), 2), dtype=nl.float32, buffer=nl.sbuf)
        tile = nl.zeros((nl.par_dim(4), 8, 2), dtype=nl.float32, buffer=nl.sbuf)
        plain = nl.zeros((4, 8, 2), dtype=nl.float32, buffer=nl.sbuf)
        narrow = nl.ones((4, 8), dtype=nl.bfloat16, buffer=nl.psum)
        shapes.extend([blocks[3].shape, tile.shape, plain.shape, narrow.buffer])
        return (*found, stored(nl.copy(narrow, dtype=nl.float32)))

    shapes = []
    for _ in range(2):
        *found, narrow = kernel(np.zeros((4, 8), np.float32))
        assert shapes[-4:] == [(8, 2), (4, 8, 2), (4, 8, 2), nl.psum]
        np.testing.assert_array_equal([f[0, 0] for f in found], 7)
        np.testing.assert_array_equal([f[3, 7] for f in found], [1.5, 0, 0, 2, 3])
        np.testing.assert_array_equal(np.signbit([f[3, 7] for f in found]), [0, 1, 0, 0, 0])
        np.testing.assert_array_equal(narrow, 1)
