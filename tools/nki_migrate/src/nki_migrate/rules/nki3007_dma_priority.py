"""`dma_copy` and `dma_transpose`: `priority` was inserted before the modes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding
from nki_migrate.rules.arguments import Order, moved_arguments
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_MODES = {"oob_mode": "nisa.oob_mode.", "dge_mode": "nisa.dge_mode.", "engine": "nisa.engine."}


def _fits(bound: dict[str, ast.expr], site: Site) -> bool | None:
    """Whether every mode parameter got a member of its own enum."""
    named = {
        parameter: site.canonical(bound[parameter]) for parameter in _MODES if parameter in bound
    }
    if any(name and not name.startswith(_MODES[p]) for p, name in named.items()):
        return False
    if any(isinstance(bound[p], ast.Constant) for p in named):
        return False
    return True if any(named.values()) else None


_COPY = moved_arguments(
    "NKI3007",
    "nisa.dma_copy",
    Order.of("dst src oob_mode= dge_mode= engine= name="),
    Order.of("dst src priority= oob_mode= dge_mode= engine= name="),
    _fits,
)
_TRANSPOSE = moved_arguments(
    "NKI3007",
    "nisa.dma_transpose",
    Order.of("dst src axes= dge_mode= oob_mode= name="),
    Order.of("dst src axes= priority= dge_mode= oob_mode= name="),
    _fits,
    first=3,
)


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    yield from _COPY(call, site)
    yield from _TRANSPOSE(call, site)


HOOKS = Hooks(nodes=(ast.Call,), check=_check)
