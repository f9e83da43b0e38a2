"""Random kernels over tiles: nests of loops, tiles that nearly overlap, memory orders, strides,
atomic updates, tiles that their arrays contain in part."""

from __future__ import annotations

import random

from tokenplan.tile_ir import TileKernel
from tokenplan.tile_ir.description import ORDERS, SCOPES


def random_kernel(
    seed: int, rows: int = 8, fences: bool = True, extended: bool = False
) -> TileKernel:
    """The kernel of this seed: two to six accesses to one to three arrays.

    extended: also grids, strides that leave gaps or overlap, columns, and loops without iterations.
    """
    rng = random.Random(seed)
    kernel = TileKernel(f"random{seed}")
    shapes = [
        (rows * rng.choice((4, 6, 8)) - rng.choice((0, 0, 3)), rng.choice((16, 16, 13)))
        for _ in range(rng.randint(1, 3))
    ]
    strides = [rng.choice((None, (16, 1), (20, 1), (8, 1), (1, shape[0]))) if extended else None
               for shape in shapes]  # fmt: skip
    arrays = [kernel.array(f"a{n}", shape, strides=found)
              for n, (shape, found) in enumerate(zip(shapes, strides, strict=True))]  # fmt: skip
    grid = {kernel.grid("g", 3): 3} if extended and rng.random() < 0.4 else {}
    _Maker(rng, kernel, arrays, rows, fences, extended).body(0, grid)
    return kernel


class _Maker:
    def __init__(self, rng, kernel, arrays, rows, fences, extended=False):
        self.rng, self.kernel, self.arrays = rng, kernel, arrays
        self.trips = (0, 1, 2, 3, 4) if extended else (1, 2, 3, 3, 4, 5)
        self.rows, self.fences, self.left, self.loops = rows, fences, rng.randint(2, 6), 0

    def body(self, depth, variables):
        for _ in range(self.rng.randint(2, 3)):
            if self.left <= 0:
                return
            if depth < 2 and self.loops < 3 and self.rng.random() < (0.75 if depth == 0 else 0.35):
                self.loops += 1
                trips = self.rng.choice(self.trips)
                with self.kernel.loop(f"i{self.loops}", trips) as variable:
                    self.body(depth + 1, {**variables, variable: trips})
            else:
                self.access(variables)

    def access(self, variables):
        rng = self.rng
        self.left -= 1
        array = rng.choice(self.arrays)
        tile = (rng.choice((self.rows, self.rows, self.rows // 2)), rng.choice((16, 16, 8)))
        index, most = 0, -(-array.shape[0] // tile[0]) - 1
        for variable, trips in variables.items():
            factor = rng.choice((0, 1, 1, 2, 3))
            if 0 <= factor * (trips - 1) <= most:
                index, most = index + variable * factor, most - factor * (trips - 1)
        index = index + rng.randint(0, max(0, min(most, 2)))
        column = rng.randrange(-(-array.shape[1] // tile[1]))  # the last one may be partly outside
        options = {}
        if rng.random() < 0.15:
            steps = (max(1, tile[0] // 2), tile[1])
            options["traversal"] = steps
        if self.fences and rng.random() < 0.08:
            options |= {"scope": rng.choice(SCOPES)}
        if self.fences and rng.random() < 0.1:
            order, scope = rng.choice(ORDERS["atomic"]), rng.choice(SCOPES)
            self.kernel.atomic(array, (index, column), rng.choice(("addf", "xchg")),
                               self.kernel.full(tile, 1.0), order=order,
                               **options | {"scope": scope})  # fmt: skip
        elif rng.random() < 0.5:
            order = rng.choice(("relaxed", "acquire")) if "scope" in options else "weak"
            self.kernel.load(array, (index, column), tile, order=order, **options)
        else:
            order = rng.choice(("relaxed", "release")) if "scope" in options else "weak"
            value = self.kernel.full(tile, float(rng.randrange(9)))
            self.kernel.store(array, (index, column), value, order=order, **options)
