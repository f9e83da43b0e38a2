"""`tensor_copy_dynamic_src` and `_dst`: deprecated in 0.3, gone in 0.4."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from nki_migrate.findings import Finding, Safety, Severity
from nki_migrate.rules.arguments import is_device_call
from nki_migrate.rules.rule import Example, Rule, Site

_OLD = ("nisa.tensor_copy_dynamic_src", "nisa.tensor_copy_dynamic_dst")
_INSTEAD = "tensor_copy with `.ap(pattern, offset, scalar_offset=index, indirect_dim=d)`"


def _says(
    rule: str, what: str, severity: Severity
) -> Callable[[ast.Call, Site], Iterator[Finding]]:
    def check(call: ast.Call, site: Site) -> Iterator[Finding]:
        if is_device_call(call, site, *_OLD):
            name = site.canonical(call.func)
            said = f"`{name}` {what}: {_INSTEAD}"
            yield site.finding(rule, call, said, severity=severity, safety=Safety.MANUAL)

    return check


_BAD = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def pick(x, index):
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    nisa.tensor_copy_dynamic_src(tile, x)
"""
_TODO = f"""\
    # TODO(nki-migrate NKI3003): `nisa.tensor_copy_dynamic_src` is gone: {_INSTEAD}
"""
_PAGE = """\
Old: `nisa.tensor_copy_dynamic_src(dst, src=x[p, index, f])`

New: `nisa.tensor_copy(dst, src=x.ap(pattern=[[F, P], [1, n]], offset=0, scalar_offset=index,
indirect_dim=1))`, F being the elements of one partition of x

**Trap.** The offset counts in units of the indexed dimension of the whole tensor, and `.ap` works
on the storage: a slice before it is ignored. Which dimension is indexed is not in the call, so
nothing is rewritten here.
"""

RULES = (
    Rule(
        id="NKI2030",
        step=("0.2", "0.3"),
        klass="b",
        safety=Safety.MANUAL,
        title="`tensor_copy_dynamic_src` and `_dst` are deprecated",
        page=_PAGE,
        examples=(Example.of(_BAD, _BAD),),
        nodes=(ast.Call,),
        check=_says("NKI2030", "is deprecated", Severity.WARNING),
    ),
    Rule(
        id="NKI3003",
        step=("0.3", "0.4"),
        klass="b",
        safety=Safety.MANUAL,
        title="`tensor_copy_dynamic_src` and `_dst` are gone",
        page=_PAGE,
        examples=(Example.of(_BAD, _BAD.replace("    nisa.tensor", f"{_TODO}    nisa.tensor")),),
        nodes=(ast.Call,),
        check=_says("NKI3003", "is gone", Severity.ERROR),
    ),
)
