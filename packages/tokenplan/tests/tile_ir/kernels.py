"""Small kernels whose orders are known, and what the compiler makes of them."""

from __future__ import annotations

from functools import cache

from tokenplan.tile_ir import Order, TileKernel, bytecode, compiler, emit, orders_of

ROWS, COLUMNS, TRIPS = 64, 128, 64
SHAPE = (2 * ROWS * TRIPS, COLUMNS)
TILE = (ROWS, COLUMNS)


def even_odd() -> TileKernel:
    """Loads tiles 0, 2, 4 …, stores tiles 1, 3, 5 … of one array."""
    kernel = TileKernel("even_odd")
    a = kernel.array("a", SHAPE)
    with kernel.loop("k", TRIPS) as k:
        kernel.store(a, (2 * k + 1, 0), kernel.compute("exp2", kernel.load(a, (2 * k, 0), TILE)))
    return kernel


def two_stores() -> TileKernel:
    """Stores tiles 2k and 2k + 1 of one array in each iteration."""
    kernel = TileKernel("two_stores")
    a, b = kernel.array("a", SHAPE), kernel.array("b", SHAPE)
    with kernel.loop("k", TRIPS) as k:
        x = kernel.load(a, (k, 0), TILE)
        kernel.store(b, (2 * k, 0), kernel.compute("exp2", x))
        kernel.store(b, (2 * k + 1, 0), kernel.compute("mulf", x, 2.0))
    return kernel


def disjoint_store() -> TileKernel:
    """Loads one array, stores another."""
    kernel = TileKernel("disjoint_store")
    a, b = kernel.array("a", SHAPE), kernel.array("b", SHAPE)
    with kernel.loop("k", TRIPS) as k:
        x = kernel.load(a, (k, 0), TILE)
        kernel.store(b, (2 * k + 1, 0), kernel.compute("exp2", x))
    return kernel


def recurrence() -> TileKernel:
    """Makes each tile from the one before it."""
    kernel = TileKernel("recurrence")
    a = kernel.array("a", SHAPE)
    with kernel.loop("k", TRIPS) as k:
        kernel.store(a, (k + 1, 0), kernel.compute("exp2", kernel.load(a, (k, 0), TILE)))
    return kernel


LITMUS = ("RAW", "WAR", "WAW", "acquire", "release", "acq_rel")


def litmus(family: str) -> TileKernel:
    """Two or three accesses to one tile, RAW, WAR or WAW; or a counter with a memory order beside
    accesses that need it."""
    kernel = TileKernel(family)
    if family.islower():
        return _counted(kernel, family)
    a, b, c = (kernel.array(name, (64, 64)) for name in "abc")
    at, tile = (0, 0), (64, 64)
    if family == "RAW":
        x = kernel.load(a, at, tile)
        kernel.store(b, at, x)
        kernel.store(c, at, kernel.compute("exp2", kernel.load(b, at, tile)))
    elif family == "WAR":
        x = kernel.load(a, at, tile)
        kernel.store(a, at, kernel.load(b, at, tile))
        kernel.store(c, at, kernel.compute("exp2", x))
    else:
        kernel.store(a, at, kernel.full(tile, 1.0))
        kernel.store(a, at, kernel.full(tile, 2.0))
    return kernel


def _counted(kernel: TileKernel, order: str) -> TileKernel:
    """A tile is stored before a counter that releases, and loaded after one that acquires."""
    a, b = (kernel.array(name, (64, 64)) for name in "ab")
    counter = kernel.array("counter", (1, 1), "i32")
    if order != "acquire":
        kernel.store(a, (0, 0), kernel.full((64, 64), 1.0))
    kernel.atomic(counter, (0, 0), "add", kernel.full((1, 1), 1, "i32"), order=order)
    if order != "release":
        kernel.load(b, (0, 0), (64, 64))
    return kernel


@cache
def bytes_of(kernel: TileKernel, orders: tuple[Order, ...] | None = None) -> bytes:
    """The bytecode with the kernel's orders, or with others."""
    found = orders_of(kernel.described())
    kept = found.kept if orders is None else orders
    return bytecode.write(emit(found.described, found.kernel, kept))


def statistics(
    kernel: TileKernel, target: str, orders: tuple[Order, ...] | None = None
) -> compiler.Statistics:
    """Counts of the binary that the compiler makes for a target."""
    return compiler.statistics(compiler.compile_bytecode(bytes_of(kernel, orders), target).cubin)
