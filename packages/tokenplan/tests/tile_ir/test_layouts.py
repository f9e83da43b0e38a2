"""Arrays in other layouts: the values of the layout, as views where the layout allows one."""

import numpy as np
import pytest

from neuroncore.layout import Layout, Swizzle
from tokenplan.checker.tile_blocks import Execution
from tokenplan.tile_ir import TileKernel, bytecode, emit, orders_of

TILE, TILES = (64, 64), 8
LAYOUTS = {
    "rows": (Layout.of((512, 64)), "partition_view"),
    "strided rows": (Layout.of((512, 64), (96, 1)), "partition_view"),
    "blocks": (Layout((((8, 8192), (64, 64)), ((2, 4096), (64, 1)))), "partition_view"),
    "tiles XOR": (Layout.of((512, 512), swizzle=Swizzle.xor(3, 6, 9)), "partition_view"),
    "rows XOR": (Layout.of((512, 64), swizzle=Swizzle.xor(3, 6, 6)), "gather_scatter_view"),
    "chunks XOR": (Layout.of((512, 64), swizzle=Swizzle.xor(3, 3, 3)), None),
}


def copy_kernel(layout: Layout, back: bool = False) -> TileKernel:
    """Copies the first tile of columns of an array, tile by tile, to or from dense rows."""
    kernel = TileKernel("copy")
    a, b = kernel.array("a", layout), kernel.array("b", (TILE[0] * TILES, TILE[1]))
    source, target = (b, a) if back else (a, b)
    with kernel.loop("i", TILES) as i:
        kernel.store(target, (i, 0), kernel.load(source, (i, 0), TILE))
    return kernel


@pytest.mark.parametrize("back", [False, True], ids=["load", "store"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_is_accessed_by_its_view_or_by_addresses(tileiras, name, back):
    layout, view = LAYOUTS[name]
    found = orders_of(copy_kernel(layout, back).described())
    data = bytecode.write(emit(found.described, found.kernel, found.kept))
    (function,) = bytecode.read(data).functions
    size = int(layout.addresses().max()) + 1
    a = np.arange(size, dtype=np.float32) * (not back)
    b = np.arange(TILES * TILE[0] * TILE[1], dtype=np.float32).reshape(-1, TILE[1]) * back
    run = Execution([a, b]).run(function)

    assert (a[layout.addresses()[:, : TILE[1]]] == b).all() and b.any()
    assert list(run.lost()) == []
    names = {op.name for op in function.body.walk()}
    assert (f"make_{view}" in names) if view else any("_ptr_tko" in n for n in names)
    assert tileiras.compile_bytecode(data, "sm_90").cubin
