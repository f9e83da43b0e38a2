"""memory: every read of bytes that nothing has written, to the byte, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuroncore.checks import Report
from neuroncore.checks.memory import Memory
from neuroncore.enums import MemorySpace, OobMode
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.isa.functions import make_function
from neuroncore.machine.core import NeuronCore
from neuroncore.options import Options
from neuroncore.surface import signature

HALF = """
t = buffer(float32[128, 512], sbuf)
u = buffer(float32[128, 512], sbuf)
dma_copy(dst=t[:, 0:256], src=x[:, 0:256])
"""


def test_a_read_names_the_elements_the_tensor_and_both_lines(findings):
    (found,) = findings("memory", HALF + "tensor_copy(dst=u[:, 128:512], src=t[:, 128:512])")

    assert found.message == "src reads 32,768 of 49,152 elements that nothing has written"
    assert found.got == "t[0:128, 256:512] of (128, 512), float32, SBUF, unwritten"
    assert (found.place.line, found.instruction, found.operand) == (6, "tensor_copy", "src")
    assert [note.rpartition(":")[0].rpartition(":")[2] for note in found.notes] == ["3"]
    assert "^" in str(found)


def test_what_was_written_may_be_read(findings):
    assert findings("memory", HALF + "tensor_copy(dst=u[:, 0:256], src=t[:, 0:256])") == ()


def test_parts_that_were_written_separately_are_a_whole(findings):
    body = HALF + "memset(dst=t[:, 256:512], value=0.0)\ntensor_copy(dst=u[:, :], src=t[:, :])"

    assert findings("memory", body) == ()


def test_one_missing_element_is_found(findings):
    body = """
t = buffer(float32[128, 512], sbuf)
u = buffer(float32[128, 512], sbuf)
memset(dst=t[:, 0:511], value=0.0)
memset(dst=t[0:127, 511], value=0.0)
tensor_copy(dst=u[:, :], src=t[:, :])
"""
    (found,) = findings("memory", body)

    assert found.message.startswith("src reads 1 of 65,536 elements")
    assert found.got.startswith("t[127, 511] of")


def test_a_line_in_a_loop_is_one_finding_with_a_count(findings):
    body = HALF + "for i in range(5):\n    tensor_copy(dst=u[:, :], src=t[:, :])"

    (found,) = findings("memory", body)

    assert found.count == 5
    assert "(5 times)" in str(found)


def test_each_turn_of_a_loop_has_a_tensor_of_its_own(findings):
    body = """
u = buffer(float32[128, 4], sbuf)
for i in range(2):
    t = buffer(float32[128, 4], sbuf)
    tensor_copy(dst=u[:, :], src=t[:, :])
    memset(dst=t[:, :], value=0.0)
