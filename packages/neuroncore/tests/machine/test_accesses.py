"""What executed instructions touch, against memory that was marked."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.effects import Touch, footprint
from neuroncore.enums import MemorySpace
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.machine.accesses import Touched, conflict, footprint_of, touched
from neuroncore.machine.core import NeuronCore
from neuroncore.machine.observe import Watcher, watched_by
from neuroncore.memory import View

READ, WRITE, ADD = Touch.read, Touch.write, Touch.accumulate


def bytes_in(footprints):
    found = set()
    for part in footprints:
        starts = np.array([part.offset])
        for size, stride in zip(part.shape, part.strides, strict=True):
            starts = (starts[:, None] + np.arange(size) * stride).reshape(-1)
        found |= {int(b) for b in (starts[:, None] + np.arange(part.itemsize)).reshape(-1)}
    return found


def bytes_read(view: View):
    """Which bytes of its storage reading the view gives, by giving each byte its number."""
    memory = view.storage.flat.view(np.uint8)
    number = np.arange(memory.size)
    halves = []
    for half in (number & 255, number >> 8):
        memory[...] = half
        halves.append(np.ascontiguousarray(view.array).view(np.uint8).reshape(-1).astype(int))
    return set((halves[0] | halves[1] << 8).tolist())


@pytest.fixture
def tensor():
    return NeuronCore().allocate((8, 4, 6), "int32", MemorySpace.hbm)


STATIC = {
    "whole": lambda t: t,
    "slice": lambda t: t[2:5, 1:3, 2:4],
    "step": lambda t: t[::3, 1:4:2, ::2],
    "one index": lambda t: t[3, :, 1],
    "permuted": lambda t: t[1:7].permute((2, 0, 1)),
    "reshaped": lambda t: t[1:3].reshape((8, 6)),
    "broadcast": lambda t: t[0:1].broadcast(0, 5),
    "seen as bytes": lambda t: t[:, :, 1:2].view("uint8"),
    "seen as pairs": lambda t: t.ap([[4, 3], [1, 2]], offset=5, dtype="int16"),
    "pattern": lambda t: t.ap([[30, 3], [7, 2], [2, 3]], offset=11),
    "backward pattern": lambda t: t.ap([[-24, 3], [1, 5]], offset=100),
    "overlapping windows": lambda t: t.ap([[2, 6], [1, 5]], offset=3),
}


@pytest.mark.parametrize("kind", STATIC)
def test_the_footprint_of_a_view_is_the_bytes_that_reading_it_gives(tensor, kind):
    view = STATIC[kind](tensor)
    (found,) = footprint_of(view)
    assert bytes_in([found]) == bytes_read(view)
    assert found.num_bytes() == len(bytes_read(view))


@pytest.mark.parametrize("space", [MemorySpace.sbuf, MemorySpace.psum])
def test_partitions_follow_one_another_by_the_bytes_of_the_tensor(space):
    tile = NeuronCore().allocate((128, 512), "float32", space)
    assert footprint_of(tile[32:64, 128:256]) == (
        footprint(32 * 2048 + 512, (32, 128), (2048, 4), 4),
    )


def test_lenient_precision_keeps_the_sizes_of_the_machine(make_world):
    from neuroncore.options import Options

    tile = make_world(options=Options(precise=False)).new((4, 8), "bfloat16")
    assert footprint_of(tile[1:2, 2:4]) == (footprint(20, (2,), (2,), 2),)


def gather(world, index, rows=6):
    tensor = world.tile(np.zeros((rows, 4)), space="hbm")
    chosen = world.tile(np.array(index).reshape(-1, 1), "int32")
    return tensor.ap([[4, len(index)], [1, 3]], offset=1, vector_offset=chosen)


@pytest.mark.parametrize("index", [[0], [5, 2, 2, 1], [1, 3, 5], [4, 3, 2, 1], [0, 1, 4, 5]])
def test_a_gather_names_exactly_its_rows(world, index):
    marked = {(4 * row + 1) * 4 + b for row in index for b in range(12)}
    assert bytes_in(footprint_of(gather(world, index))) == marked


def test_rows_at_equal_distances_are_one_footprint(world):
    assert len(footprint_of(gather(world, [4, 0, 2]))) == 1


def test_rows_out_of_bounds_are_not_touched(world):
    assert footprint_of(gather(world, [9, -1])) == ()
    assert bytes_in(footprint_of(gather(world, [9, 1]))) == set(range(20, 32))


@pytest.mark.parametrize(("index", "marked"), [(2, set(range(36, 48))), (6, set()), (-1, set())])
def test_a_scalar_offset_moves_the_footprint(world, index, marked):
    tensor = world.tile(np.zeros((6, 4)), space="hbm")
    chosen = world.tile([[index]], "int32")
    view = tensor.ap([[4, 1], [1, 3]], offset=1, scalar_offset=chosen)
    assert bytes_in(footprint_of(view)) == marked


class Recorder(Watcher):
    def __init__(self):
        self.seen = []

    def will(self, event):
        self.seen.append(touched(event))


def summary(found):
    return {(t.operand, t.touch) for t in found}


def test_an_executed_gather_reads_its_index_too(nisa, make_world):
    recorder = Recorder()
    with watched_by(recorder):
        world = make_world()
        view = gather(world, [5, 2])
        dst = world.new((2, 3))
        nisa.dma_copy(dst=dst, src=view)

    (found,) = recorder.seen
    assert summary(found) == {("src", READ), ("src.index", READ), ("dst", WRITE)}
    by_name = {t.operand: t for t in found}
    assert by_name["src.index"].where is view.dynamic.index.storage
    assert bytes_in(by_name["src.index"].footprints) == set(range(8))
    assert by_name["src"].where is view.storage


def test_registers_go_by_name_and_numbers_are_not_touched(nisa, make_world):
    recorder = Recorder()
    with watched_by(recorder):
        world = make_world()
        nisa.rng(dst=world.new((4, 4), "uint32"))

    (found,) = recorder.seen
    registers = [t for t in found if t.is_register]
    assert [t.where for t in registers] == ["vector.random"]
    assert registers[0].footprints == ()


def test_every_record_says_what_its_example_touches():
    from neuroncore.isa.examples import example_call

    for record in INSTRUCTIONS.values():
        made = example_call(record, record.examples[0])
        found = touched(made.call, made.operands)
        assert {t.operand for t in found} >= {n for n in record.outputs if n in made.call.tiles}
        assert all(t.footprints for t in found if not t.is_register)


def at(touch, first, stop, where="t"):
    return Touched(touch, "x", where, (footprint(first, (stop - first,), (1,), 1),))


@pytest.mark.parametrize(
    ("one", "other", "matters"),
    [
        (READ, READ, False), (READ, WRITE, True), (WRITE, READ, True), (WRITE, WRITE, True),
        (ADD, ADD, False), (ADD, READ, True), (WRITE, ADD, True),
    ],
)  # fmt: skip
def test_order_matters_unless_both_read_or_both_accumulate(one, other, matters):
    assert conflict(at(one, 0, 8), at(other, 7, 9)) is matters
    assert not conflict(at(one, 0, 8), at(other, 8, 9))
    assert not conflict(at(one, 0, 8), at(other, 0, 8, where="u"))


def test_registers_conflict_by_name_and_never_with_memory():
    held, drawn = (
        Touched(WRITE, n, n, (), is_register=True)
        for n in ("scalar.accumulators", "vector.generator")
    )
    assert conflict(held, held) and not conflict(held, drawn)
    assert not conflict(held, at(WRITE, 0, 8, where="scalar.accumulators"))


def test_a_skipped_access_conflicts_with_nothing():
    skipped = Touched(WRITE, "dst", "t", ())
    assert not conflict(skipped, skipped) and not conflict(skipped, at(READ, 0, 8))


def test_clobbers_of_a_register_commute_with_one_another_alone():
    clobber, reduce = (
        Touched(touch, "vector.accumulators", "vector.accumulators", (), is_register=True)
        for touch in (Touch.clobber, Touch.accumulate)
    )

    assert not conflict(clobber, clobber)
    assert conflict(clobber, reduce) and conflict(reduce, clobber)
