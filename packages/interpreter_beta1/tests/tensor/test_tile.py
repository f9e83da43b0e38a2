"""Assignments, `+=`, operators, blocks: where values go and when."""

import ml_dtypes
import numpy as np
import pytest

import nki_beta1
from neuroncore.errors import AccessError, CapacityError, ShapeError
from neuroncore.machine.observe import WATCHERS, Watcher
from nki_beta1 import nisa, nki, nl

A = np.arange(8 * 12, dtype=np.float32).reshape(8, 12) / 7 + 0.5


class Names(Watcher):
    def __init__(self):
        self.seen = []

    def did(self, event):
        self.seen.append(event.call.record.name)


def instructions_of(kernel, *arrays):
    watcher = Names()
    token = WATCHERS.set((watcher,))
    try:
        kernel(*arrays)
    finally:
        WATCHERS.reset(token)
    return watcher.seen


def test_an_assigned_instruction_writes_its_target_and_nothing_is_copied():
    @nki.jit
    def kernel(x):
        tile = nl.ndarray((8, 12), dtype=nl.float32)
        tile[...] = nl.load(x)
        tile[0:8, 0:6] = nl.exp(tile[0:8, 6:12])

    assert instructions_of(kernel, A) == ["dma_copy", "activation", "tensor_copy"]


def test_loading_into_a_tensor_is_one_instruction():
    @nki.jit
    def kernel(x):
        i, j = nl.mgrid[0:8, 0:12]
        blocks = nl.ndarray((2, nl.par_dim(8), 12), dtype=nl.float32)
        blocks[1, i, j] = nl.load(x[i, j])

    assert instructions_of(kernel, A) == ["dma_copy"]


def test_a_value_assigned_and_used_again_keeps_its_value(evaluate):
    def body(x):
        y = nl.multiply(x, 2.0)
        tile = nl.ndarray((8, 12), dtype=nl.float32)
        tile[...] = y
        tile[...] = 0
        return y + tile

    np.testing.assert_array_equal(evaluate(body, A), 2 * A)


def test_part_of_a_value_is_not_part_of_what_it_was_assigned_to(evaluate):
    def body(x):
        y = nl.multiply(x, 2.0)
        tile = nl.ndarray((8, 12), dtype=nl.float32)
        tile[...] = y
        half = y[0:8, 0:6]
        tile[...] = 0
        return half + 0.0

    np.testing.assert_array_equal(evaluate(body, A), 2 * A[:, :6])


def test_a_product_added_to_psum_can_still_be_used(evaluate):
    def body(x):
        total = nl.zeros((12, 12), dtype=nl.float32, buffer=nl.psum)
        product = nisa.nc_matmul(x, x)
        total += product
        x[...] = 0
        return product + 0.0

    expected = A.astype(np.float64).T @ A.astype(np.float64)
    # 8 products, each rounded once: 9 roundings of the sum of magnitudes
    np.testing.assert_allclose(evaluate(body, A), expected, rtol=9 * 2.0**-24)


def test_an_assigned_tile_overlapping_its_operand_reads_first(evaluate):
    def body(x):
        x[0:8, 1:12] = nl.multiply(x[0:8, 0:11], 1.0)
        return x

    expected = A.copy()
    expected[:, 1:] = A[:, :-1]
    np.testing.assert_array_equal(evaluate(body, A), expected)


