"""Loads of many shapes, strides, alignments and hints that feed a matrix product."""

from __future__ import annotations

from neuroncore.layout import Layout
from tokenplan.tile_ir import TileKernel, bytecode, compiler, emit, orders_of
from tokenplan.tile_ir.verdicts import verdicts

PADDINGS = ("zero", "nan", "neg_zero", "pos_inf", "neg_inf")


def case(rng) -> TileKernel:
    """One load of a random array, multiplied with another in two steps."""
    dtype = rng.choice(("f16", "bf16", "f32"))
    tile = (rng.choice((64, 128)), rng.choice((4, 8, 16, 32, 64)))
    rows, columns = rng.choice((256, 250)), rng.choice((256, 250, 256))
    kind = rng.choice(("rows", "rows", "columns", "padded", "steps"))
    strides = {
        "rows": (columns, 1),
        "columns": (1, rows),
        "padded": (columns + rng.choice((4, 8, 16, 2)), 1),
        "steps": (2 * columns, 2),
    }[kind]
    layout = Layout.of((rows, columns), strides, rng.choice((0, 0, 0, 4, 8)))
    kernel = TileKernel("case")
    a = kernel.array("a", layout, dtype, alignment=rng.choice((16, 16, 16, 8, 4, 32)))
    b, c = kernel.array("b", (256, 64), dtype), kernel.array("c", (256, 64))
    options = {}
    if rng.random() < 0.3:
        options["padding"] = rng.choice(PADDINGS)
    if rng.random() < 0.1:
        options |= {"order": rng.choice(("relaxed", "acquire")), "scope": "device"}
    if rng.random() < 0.1:
        options["hints"] = {"allow_tma": False}
    if rng.random() < 0.2:
        options["traversal"] = (rng.choice((tile[0], 16)), rng.choice((1, 4, 8, tile[1])))
    zero = kernel.full((tile[0], 64), 0.0)
    with kernel.loop("k", 2) as k:
        total = kernel.carry(zero)
        left = kernel.load(a, (0, k), tile, **options)
        right = kernel.load(b, (k, 0), (tile[1], 64), name="right")
        result = kernel.update(total, kernel.compute("mma", left, right, total))
    kernel.store(c, (0, 0), result)
    return kernel


def agreement(kernel: TileKernel, seed: int) -> str | None:
    """How the compiler's remarks on the load differ from its verdict; None: not at all."""
    found = orders_of(kernel.described())
    verdict = next(verdicts(found.described))
    module = emit(found.described, found.kernel, found.kept)
    remarks = compiler.compile_bytecode(bytecode.write(module), "sm_90").remarks
    (operation, *_) = (o for o in module.functions[0].body.walk() if o.name.startswith("load_"))
    assert operation.place is not None
    number = operation.place.column
    mine = [r for _, n, r in compiler.by_operation(module, remarks) if n == number]
    uses_tma = any("TMA Load" in r.text for r in mine)
    reasons = {part for r in mine if "TmaLoadFailed" in r.name for part in r.text.split("; ")[1:]}
    if uses_tma == (not verdict.obstacles) and reasons <= set(verdict.obstacles):
        return None
    said = ", ".join(sorted(reasons)) or ("TMA" if uses_tma else "no TMA")
    predicted = ", ".join(verdict.obstacles) or "TMA"
    return f"seed {seed}: predicted {predicted}; the compiler: {said}"
