"""`.reshape` keeps the number of elements."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site
from nki_migrate.rules.tiles import allocation_of, elements, literal_sizes


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr != "reshape":
        return
    if not isinstance(func.value, ast.Name) or site.function_of(call) is None:
        return
    made = allocation_of(func.value, site)
    first = call.args[0] if len(call.args) == 1 else None
    given = first.elts if isinstance(first, ast.Tuple | ast.List) else call.args
    wanted = literal_sizes(tuple(given)) if given and not call.keywords else None
    if made is None or made.sizes is None or wanted is None:
        return
    if elements(made.sizes) != elements(wanted):
        before, after = elements(made.sizes), elements(wanted)
        said = f"a reshape from {before} to {after} elements is an error from 0.5 on"
        yield site.finding("NKI4002", call, said, safety=Safety.MANUAL)


HOOKS = Hooks(nodes=(ast.Call,), check=_check)
