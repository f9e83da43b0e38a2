"""Transfers of tiles that are removed, and operands that are not tiles."""

from __future__ import annotations

from dataclasses import replace

from neuroncore.enums import MemorySpace
from neuroncore.machine.core import NeuronCore
from neuroncore.program import Access, Affine, Allocate, Buffer, make_call, whole
from nki_dtypes import float32, int32
from nkigen_lite.codegen.residency.tile_renaming import Renamer


def test_an_index_of_rank_0_in_hbm_is_not_a_tile():
    index = Buffer("index", (1,), int32, MemorySpace.private_hbm)
    resident = Buffer("on_chip", (1, 1), int32, MemorySpace.sbuf)
    other = Access("index", Affine(), (), ())
    copy = make_call("dma_copy", dst=whole(index), src=whole(resident))
    renamer = Renamer(
        NeuronCore("trn2", watchers=()), "0.7", {b.name: b for b in (index, resident)}
    )

    assert renamer.without_transfer((Allocate(index), copy), 1, other, whole(resident), {}) is None


def test_a_tile_of_other_partitions_than_the_array_on_chip_is_still_loaded():
    array = Buffer("x", (81, 95), float32, MemorySpace.hbm)
    tile, copied = (Buffer(name, (81, 95), float32, MemorySpace.sbuf) for name in ("tile", "out"))
    resident = Buffer("on_chip", (27, 3, 95), float32, MemorySpace.sbuf)
    load = make_call(
        "dma_copy", dst=whole(tile), src=Access("x", Affine(), (27, 3, 95), (95, 2565, 1))
    )
    use = make_call("tensor_copy", dst=whole(copied), src=whole(tile))
    buffers = {b.name: b for b in (array, tile, copied, resident)}
    renamer = Renamer(NeuronCore("trn2", watchers=()), "0.7", buffers)
    body = Allocate(tile), load, Allocate(copied), use

    assert renamer.without_transfer(body, 1, whole(tile), whole(resident), {}) is None
    same = replace(resident, shape=(81, 95))
    assert renamer.without_transfer(body, 1, whole(tile), whole(same), {}) is not None
