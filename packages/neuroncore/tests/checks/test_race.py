"""race: programs of a grid, scatters and (by option) DMAs that touch the same HBM bytes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from neuroncore.checks import watching
from neuroncore.enums import MemorySpace
from neuroncore.machine.core import NeuronCore
from neuroncore.machine.launch import execute, running
from neuroncore.options import Options

X = np.ones((8, 16), np.float32)
Body = Callable[..., object]


def races(body: Body, programs: int = 2, options: Options | None = None) -> list:
    """What is found when `body(program, x, out)` runs once per program of a grid."""

    def kernel(x):
        launch = running("the test")
        out = launch.share(lambda: launch.core.allocate((8, 16), "float32", MemorySpace.shared_hbm))
        body(launch.program[0], x, out)
        return out

    with watching("race") as report:
        execute(
            kernel, NeuronCore(options=options), [X.copy()], {},
            programs=[(i,) for i in range(programs)], grid=(programs,),
        )  # fmt: skip
    return list(report)


def tile(like) -> object:
    return like.core.allocate((8, 16), "float32", MemorySpace.sbuf)


def test_programs_that_write_parts_of_their_own_do_not_race(nisa):
    def body(program, x, out):
        rows = slice(4 * program, 4 * program + 4)
        nisa.dma_copy(dst=out[rows], src=x[rows])

    assert races(body) == []


def test_one_shared_element_is_a_race_that_names_both_accesses(nisa):
    def body(program, x, out):
        columns = slice(7 * program, 7 * program + 8)  # 0 to 7, 7 to 14
        nisa.dma_copy(dst=out[0:1, columns], src=x[0:1, columns])

    (found,) = races(body)

    assert found.message == ("program 1 writes 1 element of out that program 0 writes")
    assert found.code == "grid"
    assert "dma_copy (writes) at" in found.notes[0]


def test_programs_that_all_fill_a_tensor_before_they_write_their_parts_race(nisa):
    def body(program, x, out):
        zeros = tile(out)
        nisa.memset(dst=zeros, value=0.0)
        nisa.dma_copy(dst=out, src=zeros)
        rows = slice(4 * program, 4 * program + 4)
        nisa.dma_copy(dst=out[rows], src=x[rows])

    fill, part = races(body)

    assert fill.message == "program 1 writes 128 elements of out that program 0 writes"
    assert part.message == "program 1 writes 64 elements of out that program 0 writes"


@pytest.mark.parametrize("reader", [0, 1])
def test_reading_what_another_writes_is_a_race_in_either_order(nisa, reader):
    def body(program, x, out):
        if program == reader:
            nisa.dma_copy(dst=tile(x), src=out)
        else:
            nisa.dma_copy(dst=out, src=x)

    (found,) = races(body)
    verbs = ("reads", "writes") if reader == 1 else ("writes", "reads")
    assert found.message.startswith(f"program 1 {verbs[0]} 128 elements")
    assert found.message.endswith(f"program 0 {verbs[1]}")


def test_all_may_read(nisa):
    assert races(lambda program, x, out: nisa.dma_copy(dst=tile(x), src=x)) == []


def test_a_write_behind_two_readers_is_found_where_one_of_them_is_the_writer(nisa):
    """Programs 1 and 2 read; 2 then writes what 1 has read too."""

    def body(program, x, out):
        if program:
            nisa.dma_copy(dst=tile(x), src=out)
        if program == 2:
            nisa.dma_copy(dst=out[0:1], src=x[0:1])

    (found,) = races(body, programs=3)
    assert found.message == "program 2 writes 16 elements of out that program 1 reads"


def test_accumulations_commute(nisa_02):
    def body(program, x, out):
        nisa_02.dma_copy(dst=x, src=tile_of_ones(x), dst_rmw_op="add")

    def tile_of_ones(x):
        t = tile(x)
        nisa_02.memset(t, 1.0)
        return t

    assert races(body) == []


def test_one_program_keeps_its_own_order(nisa):
    def body(program, x, out):
        nisa.dma_copy(dst=out, src=x)
        nisa.dma_copy(dst=tile(x), src=out)

    assert races(body, programs=1) == []


@pytest.mark.parametrize(("rows", "raced"), [([0, 1, 2, 3], False), ([0, 1, 1, 3], True)])
def test_a_scatter_that_names_a_row_twice_races_with_itself(make_world, nisa, rows, raced):
    with watching("race") as report:
        world = make_world()
        index = world.tile(np.array(rows).reshape(4, 1), "int32")
        base = world.tile(np.zeros((8, 4)), space="hbm")
        target = base.ap([[4, 4], [1, 4]], vector_offset=index)
        nisa.dma_copy(dst=target, src=world.tile(np.ones((4, 4))))

    assert [f.code for f in report] == ["scatter"] * raced


TILES = Options(dma_order="tiles")


def through_hbm(nisa, same_tile: bool) -> Body:
    """out is written, then read again: into the tile that it was written from, or another."""

    def body(program, x, out):
        first, second = tile(x), tile(x)
        nisa.dma_copy(dst=first, src=x)
        nisa.dma_copy(dst=out, src=first)
        nisa.dma_copy(dst=first if same_tile else second, src=out)

    return body


@pytest.mark.parametrize(("same_tile", "raced"), [(True, False), (False, True)])
def test_only_tiles_order_dmas_where_that_is_asked(nisa, same_tile, raced):
    found = races(through_hbm(nisa, same_tile), programs=1, options=TILES)

    assert [f.code for f in found] == ["queues"] * raced
    assert races(through_hbm(nisa, same_tile), programs=1) == []


def test_an_engine_orders_the_dmas_around_it(nisa):
    def body(program, x, out):
        first, second = tile(x), tile(x)
        nisa.dma_copy(dst=first, src=x)
        nisa.dma_copy(dst=out, src=first)
        nisa.memset(first, 0.0)  # waits for the DMA that reads first
        nisa.tensor_copy(second, first)
        nisa.dma_copy(dst=out, src=second)

    assert races(body, programs=1, options=TILES) == []
