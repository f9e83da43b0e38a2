"""`dma_copy(dst_rmw_op=…)` is `dma_compute`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety
from nki_migrate.rules.arguments import Order, has_unknown_arguments, is_device_call, keyword
from nki_migrate.rules.rule import Example, Rule, Site
from nki_migrate.rules.tiles import is_whole_statement, lines_of

_OLD = Order.of("dst src dst_rmw_op= oob_mode= dge_mode= unique_indices= name=")
_STAYS = ("unique_indices", "name")  # what dma_compute takes as well


def _check(call: ast.Call, site: Site) -> Iterator[Finding]:
    if not is_device_call(call, site, "nisa.dma_copy") or not _is_old(call, site):
        return
    bound = None if has_unknown_arguments(call) else _OLD.bind(call)
    text = _rewritten(call, bound, site) if bound is not None else None
    said = "dma_copy does not accumulate: dma_compute adds"
    if text is None:
        said += "; written by hand, `dma_compute(dst, [src, dst], reduce_op=nl.add)`"
        yield site.finding("NKI2003", call, said, safety=Safety.MANUAL)
    else:
        yield site.finding("NKI2003", call, said, edits=[site.replace(call, text)])


def _is_old(call: ast.Call, site: Site) -> bool:
    if keyword(call, "dst_rmw_op") or keyword(call, "unique_indices"):
        return True
    third = call.args[2] if len(call.args) > 2 else None
    return third is not None and (
        _is_none(third) or _adds(third, site) or _choice(third) is not None
    )


def _rewritten(call: ast.Call, bound: dict[str, ast.expr], site: Site) -> str | None:
    operator = bound.get("dst_rmw_op")
    copy = [(k, site.source(v)) for k, v in bound.items() if k not in {"dst_rmw_op", *_STAYS[:1]}]
    plain = f"{site.source(call.func)}({', '.join(f'{k}={v}' for k, v in copy)})"
    if operator is None or _is_none(operator):
        return plain
    added = _sum(call, bound, site)
    if added is None:
        return None
    if _adds(operator, site):
        return added
    chosen = _choice(operator)
    if chosen is None or not is_whole_statement(call, site):
        return None
    first, then, otherwise = chosen
    if not all(_is_none(x) or _adds(x, site) for x in (then, otherwise)):
        return None
    texts = [plain if _is_none(x) else added for x in (then, otherwise)]
    condition = site.source(first)
    return lines_of(site, call, f"if {condition}:", f"    {texts[0]}", "else:", f"    {texts[1]}")


def _sum(call: ast.Call, bound: dict[str, ast.expr], site: Site) -> str | None:
    """The call that adds src to dst; None where an argument has no place in it."""
    language = site.index.alias_for("nl")
    prefix = site.source(call.func).rpartition(".")[0]
    if language is None or not prefix or {"oob_mode", "dge_mode"} & bound.keys():
        return None
    dst, src = site.source(bound["dst"]), site.source(bound["src"])
    rest = "".join(f", {k}={site.source(bound[k])}" for k in _STAYS if k in bound)
    return f"{prefix}.dma_compute({dst}, [{src}, {dst}], reduce_op={language}.add{rest})"


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _adds(node: ast.expr, site: Site) -> bool:
    return site.canonical(node) in {"nl.add", "np.add"}


def _choice(node: ast.expr) -> tuple[ast.expr, ast.expr, ast.expr] | None:
    return (node.test, node.body, node.orelse) if isinstance(node, ast.IfExp) else None


_HEAD = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def total(parts, count):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    for k in range(count):
"""
_BAD = """\
        nisa.dma_copy(dst=out, src=parts[k], dst_rmw_op=None if k == 0 else nl.add)
"""
_GOOD = """\
        if k == 0:
            nisa.dma_copy(dst=out, src=parts[k])
        else:
            nisa.dma_compute(out, [parts[k], out], reduce_op=nl.add)
"""
_BAD_PLAIN = """\
        nisa.dma_copy(out, parts[k], nl.add)
        nisa.dma_copy(dst=out, src=parts[k], unique_indices=True)
"""
_GOOD_PLAIN = """\
        nisa.dma_compute(out, [parts[k], out], reduce_op=nl.add)
        nisa.dma_copy(dst=out, src=parts[k])
"""

RULE = Rule(
    id="NKI2003",
    step=("0.2", "0.3"),
    klass="b",
    safety=Safety.SAFE,
    title="`dma_copy(dst_rmw_op=nl.add)` is `dma_compute`",
    page="""\
`dst_rmw_op` and `unique_indices` are gone from `dma_copy`. `dma_compute` replaces its destination
by the sum of its sources, so the destination is one of them. A choice between copying and adding
becomes an `if`.

**Trap.** With one source, `dma_compute(dst, [src])` copies. In third place 0.3 reads an `oob_mode`.
""",
    examples=(
        Example.of(_HEAD + _BAD, _HEAD + _GOOD),
        Example.of(_HEAD + _BAD_PLAIN, _HEAD + _GOOD_PLAIN),
    ),
    nodes=(ast.Call,),
    check=_check,
)
