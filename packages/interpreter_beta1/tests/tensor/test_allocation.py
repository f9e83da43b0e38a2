"""Direct allocation: which address each block gets, and what the machine says about it."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from neuroncore.errors import AttributeValueError, CapacityError, PartitionError
from neuroncore.machine.observe import Watcher, watched_by
from nki_beta1 import nki, nl

ncc = nki.compiler


class Addresses(Watcher):
    """The address of every tensor that was given one."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int]] = []

    def allocated(self, storage: Any) -> None:
        if storage.address is not None:
            self.seen.append(storage.address)


def addresses(shape: tuple[int, ...], buffer: Any, dtype: Any = np.float32) -> list[Any]:
    """Of the blocks of such a tensor, in order; par_dim is the last but one dimension."""
    *blocks, partitions, free = shape

    @nki.jit
    def kernel():
        made = nl.ndarray((*blocks, nl.par_dim(partitions), free), dtype=dtype, buffer=buffer)
        for at in np.ndindex(*blocks):
            made[tuple(at)] if at else made

    watcher = Addresses()
    with watched_by(watcher):
        kernel()
    return watcher.seen


@pytest.mark.parametrize(
    ("blocks", "tiles", "expected"),
    [
        ((), (), [100]),
        ((), (8,), [100]),
        ((4,), (), [100, 100, 100, 100]),
        ((4,), (2,), [100, 116, 100, 116]),
        ((2, 3), (2, 2), [100, 116, 100, 132, 148, 132]),
    ],
    ids=["one", "one-in-a-ring", "same", "ring", "two-rings"],
)
def test_blocks_go_round_the_tiles_of_sbuf(blocks, tiles, expected):
    where = ncc.sbuf.mod_alloc(base_addr=100, num_free_tiles=tiles)

    assert addresses((*blocks, 128, 4), where) == [(0, byte) for byte in expected]


def test_tiles_may_lie_side_by_side_in_the_partitions():
    where = ncc.sbuf.mod_alloc(base_addr=0, base_partition=32, num_par_tiles=(2,))

    assert addresses((3, 32, 4), where) == [(32, 0), (64, 0), (32, 0)]


def test_blocks_go_round_the_banks_of_psum():
    where = ncc.psum.mod_alloc(base_bank=6, num_bank_tiles=(2,))

    assert addresses((3, 128, 512), where) == [(0, 6 * 2048), (0, 7 * 2048), (0, 6 * 2048)]


def test_an_allocation_function_is_asked_by_name_for_every_block():
    def in_sbuf(base, idx, pdim_size, fdim_size):
        assert pdim_size == 64
        return 0, base + idx[0] * fdim_size

    def in_psum(idx, pdim_size, fdim_size):
        return 3 + idx[0], 0, 0

    assert addresses((2, 64, 4), ncc.sbuf.alloc(functools.partial(in_sbuf, 40)), np.int8) == [
        (0, 40),
        (0, 44),
    ]
    assert addresses((2, 64, 4), ncc.psum.alloc(in_psum)) == [(0, 3 * 2048), (0, 4 * 2048)]


def test_automatic_allocation_gives_no_address():
    assert addresses((2, 128, 4), ncc.sbuf.auto_alloc()) == []
    assert addresses((2, 128, 4), ncc.psum.auto_alloc()) == []


def test_a_tile_at_an_address_computes_like_any_other(rng):
    x = rng.standard_normal((128, 64), dtype=np.float32)

    @nki.jit
    def kernel(x):
        held = nl.ndarray((2, nl.par_dim(128), 64), x.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=0))
        held[0] = nl.load(x)
        held[1] = held[0] + held[0]
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nl.store(out, held[1])
        return out

    np.testing.assert_array_equal(kernel(x), x + x)


@pytest.mark.parametrize(
    ("where", "error", "text"),
    [
        (ncc.sbuf.mod_alloc(base_addr=224 << 10), CapacityError, "offset 229376 is outside SBUF"),
        (ncc.psum.mod_alloc(base_bank=0, base_addr=4), CapacityError, "not at a bank"),
        (ncc.sbuf.mod_alloc(base_addr=0, num_free_tiles=(2, 2)), AttributeValueError, "1 sizes"),
        (ncc.sbuf.mod_alloc(base_addr=0, base_partition=64), PartitionError, "64 to 191"),
        (ncc.sbuf.alloc(lambda idx, pdim_size, fdim_size: 0), AttributeValueError, "no address"),
    ],
    ids=["beyond", "bank", "rank", "partitions", "function"],
)
def test_what_is_no_address_is_rejected(where, error, text):
    with pytest.raises(error, match=text):
        addresses((2, 128, 512), where)


def test_a_partition_in_between_is_rejected():
    with pytest.raises(AttributeValueError, match="0, 32, 64, 96"):
        ncc.sbuf.mod_alloc(base_addr=0, base_partition=16)


def test_a_loop_body_that_counts_addresses_up_keeps_its_first_place():
    """0.1 ran the body once, so that the count never left the memory (trap T1)."""

    @nki.jit
    def kernel():
        address = 0
        for _ in nl.affine_range(5):
            nl.ndarray((128, 1 << 14), np.float32, buffer=ncc.sbuf.mod_alloc(base_addr=address))
            address += 1 << 16

    watcher = Addresses()
    with watched_by(watcher):
        kernel()

    assert [byte >> 16 for _, byte in watcher.seen] == [0, 1, 2, 0, 0]
