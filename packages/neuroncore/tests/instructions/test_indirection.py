"""Tensor indirection: free elements at offsets in a tile, against indexing in Python."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.checks import Report, watching
from neuroncore.checks.memory import Memory
from neuroncore.enums import MemorySpace, ReduceCmd
from neuroncore.errors import (
    AccessError,
    MemorySpaceError,
    PartitionError,
    UnsupportedError,
)
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.isa.functions import make_function
from neuroncore.machine.accesses import footprint_of
from neuroncore.machine.core import NeuronCore
from neuroncore.machine.launch import execute
from neuroncore.machine.observe import Watcher
from neuroncore.surface import signature


@pytest.fixture
def world(make_world):
    return make_world("trn3")


def offset(index, p, i):
    """Offset i of partition p: its group's tile, column by column."""
    return int(index[p // 16 * 16 + i % 16, i // 16])


def picked(exact, index, count):
    flat = exact.reshape(len(exact), -1)
    return np.array(
        [[flat[p, offset(index, p, i)] for i in range(count)] for p in range(len(flat))]
    )


def distinct(rng, partitions, columns, free):
    """Index tiles whose offsets differ within each group."""
    groups = [rng.permutation(free)[: 16 * columns] for _ in range(partitions // 16)]
    return np.concatenate([g.reshape(columns, 16).T for g in groups])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("kind", ["uint16", "int32", "uint32"])
@pytest.mark.parametrize(("partitions", "count"), [(16, 1), (32, 16), (128, 20)])
def test_elements_are_read_at_the_offsets_of_their_group(
    world, nisa, rng, values, dtype, kind, partitions, count
):
    exact, index = rng.integers(-9, 9, (partitions, 6, 8)), rng.integers(0, 48, (partitions, 2))
    source = world.tile(exact, dtype)
    dst = world.new((partitions, count), dtype)

    nisa.tensor_copy(dst, source.indirect(world.tile(index, kind), count))

    assert values(dst).tolist() == picked(exact, index, count).tolist()


@pytest.mark.parametrize("count", [5, 32])
def test_results_are_written_at_their_offsets_and_nowhere_else(world, nisa, rng, values, count):
    index, exact = distinct(rng, 32, 2, 40), rng.integers(-9, 9, (32, count))
    dst = world.tile(np.full((32, 40), 99.0))

    nisa.tensor_scalar(
        dst.indirect(world.tile(index, "uint16"), count), world.tile(exact), "add", 1
    )

    expected = np.full((32, 40), 99.0)
    for p in range(32):
        for i in range(count):
            expected[p, offset(index, p, i)] = exact[p, i] + 1
    assert values(dst).tolist() == expected.tolist()


def test_offsets_are_looked_at_when_the_instruction_runs(world, nisa, values):
    source, index = world.tile(np.tile(np.arange(8.0), (16, 1))), world.tile([[0]] * 16, "uint16")
    there, dst = source.indirect(index, 16), world.new((16, 16))

    nisa.memset(index, 5)
    nisa.tensor_copy(dst, there)

    assert (values(dst) == 5).all()


def calls(world, nisa, plain, index):
    """Each instruction that gathers, with its result's values without indirection."""
    one, dst, res = world.new((16, 1)), world.new((16, 16)), world.new((16, 1))
    mask = world.tile(np.ones((16, 16)), "uint8")
    return {
        "tensor_copy": lambda x: nisa.tensor_copy(dst, x),
        "tensor_tensor": lambda x: nisa.tensor_tensor(dst, x, plain, "add"),
        "tensor_scalar": lambda x: nisa.tensor_scalar(dst, x, "multiply", 2.0),
        "tensor_scalar_reduce": lambda x: nisa.tensor_scalar_reduce(dst, x, "add", 1.0, "add", res),
        "tensor_scalar_cumulative": lambda x: nisa.tensor_scalar_cumulative(
            dst, x, "multiply", "add", 1.0
        ),
        "tensor_reduce": lambda x: nisa.tensor_reduce(one, "add", x, 1),
        "tensor_copy_predicated": lambda x: nisa.tensor_copy_predicated(
            dst, 3.0, mask.indirect(index, 16)
        ),
        "activation": lambda x: nisa.activation(dst, "square", x),
        "activation_reduce": lambda x: nisa.activation_reduce(dst, "square", x, "add", res),
        "activate2": lambda x: nisa.activate2(dst, "copy", x, 2.0, 0, "multiply", "bypass"),
        "exponential": lambda x: nisa.exponential(
            dst, x, reduce_res=res, reduce_cmd=ReduceCmd.reset_reduce
        ),
    }, (one, dst, res)


GATHERING = sorted(name for name, r in INSTRUCTIONS.items() if r.gathers)


@pytest.mark.parametrize("name", GATHERING)
def test_every_instruction_that_gathers_computes_on_what_it_gathered(world, nisa, rng, name):
    exact, index = rng.integers(-3, 3, (16, 16)).astype(float), rng.integers(0, 16, (16, 1))
    tile = world.tile(index, "uint16")
    plain = world.tile(picked(exact, index, 16))

    def run(x):
        made, outputs = calls(world, nisa, plain, tile)
        for out in outputs:
            nisa.memset(out, 0)
        made[name](x)
        return [o.array.copy() for o in outputs]

    gathered = run(world.tile(exact).indirect(tile, 16))

    for got, expected in zip(gathered, run(plain), strict=True):
        np.testing.assert_array_equal(got, expected)


# -- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [7, 8])
def test_an_offset_stays_in_its_partition(world, nisa, value):
    source, dst = world.tile(np.zeros((16, 8))), world.new((16, 16))
    there = source.indirect(world.tile([[value]] * 16, "int32"))

    if value == 7:
        nisa.tensor_copy(dst, there)
        return
    with pytest.raises(AccessError, match="an offset is 8"):
        nisa.tensor_copy(dst, there)


def test_two_results_do_not_share_an_offset(world, nisa):
    dst = world.tile(np.zeros((16, 8)))
    there = dst.indirect(world.tile([[1]] * 16, "int32"), 2)

    with pytest.raises(AccessError, match="two results go to one offset"):
        nisa.tensor_copy(there, world.tile(np.zeros((16, 2))))


@pytest.mark.parametrize(
    ("index", "count", "error"),
    [
        (((32, 1), "uint16"), 16, None),
        (((32, 1), "uint16"), 17, "17 offsets"),
        (((32, 1), "uint16"), 0, "0 offsets"),
        (((32, 1), "uint16"), None, "32 offsets"),
        (((16, 1), "uint16"), 4, "does not fit"),
        (((32, 1), "float32"), 4, "does not fit"),
        (((32, 1), "uint16", "hbm"), 4, "does not fit"),
    ],
)
def test_what_an_index_is(world, index, count, error):
    source = world.tile(np.zeros((32, 8)))

    if error is None:
        assert source.indirect(world.new(*index), count).shape == (32, count)
        return
    with pytest.raises(AccessError, match=error):
        source.indirect(world.new(*index), count)


def test_partitions_come_in_groups_of_sixteen(world):
    with pytest.raises(AccessError, match="does not fit"):
        world.tile(np.zeros((8, 8))).indirect(world.new((8, 1), "uint16"), 4)


@pytest.mark.parametrize(("target", "version", "legal"), [
    ("trn3", "0.5", True), ("trn3", "0.4", False), ("trn2", "0.6", False),
])  # fmt: skip
def test_it_came_with_gen4_and_05(make_world, target, version, legal):
    world, found = make_world(target), signature("tensor_copy", version)
    assert found is not None
    copy = make_function(INSTRUCTIONS["tensor_copy"], found)
    there = world.tile(np.zeros((16, 8))).indirect(world.tile([[0]] * 16, "uint16"), 4)

    if legal:
        copy(world.new((16, 4)), there)
        return
    with pytest.raises(UnsupportedError, match="tensor indirection"):
        copy(world.new((16, 4)), there)


def test_other_operands_and_instructions_take_none(world, nisa):
    there = world.tile(np.zeros((16, 16))).indirect(world.tile([[0]] * 16, "uint16"))
    plain, dst = world.tile(np.zeros((16, 16))), world.new((16, 16))

    with pytest.raises(AccessError, match="data2 takes no tensor indirection"):
        nisa.tensor_tensor(dst, plain, there, "add")
    with pytest.raises(AccessError, match="data takes no tensor indirection"):
        nisa.reciprocal(dst, there)
    with pytest.raises(AccessError, match="moving takes no tensor indirection"):
        nisa.nc_matmul(world.new((16, 16), space="psum"), plain, there)


def test_the_scalar_engine_does_not_scatter_into_psum(world, nisa):
    psum, index = world.tile(np.zeros((16, 16)), space="psum"), world.tile([[0]] * 16, "uint16")
    one = world.tile(np.zeros((16, 1)))

    nisa.tensor_copy(psum.indirect(index, 1), one)
    with pytest.raises(MemorySpaceError, match="dst is scattered in PSUM"):
        nisa.activation(psum.indirect(index, 1), "copy", one)


def test_an_index_starts_where_its_tensor_does(world, nisa):
    source, index = world.tile(np.zeros((64, 8))), world.tile(np.zeros((64, 1)), "uint16")
    dst = world.new((64, 4))

    nisa.tensor_copy(dst[32:64, :], source[32:64, :].indirect(index[32:64, :], 4))
    with pytest.raises(PartitionError, match="the index of src starts at partition 32"):
        nisa.tensor_copy(dst[0:32, :], source[0:32, :].indirect(index[32:64, :], 4))


# -- under observers ------------------------------------------------------------------------------


class Allocations(Watcher):
    def __init__(self):
        self.count = 0

    def allocated(self, storage):
        self.count += 1


@pytest.mark.parametrize(
    ("offsets", "unwritten"),
    [([0, 5, 39], None), ([0, 40, 41], "32 of 48 elements"), ([47] * 3, "48 elements")],
    ids=["written", "two of three", "one, thrice"],
)
def test_a_gather_of_what_nothing_has_written_is_found(make_world, nisa, offsets, unwritten):
    """Only the elements that the offsets name are looked at."""
    report = Report()
    world = make_world("trn3", watchers=[Memory(report)])
    source = world.new((16, 48))
    nisa.memset(source[:, 0:40], 1.0)
    index = world.tile([[n] for n in offsets] + [[0]] * 13, "uint16")

    nisa.tensor_copy(world.new((16, 3)), source.indirect(index, 3))

    said = [f.message for f in report]
    assert said == ([f"src reads {unwritten} that nothing has written"] if unwritten else [])


def test_a_scatter_writes_what_its_offsets_name(make_world, nisa):
    report = Report()
    world = make_world("trn3", watchers=[Memory(report)])
    target, row = world.new((16, 8)), world.new((16, 8))
    index = world.tile([[n] for n in (1, 3, 5, 7)] + [[0]] * 12, "uint16")

    nisa.tensor_copy(target.indirect(index, 4), world.tile(np.ones((16, 4))))
    nisa.tensor_copy(row[:, 1:8:2], target[:, 1:8:2])
    assert not list(report)
    nisa.tensor_copy(row, target)

    (found,) = report
    assert found.message == "src reads 64 of 128 elements that nothing has written"
    assert str(found.got).startswith("the tensor[0:16, 0:7] (64 elements in it)")


def test_an_index_that_nothing_has_written_is_found(make_world, nisa):
    report = Report()
    world = make_world("trn3", watchers=[Memory(report)])
    index = world.new((16, 1), "uint16")

    nisa.tensor_copy(world.new((16, 4)), world.tile(np.ones((16, 8))).indirect(index, 4))

    assert [f.operand for f in report] == ["src.index"]


def test_the_tiles_of_the_machine_are_not_told(make_world, nisa):
    """Between an operand and its elements lies a tile that no kernel has made."""
    watcher = Allocations()
    world = make_world("trn3", watchers=[watcher])
    source, index = world.tile(np.ones((16, 8))), world.tile([[1]] * 16, "uint16")
    dst = world.new((16, 4))

    nisa.tensor_copy(dst, source.indirect(index, 4))

    assert watcher.count == 3


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_footprint_is_the_elements_that_are_named(make_world, rng, dtype):
    """Against where each offset leads, one by one; in a part of a tensor, too."""
    world = make_world("trn3")
    tensor = world.tile(np.zeros((64, 4, 12)), dtype)
    view, width = tensor[16:48, :, :], 4 if dtype == "float32" else 2
    index = rng.integers(0, 48, (32, 2))

    found = footprint_of(view.indirect(world.tile(index, "int32"), 20))

    firsts = {((16 + p) * 48 + offset(index, p, i)) * width for p in range(32) for i in range(20)}
    named = {first + b for first in firsts for b in range(width)}
    assert bytes_in(found) == named
    assert sum(part.num_bytes() for part in found) == len(named)


def bytes_in(footprints):
    found = set()
    for part in footprints:
        starts = np.array([part.offset])
        for size, stride in zip(part.shape, part.strides, strict=True):
            starts = (starts[:, None] + np.arange(size) * stride).reshape(-1)
        found |= {int(n) + b for n in starts for b in range(part.itemsize)}
    return found


def test_a_gather_sees_who_wrote_over_its_elements(make_world, nisa):
    """Two tensors at one address: what the offsets name decides."""

    def overlaps(offsets):
        def kernel(x):
            core = x.core
            first = core.allocate((16, 8), "float32", MemorySpace.sbuf, "first", (0, 0))
            index = core.allocate((16, 1), "uint16", MemorySpace.sbuf, "index", (0, 128))
            dst = core.allocate((16, 2), "float32", MemorySpace.sbuf, "dst", (0, 256))
            over = core.allocate((16, 4), "float32", MemorySpace.sbuf, "over", (0, 0))
            nisa.memset(first, 1.0)
            nisa.iota(index, [[1, 1]], offset=offsets, channel_multiplier=0)
            nisa.memset(over, 2.0)
            nisa.tensor_copy(dst, first.indirect(index, 2))

        with watching("overlap") as report:
            execute(kernel, NeuronCore("trn3"), [np.ones((1, 1), np.float32)], {})
        return [f.message for f in report]

    assert overlaps(4) == []
    assert overlaps(3) == ["over overwrites first, which is used afterwards"]
