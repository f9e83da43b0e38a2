"""Descriptors made in hardware do not cast."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety
from nki_migrate.rules.arguments import is_device_call, keyword
from nki_migrate.rules.rule import Example, Rule, Site
from nki_migrate.rules.tiles import allocation_of, argument

_HARDWARE = 2  # the integer code of nisa.dge_mode.hwdge


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    given = keyword(call, "dge_mode")
    if given is None or not is_device_call(call, site, "nisa.dma_copy"):
        return
    code = given.value.value if isinstance(given.value, ast.Constant) else None
    if site.canonical(given.value) != "nisa.dge_mode.hwdge" and code != _HARDWARE:
        return
    tiles = [allocation_of(argument(call, n, i), site) for i, n in enumerate(("dst", "src"))]
    dtypes = [t.dtype if t is not None else None for t in tiles]
    if None in dtypes or dtypes[0] == dtypes[1]:
        return
    instructions = site.index.alias_for("nisa")
    said = f"a DMA with dge_mode=hwdge does not cast {dtypes[1]} to {dtypes[0]}"
    text = f"{instructions}.dge_mode.unknown"
    if instructions is None:
        yield site.finding("NKI2002", call, said, safety=Safety.MANUAL)
        return
    basis = (f"dst is allocated as {dtypes[0]}, src as {dtypes[1]}",)
    edits = [site.replace(given.value, text)]
    yield site.finding("NKI2002", call, f"{said}: {text}", edits=edits, basis=basis)


_BAD = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def widen(x):
    narrow = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.dma_copy(dst=narrow, src=x)
    wide = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=wide, src=narrow, dge_mode=nisa.dge_mode.hwdge)
"""

RULE = Rule(
    id="NKI2002",
    step=("0.2", "0.3"),
    klass="b",
    safety=Safety.SAFE,
    title="a DMA with `dge_mode=hwdge` does not cast",
    page="""\
With descriptors made in hardware both sides have one dtype from 0.3 on. Where the allocations of
both sides say that they differ, the mode becomes `unknown`: the compiler chooses one that casts.

**Trap.** `.view(dtype)` on one side also satisfies the compiler, and copies bits instead of values.
""",
    examples=(Example.of(_BAD, _BAD.replace("dge_mode.hwdge", "dge_mode.unknown")),),
    nodes=(ast.Call,),
    check=_check,
)
