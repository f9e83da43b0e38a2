"""nl.gather_flattened and nl.atomic_rmw: index tiles that pick elements and rows."""

import numpy as np
import pytest

from neuroncore.errors import (
    AccessError,
    AttributeValueError,
    DTypeError,
    ImmutableError,
    ShapeError,
)
from nki_beta1 import nki, nl

ROWS = np.array([[3], [3], [0], [5]], np.int32)
VALUES = np.arange(4 * 8, dtype=np.float32).reshape(4, 8)
TABLE = np.full((6, 8), 100, np.float32)


def test_gather_picks_elements_of_the_same_partition(evaluate, rng):
    data = rng.standard_normal((8, 4, 16)).astype(np.float32)
    picks = rng.integers(0, 64, (8, 20)).astype(np.uint32)

    result = evaluate(nl.gather_flattened, data, picks)

    flat = data.reshape(8, 64)
    np.testing.assert_array_equal(result, np.take_along_axis(flat, picks.astype(int), axis=1))


def test_gather_takes_unsigned_indices_only(evaluate):
    with pytest.raises(DTypeError, match="indices are int32"):
        evaluate(nl.gather_flattened, VALUES, np.zeros((4, 2), np.int32))


def test_gather_rejects_an_index_outside(evaluate):
    with pytest.raises(AccessError, match="8"):
        evaluate(nl.gather_flattened, VALUES, np.full((4, 2), 8, np.uint32))


def test_gather_reads_no_index_outside_its_mask():
    @nki.jit
    def kernel(data, picks):
        ip, i = nl.arange(4)[:, None], nl.arange(2)[None, :]
        out = nl.ndarray((4, 2), dtype=data.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.zeros((4, 2), dtype=data.dtype))
        inside = (i < 1) & (ip < 3)
        found = nl.gather_flattened(nl.load(data), nl.load(picks), mask=inside)
        nl.store(out[ip, i], found, mask=inside)
        return out

    picks = np.array([[7, 8], [0, 9], [3, 99], [8, 8]], np.uint32)

    assert kernel(VALUES, picks).tolist() == [[7, 0], [8, 0], [19, 0], [0, 0]]


def test_gather_rejects_a_mask_that_is_no_rectangle(evaluate):
    def masked(data, picks):
        ip, i = nl.arange(4)[:, None], nl.arange(4)[None, :]
        return nl.gather_flattened(data, picks, mask=ip < i)

    with pytest.raises(ShapeError, match="does not select a rectangle"):
        evaluate(masked, VALUES, np.zeros((4, 4), np.uint32))


def added(table, rows, values, *, op=np.add, mask=None, subscript=True):
    @nki.jit
    def kernel(table, rows, values):
        out = nl.ndarray(table.shape, dtype=table.dtype, buffer=nl.shared_hbm)
        nl.store(out, value=nl.load(table))
        at, tile = nl.load(rows), nl.load(values)
        i, j = nl.arange(4)[:, None], nl.arange(8)[None, :]
        target = out[at, j] if subscript else out[i, j]
        nl.atomic_rmw(target, value=tile, op=op, mask=mask and mask(i))
        return out

    return kernel(table, rows, values)


def test_atomic_addition_counts_every_value_of_a_row_named_twice():
    expected = TABLE.copy()
    np.add.at(expected, ROWS[:, 0], VALUES)

    np.testing.assert_array_equal(added(TABLE, ROWS, VALUES), expected)


def test_atomic_addition_leaves_out_masked_rows():
    expected = TABLE.copy()
    np.add.at(expected, ROWS[:2, 0], VALUES[:2])

    np.testing.assert_array_equal(added(TABLE, ROWS, VALUES, mask=lambda i: i < 2), expected)


def test_atomic_addition_converts_the_value():
    expected = TABLE.copy()
    np.add.at(expected, ROWS[:, 0], VALUES)

    np.testing.assert_array_equal(added(TABLE, ROWS, VALUES.astype(np.float16)), expected)


def test_atomic_addition_takes_a_number():
    @nki.jit
    def counted(rows):
        out = nl.zeros((6, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.atomic_rmw(out[nl.load(rows), nl.arange(8)[None, :]], value=1.0, op=np.add)
        return out

    counts = np.bincount(ROWS[:, 0], minlength=6)
    np.testing.assert_array_equal(counted(ROWS), np.repeat(counts[:, None], 8, axis=1))


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        (AttributeValueError, {"op": np.max}, "nl.atomic_rmw: cannot do maximum"),
        (AccessError, {"subscript": False}, "dst is not indexed with a tile"),
    ],
)
def test_atomic_operations_that_0_1_does_not_have(kind, changes, message):
    with pytest.raises(kind, match=message):
        added(TABLE, ROWS, VALUES, **changes)


def test_a_parameter_is_not_added_to():
    @nki.jit
    def kernel(table, rows):
        nl.atomic_rmw(table[nl.load(rows), nl.arange(8)[None, :]], value=1.0, op=np.add)

    with pytest.raises(ImmutableError, match="dst is a kernel parameter"):
        kernel(TABLE, ROWS)
