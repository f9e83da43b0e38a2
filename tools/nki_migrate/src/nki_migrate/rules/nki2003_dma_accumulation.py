"""`dma_copy(dst_rmw_op=…)` is `dma_compute`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety
from nki_migrate.rules.arguments import Order, has_unknown_arguments, is_device_call, keyword
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site
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
        said += "; written manually, `dma_compute(dst, [src, dst], reduce_op=nl.add)`"
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


HOOKS = Hooks(nodes=(ast.Call,), check=_check)
