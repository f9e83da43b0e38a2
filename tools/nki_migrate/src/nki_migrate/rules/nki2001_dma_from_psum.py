"""DMA does not read PSUM from 0.3 on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety
from nki_migrate.rules.arguments import has_unknown_arguments, is_device_call
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site
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


HOOKS = Hooks(nodes=(ast.Call,), check=_check)