"""
    (found,) = findings("memory", body)

    assert found.count == 2


def test_a_result_that_was_not_filled_is_found(findings):
    body = "out = buffer(float32[128, 512], shared_hbm)\ndma_copy(dst=out[0:64, :], src=x[0:64, :])"

    (found,) = findings("memory", body)

    assert found.code == "result"
    assert found.got.startswith("out[64:128, 0:512] of")


MATMUL = """
w = buffer(bfloat16[128, 128], sbuf)
acc = buffer(float32[128, 128], psum)
t = buffer(float32[128, 128], sbuf)
memset(dst=w[:, :], value=1.0)
"""


def test_the_first_matmul_of_a_group_reads_no_psum(findings):
    multiply = "nc_matmul(dst=acc[:, :], stationary=w[:, :], moving=w[:, :])\n"

    body = MATMUL + 2 * multiply + "tensor_copy(dst=t[:, :], src=acc[:, :])"

    assert findings("memory", body) == ()


def test_adding_onto_unwritten_psum_reads_it(findings):
    multiply = "nc_matmul(dst=acc[:, :], stationary=w[:, :], moving=w[:, :], accumulate=True)\n"

    (found,) = findings("memory", MATMUL + multiply, options=Options(accumulate_on_unwritten="add"))

    assert found.operand == "dst"


# -- partial writes and dynamic addresses, on the machine itself ----------------------------------


@pytest.fixture
def watched(make_world):
    """A world that the memory check watches, and its report."""
    report = Report()
    return make_world(options=Options(start_partition="ignore"), watchers=[Memory(report)]), report


def test_a_predicated_copy_writes_where_its_predicate_selects(watched, nisa):
    world, report = watched
    dst, u = world.new((2, 4)), world.new((2, 4))
    predicate = world.tile(np.array([[1, 1, 0, 1], [1, 1, 1, 1]]), "uint8")
    nisa.tensor_copy_predicated(dst=dst, src=world.tile(np.ones((2, 4))), predicate=predicate)

    nisa.tensor_copy(u[0:1, 0:2], dst[0:1, 0:2])
    assert len(report) == 0
    nisa.tensor_copy(u, dst)
    (found,) = report
    assert found.message.startswith("src reads 1 of 8")
    assert "[0, 2]" in found.got


def test_a_shuffle_keeps_the_partitions_that_its_mask_skips(watched, nisa):
    world, report = watched
    dst = world.new((32, 4))
    mask = [255 if i == 7 else i for i in range(32)]
    nisa.nc_stream_shuffle(dst=dst, src=world.tile(np.ones((32, 4))), shuffle_mask=mask)

    nisa.tensor_copy(world.new((32, 4)), dst)

    (found,) = report
    assert "[7, 0:4]" in found.got


@pytest.mark.parametrize(("rows", "unwritten"), [([0, 1, 2, 3], 0), ([0, 1, 2, 9], 1)])
def test_a_skipping_gather_leaves_rows_unwritten(watched, nisa, rows, unwritten):
    world, report = watched
    base = world.tile(np.ones((4, 8)), space="hbm")
    index = world.tile(np.array(rows).reshape(4, 1), "int32")
    dst = world.new((4, 8))
    source = base.ap([[8, 4], [1, 8]], vector_offset=index)
    nisa.dma_copy(dst=dst, src=source, oob_mode=OobMode.skip)

    nisa.tensor_copy(world.new((4, 8)), dst)

    assert len(report) == unwritten
    assert all("[3, 0:8]" in f.got for f in report)


def test_a_gather_reads_the_rows_that_its_index_names(watched, nisa):
    world, report = watched
    base = world.core.allocate((8, 4), "float32", MemorySpace.hbm)
    for row in (1, 3, 5):
        nisa.dma_copy(dst=base[row : row + 1, 0:4], src=world.tile(np.ones((1, 4))))

    for rows in ([1, 3, 5], [1, 2, 5]):
        index = world.tile(np.array(rows).reshape(3, 1), "int32")
        source = base.ap([[4, 3], [1, 4]], vector_offset=index)
        before = len(report)
        nisa.dma_copy(dst=world.new((3, 4)), src=source)
        assert len(report) - before == (2 in rows)


@pytest.mark.parametrize(
    ("written", "where"),
    [
        ((1, 3), "t[2, 0:4], t[5:7, 0:4] of (40, 4), float32, HBM, unwritten"),
        ((), "t[1:4, 0:4], t[5:7, 0:4] of (40, 4), float32, HBM, unwritten"),
        ((1, 2, 3, 6), "t[5, 0:4] of (40, 4), float32, HBM, unwritten"),
    ],
)
def test_a_gather_says_which_rows_nothing_has_written(watched, nisa, written, where):
    world, report = watched
    base = world.core.allocate((40, 4), "float32", MemorySpace.hbm, name="t")
    for row in written:
        nisa.dma_copy(dst=base[row : row + 1, 0:4], src=world.tile(np.ones((1, 4))))
    index = world.tile(np.array([6, 1, 2, 99, 3, 5]).reshape(6, 1), "int32")

    source = base.ap([[4, 6], [1, 4]], vector_offset=index)
    nisa.dma_copy(dst=world.new((6, 4)), src=source, oob_mode=OobMode.skip)

    (found,) = report
    assert found.got == where


def test_of_many_rows_a_gather_names_the_first(watched, nisa):
    world, report = watched
    base = world.core.allocate((40, 4), "float32", MemorySpace.hbm, name="t")
    index = world.tile(np.arange(0, 40, 2).reshape(20, 1), "int32")

    nisa.dma_copy(dst=world.new((20, 4)), src=base.ap([[4, 20], [1, 4]], vector_offset=index))

    (found,) = report
    assert found.got.startswith("t[0, 0:4], t[2, 0:4], t[4, 0:4], t[6, 0:4] and 16 more of (40, 4)")


def test_a_read_at_an_index_says_where_it_went(watched, nisa):
    world, report = watched
    base = world.core.allocate((8, 4), "float32", MemorySpace.hbm, name="t")
    nisa.dma_copy(dst=base[0:5, 0:4], src=world.tile(np.ones((5, 4))))
    index = world.tile(np.full((1, 1), 6), "int32")

    nisa.dma_copy(dst=world.new((1, 4)), src=base.ap([[4, 1], [1, 4]], scalar_offset=index))

    (found,) = report
    assert found.got == "t[6, 0:4] of (8, 4), float32, HBM, unwritten"


def test_an_index_that_nothing_wrote_is_a_read(watched, nisa):
    world, report = watched
    base = world.tile(np.ones((8, 4)), space="hbm")
    source = base.ap([[4, 1], [1, 4]], scalar_offset=world.new((1, 1), "int32"))

    nisa.dma_copy(dst=world.new((1, 4)), src=source)

    assert [f.operand for f in report] == ["src.index"]


def test_bytes_of_another_dtype_count_one_by_one(watched, nisa):
    world, report = watched
    t = world.new((2, 4))
    nisa.memset(t.view("uint8")[0:2, 0:15], 0)

    nisa.tensor_copy(world.new((2, 3)), t[0:2, 0:3])
    assert len(report) == 0
    nisa.tensor_copy(world.new((2, 4)), t)
    (found,) = report
    assert found.message.startswith("src reads 2 of 8")


def instruction(name: str):
    found = signature(name, "0.6")
    assert found is not None
    return make_function(INSTRUCTIONS[name], found)


COPY, FILL = instruction("tensor_copy"), instruction("memset")
BOX = st.tuples(st.integers(0, 7), st.integers(1, 8), st.integers(0, 11), st.integers(1, 12))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), BOX), max_size=8))
def test_flags_agree_with_marking_every_element(steps):
    """Writes and reads of random boxes against a plain array of flags."""
    report = Report()
    core = NeuronCore(options=Options(start_partition="ignore"), watchers=[Memory(report)])
    t, marks = core.allocate((8, 12), "float32", MemorySpace.sbuf), np.zeros((8, 12), bool)
    for is_write, (p, height, f, width) in steps:
        box = slice(p, min(8, p + height)), slice(f, min(12, f + width))
        view, before = t[box], report_total(report)
        if is_write:
            FILL(view, 1.0)
            marks[box] = True
        else:
            COPY(core.allocate(view.shape, "float32", MemorySpace.sbuf), view)
            assert (report_total(report) > before) == (not marks[box].all())


def report_total(report: Report) -> int:
    return sum(found.count for found in report)