@pytest.mark.parametrize("fresh", [True, False], ids=["nl.ndarray", "nl.zeros"])
def test_plus_equals_of_matmuls_accumulates_in_psum(fresh):
    @nki.jit
    def kernel(x):
        make = nl.ndarray if fresh else nl.zeros
        total = make((nl.par_dim(12), 12), dtype=nl.float32, buffer=nl.psum)
        for _ in nl.affine_range(3):
            tile = nl.load(x)
            total[...] += nisa.nc_matmul(tile, tile)
        out = nl.ndarray((12, 12), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(out, value=total)
        return out

    expected = 3 * (A.astype(np.float64).T @ A.astype(np.float64))
    np.testing.assert_allclose(kernel(A), expected, rtol=30 * 2.0**-24)
    assert instructions_of(kernel, A).count("nc_matmul") == 3
    assert "tensor_tensor" not in instructions_of(kernel, A)


def test_plus_equals_adds_to_what_a_copy_has_put_into_psum(evaluate):
    def body(x):
        total = nl.full((12, 12), 5.0, dtype=nl.float32, buffer=nl.psum)
        total += nisa.nc_matmul(x, x)
        return nl.copy(total)

    x = np.ones((8, 12), np.float32)
    np.testing.assert_array_equal(evaluate(body, x), np.full((12, 12), 13.0))


def test_fresh_psum_starts_a_sum_on_any_earlier_contents(evaluate):
    def body(x):
        total = nl.zeros((12, 12), dtype=nl.float32)
        for _ in range(8):
            initialised = nl.zeros((12, 12), dtype=nl.float32, buffer=nl.psum)
            del initialised
            fresh = nl.ndarray((12, 12), dtype=nl.float32, buffer=nl.psum)
            fresh += nisa.nc_matmul(x, x)
            total += fresh
        return total

    x = np.ones((8, 12), np.float32)
    np.testing.assert_array_equal(evaluate(body, x), np.full((12, 12), 64.0))


def test_assigning_a_matmul_overwrites_what_psum_held(evaluate):
    def body(x):
        psum = nl.ndarray((12, 12), dtype=nl.float32, buffer=nl.psum)
        for _ in range(2):
            psum[...] = nisa.nc_matmul(x, x)
        return nl.copy(psum)

    np.testing.assert_array_equal(
        evaluate(body, np.ones((8, 12), np.float32)), np.full((12, 12), 8)
    )


def test_plus_equals_changes_a_tensor_in_place_and_rebinds_a_value(evaluate):
    def body(x):
        tensor = nl.ndarray((8, 12), dtype=nl.float32)
        tensor[...] = x
        alias = tensor
        tensor += 1.0
        value = nl.copy(x)
        kept = value
        value += 10.0
        other = nl.copy(x)
        kept_too = other
        other -= 5.0
        return alias + (kept + kept_too) / 2

    np.testing.assert_array_equal(evaluate(body, A), np.float32(A + np.float32(1)) + A)


@pytest.mark.parametrize(
    ("operation", "reference"),
    [
        (lambda a, b: a + b, lambda a, b: a + b),
        (lambda a, b: 2 - a, lambda a, b: 2 - a),
        (lambda a, b: a * b, lambda a, b: a * b),
        (lambda a, b: 1.0 / a, lambda a, b: 1 / a),
        (lambda a, b: a / b, lambda a, b: a / b),
        (lambda a, b: -a, lambda a, b: -a),
        (lambda a, b: a**2, lambda a, b: a**2),
        (lambda a, b: a < b, lambda a, b: a < b),
        (lambda a, b: (a >= b) & (a != 3.0), lambda a, b: (a >= b) & (a != 3.0)),
    ],
    ids=["+", "reflected -", "*", "reflected /", "/", "negation", "**", "<", "& of comparisons"],
)
def test_operators_are_element_wise(operation, reference, evaluate, rng):
    b = rng.uniform(1, 8, A.shape).astype(np.float32)

    expected = reference(A.astype(np.float64), b.astype(np.float64))
    np.testing.assert_allclose(evaluate(operation, A, b), expected, rtol=2.0**-22)


def test_operators_broadcast_along_free_axes_only(evaluate):
    column, row = A[:, :1], A[:1]

    np.testing.assert_array_equal(evaluate(lambda a, c: a - c, A, column), A - column)
    np.testing.assert_array_equal(evaluate(lambda a, r: nl.multiply(a, r), A, row), A * row)
    with pytest.raises(ShapeError, match="operator on tiles of 8 and 1 partitions"):
        evaluate(lambda a, r: a * r, A, row)


def test_block_dimensions_hold_tiles_of_their_own(evaluate):
    def body(x):
        blocks = nl.zeros((2, 3, nl.par_dim(8), 12), dtype=nl.float32)
        assert blocks.shape == (2, 3, 8, 12)
        for b in nl.affine_range(2):
            blocks[b, 1] = nl.multiply(x, b + 1.0)
            blocks[b, 2, 0:8, 0:6] = x[0:8, 0:6]
        return blocks[1, 1] + blocks[0, 2] + blocks[1][0]

    expected = 2 * A
    expected[:, :6] += A[:, :6]
    np.testing.assert_array_equal(evaluate(body, A), expected)


def test_axes_of_one_grid_run_over_blocks_partitions_and_elements(evaluate):
    def body(x):
        blocks = nl.ndarray((3, nl.par_dim(8), 12), dtype=nl.float32)
        i_b, i_p, i_f = nl.mgrid[0:1, 0:8, 0:12]
        for b in nl.affine_range(3):
            blocks[i_b + b, i_p, i_f] = nl.multiply(x, b + 1.0)
        i_row = nl.mgrid[0:1, 0:1, 0:6]
        blocks[i_row[0] + 2, i_row[1], 2 * i_row[2]] = nl.zeros((1, 1, 6), dtype=nl.float32)
        return blocks[2]

    expected = 3 * A
    expected[0, ::2] = 0
    np.testing.assert_array_equal(evaluate(body, A), expected)


def test_an_assigned_value_of_lower_rank_repeats_along_the_last_axes(evaluate):
    def body(x):
        cube = nl.ndarray((8, 4, 3), dtype=nl.float32)
        cube[...] = x[:, 2:3]
        return cube

    np.testing.assert_array_equal(
        evaluate(body, A), np.broadcast_to(A[:, 2, None, None], (8, 4, 3))
    )


def test_all_blocks_together_may_exceed_a_memory_but_not_one_of_them():
    @nki.jit
    def kernel(width):
        nl.ndarray((64, nl.par_dim(128), width), dtype=nl.float32, buffer=nl.psum)

    kernel(512)
    with pytest.raises(CapacityError, match="20000 bytes per partition do not fit PSUM"):
        kernel(5000)


@pytest.mark.parametrize(
    ("use", "text"),
    [
        (lambda t: t[5], "block 5 of dimension 0 does not exist"),
        (lambda t: t[nl.arange(2)[:, None], 0, 0], "block dimension 0 is indexed with a Index"),
        (lambda t: t.reshape((8, 4)), "reshape of a tensor with block dimensions"),
    ],
)
def test_a_wrong_block_index_is_explained(use, text):
    @nki.jit
    def kernel():
        use(nl.ndarray((2, nl.par_dim(8), 4), dtype=nl.float32))

    with pytest.raises(AccessError, match=text):
        kernel()


def test_tile_methods_give_views_and_copies(evaluate):
    assert evaluate(lambda x: x.astype(nl.int32), A).dtype == np.int32
    np.testing.assert_array_equal(evaluate(lambda x: x.reshape((8, 3, 4)), A), A.reshape(8, 3, 4))
    np.testing.assert_array_equal(evaluate(lambda x: x.expand_dims(1), A), A[:, None, :])
    np.testing.assert_array_equal(evaluate(lambda x: x.view(nl.int32), A), A.view(np.int32))
    row = A[:1]
    np.testing.assert_array_equal(
        evaluate(lambda r: r.broadcast_to((8, 12)), row), np.broadcast_to(row, (8, 12))
    )


def test_a_tile_shows_numpy_dtypes_to_the_kernel():
    @nki.jit
    def kernel(x):
        assert x.dtype == np.float32 and x.dtype == nl.float32
        assert nl.load(x, dtype=nl.bfloat16).dtype == nl.bfloat16
        assert nl.load(x).shape == x.shape and nl.load(x).ndim == 2
        assert (nl.load(x).itemsize, nl.load(x, dtype=nl.bfloat16).itemsize) == (4, 2)
        assert nl.ndarray((2, nl.par_dim(8), 4), nl.int8).itemsize == 1

    kernel(A)
    assert np.zeros(3, nl.float32).dtype == np.float32 and nki_beta1.nl.bfloat16.itemsize == 2


@pytest.mark.parametrize("is_transpose", [False, True])
def test_a_matmul_in_transpose_mode_keeps_the_dtype_of_its_data(evaluate, is_transpose):
    """A product is float32; a transpose moves bits."""
    data = np.arange(12.0).reshape(4, 3).astype(ml_dtypes.bfloat16)

    def transposed(x, identity):
        return nisa.nc_matmul(x, identity, is_transpose=is_transpose)

    result = evaluate(transposed, data, np.eye(4, dtype=data.dtype))

    assert result.dtype == (data.dtype if is_transpose else np.float32)
    np.testing.assert_array_equal(result.astype(np.float32), data.T.astype(np.float32))


@pytest.mark.parametrize("axis", [[1, 1], (2, -1), [2, 1, 2]], ids=str)
@pytest.mark.parametrize("name", ["sum", "max", "all", "mean", "var"])
def test_an_axis_is_reduced_once(evaluate, name, axis):
    with pytest.raises(ShapeError, match="axis names a dimension twice") as caught:
        evaluate(lambda t: getattr(nl, name)(t.reshape((8, 3, 4)), axis=axis), A)
    assert "^" in str(caught.value) and f"nl.{name}: axis" in str(caught.value)
