"""The kernels of examples/tile_ir/layouts.py: values, views, and where only addresses remain."""

from pathlib import Path
from runpy import run_path

import numpy as np
import pytest
from packages.tokenplan.tests.tile_ir.test_barriers import THOROUGH
from packages.tokenplan.tests.tile_ir.test_examples import LEEWAY, arrays_of, executed

from tokenplan.tile_ir import bytecode, emit, orders_of
from tokenplan.tile_ir.verdicts import verdicts

FILE = Path(__file__).parents[4] / "examples" / "tile_ir" / "layouts.py"
LAYOUT_KERNELS = run_path(str(FILE), run_name="tile_ir_layouts")["LAYOUT_KERNELS"]
KINDS = {"rows_xor": "gather_scatter_view", "rows_xor_tiles": "gather_scatter_view",
         "chunks_xor": "pointer_tile", "crossing": "pointer_tile"}  # fmt: skip
"""Of layouts that are not partition views."""


def each_case(dtype):
    found = [(name, layout, kernel) for name, family in LAYOUT_KERNELS.items()
             for layout, kernel in family.cases(dtype=dtype)]  # fmt: skip
    names = [f"{name}-{layout}" for name, layout, _ in found]
    return pytest.mark.parametrize(("family", "layout", "kernel"), found, ids=names)


@each_case("f32")
def test_a_layout_has_the_values_of_the_reference_by_its_view(family, layout, kernel):
    described = kernel.described()
    logical = arrays_of(described)
    places = {a.name: a.layout.addresses() for a in described.arrays}
    memory = {}
    for name, array in logical.items():
        memory[name] = np.zeros(places[name].max() + 1, np.float32)
        memory[name][places[name]] = array
    executed(described, memory)
    exact = {name: array.astype(np.float64) for name, array in logical.items()}

    for name, expected in LAYOUT_KERNELS[family].reference(**exact).items():
        leeway = LEEWAY * np.finfo(np.float32).eps * max(1.0, np.abs(expected).max())
        assert np.abs(memory[name][places[name]] - expected).max() <= leeway
    kinds = {v.view.kind for v in verdicts(described)}
    assert kinds == {"partition_view", KINDS.get(layout, "partition_view")}


@pytest.mark.parametrize("target", ["sm_90", *THOROUGH])
@each_case("f16")
def test_the_compiler_accepts_every_layout(tileiras, family, layout, kernel, target):
    found = orders_of(kernel.described(), target=target)
    data = bytecode.write(emit(found.described, found.kernel, found.kept, target=target))

    assert bytecode.read(data) and tileiras.compile_bytecode(data, target).cubin
