"""What the search of tile programs finds is kernel source that runs and gives every bit."""

import random
import runpy

import numpy as np
import pytest

import nki_runtime
from neuroncore.program import emit, reroll
from nkigym import exhaust, matmul_root, rewrite_graph
from nkigym.tiles.lowering import lower
from nkigym.tiles.program import LOAD


def some_programs(tiles, number):
    """The root, the deepest, and some between."""
    contraction, rows, columns = tiles
    space = rewrite_graph(matmul_root(rows=rows, columns=columns, contraction=contraction))
    nodes = list(exhaust(space).depths)
    chosen = (nodes[0], nodes[-1], *random.Random(4).sample(nodes, number))
    return [space.tile_program(node) for node in chosen]


@pytest.mark.parametrize("tiles", [(2, 1, 2), (2, 2, 2), (1, 1, 4), (3, 2, 1)], ids=str)
@pytest.mark.parametrize("version", ["0.2", "0.6"])
def test_emitted_kernels_multiply_exactly(tiles, version, tmp_path):
    for number, program in enumerate(some_programs(tiles, 3)):
        written = reroll(lower(program))
        file = tmp_path / f"kernel{number}.py"
        file.write_text(emit(written, version), "utf-8")
        left, right = (
            np.random.default_rng(9).integers(-64, 64, shape).astype(np.float32)
            for _, shape in program.parameters
        )
        with nki_runtime.use(nki=version):
            output = runpy.run_path(str(file))["f"](left, right)
        wanted = left.astype(np.int64).T @ right.astype(np.int64)
        assert (output.astype(np.float64) == wanted).all()


def test_the_deepest_program_loads_less():
    first, deepest, *_ = some_programs((2, 2, 2), 0)
    loads = [sum(s.operator == LOAD for s in p.statements) for p in (first, deepest)]

    assert loads == [16, 4]
