"""Copies whose address a tile holds: what moves, what is read, what it costs."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.enums import MemorySpace
from neuroncore.errors import AccessError
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.isa.examples import example_call


def at(world, tile, column, width):
    """`width` columns of `tile` from the column that an index tile holds."""
    steps = [[tile.shape[1], tile.shape[0]], [1, width]]
    return tile.ap(steps, scalar_offset=world.tile([[column]], "int32"), indirect_dim=1)


def copying(columns):
    def source(core):
        base = core.allocate((4, columns + 8), "float32", MemorySpace.sbuf)
        index = core.adopt(np.full((1, 1), 5, np.int32), MemorySpace.sbuf)
        return base.ap([[columns + 8, 4], [1, columns]], scalar_offset=index, indirect_dim=1)

    record = INSTRUCTIONS["tensor_copy"]
    return record, example_call(
        record, record.examples[0], dst=f"float32[4, {columns}] sbuf", src=source
    ).call


def test_tensor_copy_reads_at_the_index(world, nisa, values):
    base, dst = world.tile(np.arange(16.0).reshape(2, 8)), world.new((2, 3))

    nisa.tensor_copy(dst, at(world, base, 4, 3))

    assert values(dst).tolist() == [[4, 5, 6], [12, 13, 14]]


def test_tensor_copy_writes_at_the_index(world, nisa, values):
    base = world.tile(np.zeros((2, 4)))

    nisa.tensor_copy(at(world, base, 2, 2), world.tile(np.ones((2, 2))))

    assert values(base).tolist() == [[0, 0, 1, 1]] * 2


def test_the_index_tile_of_a_dynamic_operand_is_read():
    record, call = copying(8)

    assert [(e.operand, e.touch.value) for e in record.effects(call)] == [
        ("src", "read"), ("dst", "write"), ("src.index", "read"),
    ]  # fmt: skip


@pytest.mark.parametrize(("columns", "cycles"), [(8, 600), (1000, 1000)])
def test_an_address_from_a_register_takes_600_cycles_at_least(columns, cycles):
    record, call = copying(columns)

    (work,) = record.work(call)

    assert work.interval == cycles  # pyrefly: ignore


@pytest.mark.parametrize("name", ["tensor_copy_dynamic_src", "tensor_copy_dynamic_dst"])
def test_the_names_of_01_copy_like_tensor_copy_and_reject_fixed_places(name):
    record = INSTRUCTIONS[name]
    operand = name.removeprefix("tensor_copy_dynamic_")

    use = example_call(record, record.examples[0])
    use.run()

    assert [e.operand for e in record.effects(use.call)] == ["src", "dst", f"{operand}.index"]
    moved = use.operands["dst"].storage.flat.tolist()
    assert moved == {"src": [2, 3, 6, 7], "dst": [0, 1, 1, 1, 4, 5, 1, 1]}[operand]
    fixed = example_call(record, record.examples[0], **{operand: "float32[2, 2] sbuf"})
    with pytest.raises(AccessError, match=f"{operand} is not indexed by a scalar"):
        fixed.run()
