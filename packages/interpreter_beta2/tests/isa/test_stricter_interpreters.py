"""Calls that a public interpreter of NKI rejects: what documents say of each, and its values.

Accepted: the documents count elements or name a category, and no value and no limit depends on it.
Rejected: a limit of the documents, in the versions that have it.
"""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.errors import DTypeError, MemorySpaceError, ShapeError


def ramp(*shape: int) -> np.ndarray:
    return np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize("op", ["logical_and", "logical_or", "logical_xor"])
@pytest.mark.parametrize("dtypes", [("int32", "float32"), ("bfloat16", "int8")])
def test_logical_operations_take_any_two_dtypes(every, op, dtypes):
    """They are arithmetic operators: any dtype, converted to float32 [NKI: supported operators]."""
    nl, nisa = every.nl, every.nisa
    left, right = np.array([[0, 3, 0, -2]]), np.array([[0, 0, 5, 7]])

    def kernel(x, y):
        tiles = [nl.ndarray((1, 4), getattr(nl, dtype), buffer=nl.sbuf) for dtype in dtypes]
        for tile, source in zip(tiles, (x, y), strict=True):
            nisa.dma_copy(dst=tile, src=source)
        result = nl.ndarray((1, 4), nl.float32, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=result, data1=tiles[0], data2=tiles[1], op=getattr(nl, op))
        return every.out(result)

    result = every.run(kernel, left.astype(np.float32), right.astype(np.float32))

    assert np.array_equal(result, getattr(np, op)(left, right).astype(np.float32))


def test_a_result_of_a_reduction_has_one_element_per_partition_in_any_rank(every):
    """One element per partition [NKI: activation_reduce, tensor_scalar_reduce]."""
    nl, nisa = every.nl, every.nisa
    x = ramp(8, 4)

    def kernel(x):
        tile = every.tile(x)
        sums = nl.ndarray((8, 1, 1), nl.float32, buffer=nl.sbuf)
        nisa.activation(
            dst=tile, op=nl.copy, data=tile, reduce_op=nl.add, reduce_res=sums,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )  # fmt: skip
        return every.out(sums)

    assert np.array_equal(every.run(kernel, x)[:, 0, 0], x.sum(axis=1))


def test_the_free_sizes_of_a_product_count_and_not_its_ranks(every):
    """The free dimension of stationary matches the partitions of dst in size [NKI: nc_matmul]."""
    nl, nisa = every.nl, every.nisa
    stationary, moving = ramp(4, 2, 3), ramp(4, 4, 5)

    def kernel(stationary, moving):
        product = nl.ndarray((6, 4, 5), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(product, every.tile(stationary), every.tile(moving))
        result = nl.ndarray((6, 4, 5), nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=result, src=product)
        return every.out(result)

    expected = np.einsum("km,kn->mn", stationary.reshape(4, 6), moving.reshape(4, 20))
    assert np.array_equal(every.run(kernel, stationary, moving), expected.reshape(6, 4, 5))


@pytest.mark.parametrize("shape", [(2, 3, 20), (2, 60), (2, 12, 5)])
def test_a_product_that_fits_its_destination_after_a_reshape_alone_is_an_error(every, shape):
    nl, nisa = every.nl, every.nisa

    def kernel(stationary, moving):
        product = nl.ndarray(shape, nl.float32, buffer=nl.psum)
        nisa.nc_matmul(product, every.tile(stationary), every.tile(moving))

    with pytest.raises(ShapeError, match="dst is"):
        every.run(kernel, ramp(4, 2, 3), ramp(4, 4, 5))


def test_a_copy_from_psum_is_an_error_from_0_3_on(every):
    """Sources in PSUM ended with 0.3 [NKI 0.3 migration guide: dma_copy]."""
    nl, nisa = every.nl, every.nisa

    def kernel(x):
        tile = every.tile(x)
        product = nl.ndarray((4, 4), nl.float32, buffer=nl.psum)
        nisa.nc_matmul(product, tile, tile)
        out = nl.ndarray((4, 4), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=product)
        return out

    x = ramp(4, 4)
    if every.version == "0.2":
        assert np.array_equal(every.run(kernel, x), x.T @ x)
    else:
        with pytest.raises(MemorySpaceError, match="src is in PSUM"):
            every.run(kernel, x)


@pytest.mark.parametrize("name", ["dma_copy", "tensor_copy"])
def test_access_patterns_of_different_sizes_are_an_error(every, name):
    nl, nisa = every.nl, every.nisa

    def kernel(x):
        tile, other = every.tile(x), nl.ndarray((8, 8), nl.float32, buffer=nl.sbuf)
        getattr(nisa, name)(dst=other.ap([[8, 8], [1, 4]]), src=tile.ap([[8, 8], [1, 8]]))

    with pytest.raises(ShapeError, match="elements"):
        every.run(kernel, ramp(8, 8))


def test_bitwise_operations_on_floats_are_an_error(every):
    """Bitvec operators take integers, as bit patterns [NKI: supported operators]."""
    nl, nisa = every.nl, every.nisa

    def kernel(x):
        tile = every.tile(x)
        nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nl.bitwise_and)

    with pytest.raises(DTypeError, match="bitwise_and works on raw integer bits"):
        every.run(kernel, ramp(4, 4))
