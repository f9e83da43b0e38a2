"""What resources need at least is never more than the timeline's total."""

import random
from dataclasses import replace

import pytest

from neuroncore.program import Program, calls, parse_program, reroll
from neuroncore.timeline import estimate
from nkigym import exhaust, matmul_root, rewrite_graph
from nkigym.analysis.roofline import Rooflines
from nkigym.tiles.lowering import lower

LOOPED = """\
program("trn2", "0.6")
def f(x: {dtype}[{rows}, {columns}]):
    output = buffer({dtype}[{rows}, {columns}], shared_hbm)
    for i in range(0, {rows}, 128):
        t = buffer({dtype}[128, {columns}], sbuf)
        u = buffer({dtype}[128, {columns}], sbuf)
        dma_copy(dst=t[:, :], src=x[i:i + 128, :])
        activation(dst=u[:, :], data=t[:, :], scale=1.0, op=exp)
        tensor_tensor(dst=t[:, :], data1=t[:, :], data2=u[:, :], op=add)
        dma_copy(dst=output[i:i + 128, :], src=t[:, :])
    return output
"""


def looped(rows, columns, dtype="float32"):
    return parse_program(LOOPED.format(rows=rows, columns=columns, dtype=dtype))


def roofline(program):
    return Rooflines(program.target, program.nki).of(program)


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("rows", "columns"), [(128, 1), (256, 64), (1024, 512), (8192, 2048)])
def test_no_program_with_loops_is_faster_than_its_roofline(rows, columns, dtype, target):
    program = replace(looped(rows, columns, dtype), target=target)

    assert 0 < max(roofline(program).values()) <= estimate(program, mode="as_written").total_ns


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
def test_no_tile_program_is_faster_than_its_roofline(target):
    space = rewrite_graph(matmul_root(rows=2, columns=2, contraction=2))
    nodes = list(exhaust(space, limit=3000).depths)
    for node in random.Random(8).sample(nodes, 12):
        straight = lower(space.tile_program(node), target)
        for program in (straight, reroll(straight)):
            assert max(roofline(program).values()) <= estimate(program, mode="as_written").total_ns


def test_a_roofline_is_the_work_of_every_iteration():
    small, large = (roofline(looped(rows, 512)) for rows in (128, 1280))

    assert large == {resource: pytest.approx(10 * ns) for resource, ns in small.items()}
    assert small.keys() == {"dma", "scalar", "vector"}


def test_a_long_loop_of_bytes_comes_near_its_roofline():
    """2 · 4096 · 2048 bytes through 16 DMA engines; nothing else takes as long."""
    program = looped(8192, 2048)
    work = roofline(program)

    longest = max(work, key=lambda name: work[name])
    assert longest == estimate(program, mode="as_written").bottleneck


def test_calls_that_programs_share_cost_the_same_in_other_buffers():
    """A call is remembered with what its operands are."""
    shared = Rooflines("trn2", "0.6")
    wide, narrow = looped(256, 512), looped(256, 512, "bfloat16")
    copied = Program(narrow.name, narrow.parameters, narrow.body, narrow.results)

    assert shared.of(wide) == roofline(wide)
    assert shared.of(copied) == roofline(narrow) != roofline(wide)
    assert len(list(calls(copied.body))) == 4
