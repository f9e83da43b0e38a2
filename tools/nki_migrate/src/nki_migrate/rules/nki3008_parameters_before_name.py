"""Functions that gained parameters before `name`, and `tensor_scalar_reduce` again in 0.6."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety
from nki_migrate.rules.arguments import is_device_call
from nki_migrate.rules.rule import Example, Rule, Site

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


_BAD = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def add(x, y):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_compute(out, [x, y], nl.add, None, True, "sum")
    return out
"""
_BAD_06 = """
import nki.isa as nisa
import nki.language as nl

def scaled_sum(dst, data, total):
    cmd = nisa.reduce_cmd.reset_reduce
    nisa.tensor_scalar_reduce(
        dst, data, nl.multiply, 2.0, nl.add, total, False, cmd, None, "sum"
    )
"""

RULES = (
    Rule(
        id="NKI3008",
        step=("0.3", "0.4"),
        klass="a",
        safety=Safety.SAFE,
        title="parameters were inserted before `name`",
        page="""\
`tensor_scalar_reduce` gained `reduce_cmd` and `reduce_init`, `dma_compute` gained `oob_mode`, all
before `name`: a name that was passed by position lands in them.
""",
        examples=(Example.of(_BAD, _BAD.replace('"sum"', 'name="sum"')),),
        nodes=(ast.Call,),
        check=lambda call, site: _name_by_position("NKI3008", _NAME_IN_03, call, site),
    ),
    Rule(
        id="NKI5006",
        step=("0.5", "0.6"),
        klass="a",
        safety=Safety.SAFE,
        title="`tensor_scalar_reduce` has `reduce_res_negate` before `name`",
        page="""\
0.6 inserted `reduce_res_negate` before `name` and made `reduce_res` optional; a name that was
passed by position would negate the result.
""",
        examples=(Example.of(_BAD_06, _BAD_06.replace('"sum"', 'name="sum"')),),
        nodes=(ast.Call,),
        check=lambda call, site: _name_by_position("NKI5006", _NAME_IN_05, call, site),
    ),
)
