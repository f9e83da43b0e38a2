"""Values keep what they are: also through views of them, and after writes to the tensor that one
was assigned to.
"""

import numpy as np
import pytest

from nki_beta1 import nisa, nki, nl

P, F = 16, 8
VIEWS = {
    "broadcast_to": (lambda v: v.broadcast_to((P, F)), lambda a: np.broadcast_to(a, (P, F))),
    "broadcast_to of its own shape": (lambda v: v.broadcast_to((P, 1)), lambda a: a),
    "nl.broadcast_to": (
        lambda v: nl.broadcast_to(v, shape=(P, F)), lambda a: np.broadcast_to(a, (P, F))),
    "reshape": (lambda v: v.reshape((P, 1, 1)), lambda a: a[:, None]),
    "expand_dims": (lambda v: v.expand_dims(1), lambda a: a[:, None]),
    "nl.expand_dims": (lambda v: nl.expand_dims(v, 1), lambda a: a[:, None]),
    "view": (lambda v: v.view(nl.uint32), lambda a: a.view(np.uint32)),
    "astype": (lambda v: v.astype(nl.float16), lambda a: a.astype(np.float16)),
    "a slice": (lambda v: v[:, 0:1], lambda a: a),
    "an access": (lambda v: v[nl.arange(P)[:, None], nl.arange(1)[None, :]], lambda a: a),
    "a view of a view": (
        lambda v: v.expand_dims(1).broadcast_to((P, F, 1)),
        lambda a: np.broadcast_to(a[:, None], (P, F, 1))),
    "the value": (lambda v: v, lambda a: a),
}  # fmt: skip


def stored(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=tile)
    return out


@pytest.fixture
def column(rng):
    return rng.integers(1, 9, (P, 1)).astype(np.float32)


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("early", [False, True], ids=["after", "before"])
def test_a_view_of_an_assigned_value_is_not_tied_to_the_tensor(name, early, column):
    """`early`: the view is taken before the value is assigned, otherwise after it."""
    seen, expected = VIEWS[name]

    @nki.jit
    def kernel(x):
        value, tensor = nl.multiply(nl.load(x), 3.0), nl.ndarray((P, 1), dtype=nl.float32)
        view = seen(value) if early else None
        tensor[...] = value
        view = view if early else seen(value)
        tensor[...] = 0
        return stored(nl.copy(view))

    np.testing.assert_array_equal(kernel(column), expected(3 * column))


@pytest.mark.parametrize(
    "name", [n for n in VIEWS if n not in ("a slice", "an access", "astype", "view")]
)
def test_adding_to_a_view_of_a_value_makes_a_new_value(name, column):
    """`view` and `astype` change the numbers; a subscript is a place (T11)."""
    seen, expected = VIEWS[name]

    @nki.jit
    def kernel(x):
        value = nl.multiply(nl.load(x), 3.0)
        view = seen(value)
        view += 1.0
        return stored(value), stored(nl.copy(view))

    value, view = kernel(column)
    np.testing.assert_array_equal(value, 3 * column)
    np.testing.assert_array_equal(view, expected(3 * column) + 1)


def test_adding_to_a_view_of_a_tensor_changes_the_tensor(column):
    @nki.jit
    def kernel(x):
        tensor = nl.ndarray((P, 1), dtype=nl.float32)
        tensor[...] = nl.load(x)
        view = tensor.reshape((P, 1, 1))
        view += 1.0
        return stored(tensor)

    np.testing.assert_array_equal(kernel(column), column + 1)


@pytest.mark.parametrize("shape", [(8, 4), (8, 1)])
@pytest.mark.parametrize("partitions", [8, 1])
def test_a_repeated_tile_is_what_it_was(partitions, shape, evaluate):
    x = np.arange(8, dtype=np.float32).reshape(8, 1)

    def expression(tile):
        column = nl.copy(tile)[0:partitions, :]
        repeated = nl.broadcast_to(column, shape=shape)
        column[...] = 7.0
        return repeated

    wanted = np.broadcast_to(x[0:partitions], shape)
    np.testing.assert_array_equal(evaluate(expression, x), wanted)


def test_writing_to_a_repeated_tile_leaves_the_tile(evaluate):
    x = np.arange(8, dtype=np.float32).reshape(8, 1)

    def expression(tile):
        repeated = tile.broadcast_to((8, 4))
        repeated[:, 1:2] = 7.0
        return tile

    np.testing.assert_array_equal(evaluate(expression, x), x)


WRITTEN = {
    "dma_copy": lambda b, x: nisa.dma_copy(dst=b, src=x),
    "dma_copy under a mask": lambda b, x: nisa.dma_copy(
        dst=b, src=x, mask=nl.arange(P)[:, None] < P
    ),
    "tensor_copy_predicated": lambda b, x: nisa.tensor_copy_predicated(
        src=nl.load(x), dst=b, predicate=nl.full((P, F), 1, dtype=nl.uint8)
    ),
    "assignment": lambda b, x: b.__setitem__(..., nl.load(x)),
}


@pytest.mark.parametrize("write", WRITTEN.values(), ids=WRITTEN)
def test_a_broadcast_value_is_written_like_every_other(write):
    @nki.jit
    def kernel(x):
        tile = nl.load(x)
        value = nl.broadcast_to(tile[:, 0:1], shape=(P, F))
        write(value, x)
        return stored(value), stored(tile)

    x = np.arange(P * F, dtype=np.float32).reshape(P, F)
    for found in kernel(x):
        np.testing.assert_array_equal(found, x)
