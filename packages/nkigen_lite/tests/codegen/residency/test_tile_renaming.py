"""Transfers of tiles that are removed, and operands that are not tiles."""

from __future__ import annotations

from neuroncore.enums import MemorySpace
from neuroncore.machine.core import NeuronCore
from neuroncore.program import Access, Affine, Allocate, Buffer, make_call, whole
from nki_dtypes import int32
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
