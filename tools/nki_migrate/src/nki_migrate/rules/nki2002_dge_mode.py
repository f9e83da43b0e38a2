"""Descriptors made in hardware do not cast."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety
from nki_migrate.rules.arguments import is_device_call, keyword
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site
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


HOOKS = Hooks(nodes=(ast.Call,), check=_check)
