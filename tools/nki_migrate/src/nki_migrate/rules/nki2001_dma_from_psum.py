"""DMA does not read PSUM from 0.3 on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety
from nki_migrate.rules.arguments import has_unknown_arguments, is_device_call
from nki_migrate.rules.rule import Example, Rule, Site
from nki_migrate.rules.tiles import (
    allocation_of,
    argument,
    base_of,
    fresh_name,
    is_whole_statement,
    lines_of,
)


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    if not is_device_call(call, site, "nisa.dma_copy") or has_unknown_arguments(call):
        return
    source = argument(call, "src", 1)
    made = allocation_of(source, site)
    name = base_of(source)
    if source is None or name is None or made is None or made.buffer != "nl.psum":
        return
    said = f"DMA does not read PSUM: `{name.id}` is copied to SBUF first"
    language, instructions = site.index.alias_for("nl"), site.index.alias_for("nisa")
    if language is None or instructions is None or not is_whole_statement(call, site):
        yield site.finding("NKI2001", call, said, safety=Safety.MANUAL)
        return
    staged = fresh_name(f"{name.id}_sbuf", site)
    part = site.source(source)[len(name.id) :]
    above = lines_of(
        site,
        call,
        f"{staged} = {language}.ndarray({name.id}.shape, dtype={name.id}.dtype, "
        f"buffer={language}.sbuf)",
        f"{instructions}.tensor_copy(dst={staged}{part}, src={name.id}{part})",
        "",
    )
    edits = [site.insert_before(call, above), site.replace(source, f"{staged}{part}")]
    basis = (f"`{name.id}` is allocated in PSUM",)
    yield site.finding("NKI2001", call, said, edits=edits, basis=basis)


_HEAD = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def product(a, b, out):
    acc = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=acc, stationary=a, moving=b)
"""
_BAD = _HEAD + "    nisa.dma_copy(dst=out[0:128], src=acc[0:128, 0:512])\n"
_GOOD = (
    _HEAD
    + """\
    acc_sbuf = nl.ndarray(acc.shape, dtype=acc.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=acc_sbuf[0:128, 0:512], src=acc[0:128, 0:512])
    nisa.dma_copy(dst=out[0:128], src=acc_sbuf[0:128, 0:512])
"""
)

RULE = Rule(
    id="NKI2001",
    step=("0.2", "0.3"),
    klass="b",
    safety=Safety.SAFE,
    title="`dma_copy` does not read PSUM",
    page="""\
0.2 let a DMA read PSUM, 0.3 refuses it. The part that is read goes through a tile in SBUF of the
same shape and dtype. Where the tile's allocation is in view, the rule knows that it is in PSUM.

**Trap.** A source that comes as a parameter may be in PSUM as well: nothing here says so.
""",
    examples=(Example.of(_BAD, _GOOD),),
    nodes=(ast.Call,),
    check=_check,
)
