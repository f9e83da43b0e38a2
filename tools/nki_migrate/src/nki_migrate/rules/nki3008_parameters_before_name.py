"""Functions that gained parameters before `name`, and `tensor_scalar_reduce` again in 0.6."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding
from nki_migrate.rules.arguments import is_device_call
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

# function → the place of `name` before 0.4 (0-based)
_NAME_IN_03 = {"nisa.tensor_scalar_reduce": 7, "nisa.dma_compute": 5}
_NAME_IN_05 = {"nisa.tensor_scalar_reduce": 9}


def _name_by_position(
    rule: str, places: dict[str, int], call: ast.Call, site: Site
) -> Iterator[Finding]:
    """The last positional argument is a string where a name used to be: write `name=`."""
    if not is_device_call(call, site, *places):
        return
    function = str(site.canonical(call.func))
    place = places[function]
    if len(call.args) == place + 1 and _is_text(call.args[place]):
        yield site.finding(
            rule,
            call,
            f"{function}: a parameter was inserted before name; write name=",
            edits=[site.insert_before(call.args[place], "name=")],
        )


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


HOOKS = {
    "NKI3008": Hooks(
        nodes=(ast.Call,),
        check=lambda call, site: _name_by_position("NKI3008", _NAME_IN_03, call, site),
    ),
    "NKI5006": Hooks(
        nodes=(ast.Call,),
        check=lambda call, site: _name_by_position("NKI5006", _NAME_IN_05, call, site),
    ),
}
