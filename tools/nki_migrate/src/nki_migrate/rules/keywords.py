"""Keyword arguments that were renamed, replaced or removed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Edit, Finding
from nki_migrate.rules.arguments import Order, has_unknown_arguments, is_device_call, keyword
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site
from nki_migrate.rules.tiles import argument, is_whole_statement, lines_of


def _check(node: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI1145: the dtype of shared constants."""
    if site.canonical(node.func) != "nl.shared_constant" or site.request.target < "0.3":
        return
    if site.function_of(node) is None or any(isinstance(a, ast.Starred) for a in node.args):
        return
    constant, dtype = argument(node, "constant", 0), argument(node, "dtype", 1)
    message = "`nl.shared_constant` takes no dtype from 0.3 on: the array is cast"
    if constant is None or dtype is None:
        return
    cast = "" if _is_none(dtype) else f".astype({site.source(dtype)})"
    array = site.source(constant)
    if not isinstance(constant, ast.Call | ast.Name | ast.Attribute | ast.Subscript):
        array = f"({array})"
    edit = site.replace(node, f"{site.source(node.func)}({array}{cast})")
    yield site.finding("NKI1145", node, message, edits=[edit])


_RENAMED = {"prefix": "print_prefix", "x": "tensor"}


def _check_device_print(node: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI1260: parameters of `nl.device_print`."""
    if site.canonical(node.func) != "nl.device_print":
        return
    if any(k.arg == "mask" for k in node.keywords):
        message = "`nl.device_print` takes no mask: print a slice"
        yield site.manual("NKI1260", node, message)
        return
    edits = [_renamed(k, site) for k in node.keywords if k.arg in _RENAMED]
    if edits:
        message = "parameters of `nl.device_print` are `print_prefix` and `tensor`"
        yield site.finding("NKI1260", node, message, edits=edits)


def _renamed(keyword: ast.keyword, site: Site) -> Edit:
    assert keyword.arg is not None
    return site.replace(keyword, f"{_RENAMED[keyword.arg]}={site.source(keyword.value)}")


_OLD = Order.of("dst src dst_rmw_op= oob_mode= dge_mode= unique_indices= name=")
_STAYS = ("unique_indices", "name")  # what dma_compute takes as well


def _check_dma_accumulation(call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI2003: `dma_copy(dst_rmw_op=…)` is `dma_compute`."""
    if not is_device_call(call, site, "nisa.dma_copy") or not _is_old(call, site):
        return
    bound = None if has_unknown_arguments(call) else _OLD.bind(call)
    text = _rewritten(call, bound, site) if bound is not None else None
    said = "dma_copy does not accumulate: dma_compute adds"
    if text is None:
        said += "; written manually, `dma_compute(dst, [src, dst], reduce_op=nl.add)`"
        yield site.manual("NKI2003", call, said)
    else:
        yield site.finding("NKI2003", call, said, edits=[site.replace(call, text)])


def _is_old(call: ast.Call, site: Site) -> bool:
    if keyword(call, "dst_rmw_op") or keyword(call, "unique_indices"):
        return True
    third = call.args[2] if len(call.args) > 2 else None
    return third is not None and (
        _is_none(third) or _adds(third, site) or isinstance(third, ast.IfExp)
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
    if not isinstance(operator, ast.IfExp) or not is_whole_statement(call, site):
        return None
    return _either(call, operator, plain, added, site)


def _either(call: ast.Call, choice: ast.IfExp, plain: str, added: str, site: Site) -> str | None:
    """The operator is chosen: an `if` statement with two calls."""
    arms = choice.body, choice.orelse
    if not all(_is_none(x) or _adds(x, site) for x in arms):
        return None
    then, otherwise = (plain if _is_none(x) else added for x in arms)
    test = site.source(choice.test)
    return lines_of(site, call, f"if {test}:", f"    {then}", "else:", f"    {otherwise}")


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


_PERMUTE = "nki.collectives.collective_permute_implicit"
_RANK = f"{_PERMUTE}_current_processing_rank_id"


def _check_channels(call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI2010: The number of channels of an implicit permutation is given where it permutes."""
    given = keyword(call, "num_channels")
    if given is None or not is_device_call(call, site, _RANK):
        return
    said = "num_channels is gone: collective_permute_implicit takes channel_ids="
    count = given.value.value if isinstance(given.value, ast.Constant) else None
    permutes = _permutations(call, site)
    if count == 1 or (permutes and all(keyword(p, "channel_ids") for p in permutes)):
        edits = [site.without_keyword(call, "num_channels")]
    elif type(count) is int and permutes and not any(map(has_unknown_arguments, permutes)):
        ids = f"channel_ids={list(range(count))}"
        open_ones = [p for p in permutes if not keyword(p, "channel_ids")]
        edits = [_with_argument(p, ids, site) for p in open_ones]
        edits.append(site.without_keyword(call, "num_channels"))
    else:
        yield site.manual("NKI2010", call, said)
        return
    yield site.finding("NKI2010", call, said, edits=edits)


def _permutations(call: ast.Call, site: Site) -> list[ast.Call]:
    function = site.function_of(call)
    assert function is not None
    calls = (n for n in ast.walk(function.node) if isinstance(n, ast.Call))
    return [c for c in calls if site.canonical(c.func) == _PERMUTE]


def _with_argument(call: ast.Call, text: str, site: Site) -> Edit:
    items = [*call.args, *(k.value for k in call.keywords)]
    return site.insert_after(items[-1], f", {text}")


def _check_returned_hbm(node: ast.Assign, site: Site) -> Iterator[Finding]:
    """NKI2011: A tensor that a kernel returns lives in shared HBM."""
    function = site.function_of(node)
    language = site.index.alias_for("nl")
    if function is None or not function.entry or language is None:
        return
    if not isinstance(node.value, ast.Call) or not isinstance(node.targets[0], ast.Name):
        return
    given = keyword(node.value, "buffer")
    if given is None or site.canonical(given.value) not in ("nl.hbm", "nl.private_hbm"):
        return
    if node.targets[0].id in _returned_names(function.node):
        yield site.finding(
            "NKI2011",
            given.value,
            f"{node.targets[0].id} is returned: it has to be in shared HBM",
            edits=[site.replace(given.value, f"{language}.shared_hbm")],
        )


def _returned_names(function: ast.AST) -> set[str]:
    returns = (node.value for node in ast.walk(function) if isinstance(node, ast.Return))
    values = (
        value
        for returned in returns
        for value in (returned.elts if isinstance(returned, ast.Tuple) else [returned])
    )
    return {value.id for value in values if isinstance(value, ast.Name)}


# They took `dst=` in 0.1 already: their dtype= and mask= may be 0.1 code waiting for a decision.
_DST_IN_01 = {
    "nisa.dma_copy",
    "nisa.nc_stream_shuffle",
    "nisa.select_reduce",
    "nisa.tensor_copy_predicated",
}


def _matmul(call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI2031: Keywords that SDK 2.27 knew or silently ignored."""
    if not is_device_call(call, site, "nisa.nc_matmul"):
        return
    if keyword(call, "psumAccumulateFlag"):
        yield site.finding(
            "NKI2031",
            call,
            "nc_matmul has no psumAccumulateFlag; the first write to a place overwrites, "
            "later ones add",
            edits=[site.without_keyword(call, "psumAccumulateFlag")],
        )
    elif given := keyword(call, "is_moving_zero"):
        yield site.finding(
            "NKI2031",
            call,
            "is_moving_zero is called is_moving_onezero",
            edits=[site.replace(given, f"is_moving_onezero={site.source(given.value)}")],
        )


def _ignored(call: ast.Call, site: Site) -> Iterator[Finding]:
    name = site.canonical(call.func)
    if name is None or not name.startswith("nisa.") or site.function_of(call) is None:
        return
    if name in _DST_IN_01 or not isinstance(site.index.parent(call), ast.Expr):
        return
    mask = keyword(call, "mask")
    if mask is not None and not _is_none(mask.value):
        yield site.warn(
            "NKI2032", call, f"{name} has no mask=; 2.27 ignored it, so the whole tile was computed"
        )
        return
    stale = [k for k in ("dtype", "mask") if keyword(call, k)]
    if stale:
        yield site.finding(
            "NKI2032",
            call,
            f"{name} has no {'= and '.join(stale)}=; 2.27 ignored it, later versions reject it",
            edits=[site.without_keyword(call, *stale)],
        )


HOOKS = {
    "NKI1145": Hooks(nodes=(ast.Call,), check=_check),
    "NKI1260": Hooks(nodes=(ast.Call,), check=_check_device_print),
    "NKI2003": Hooks(nodes=(ast.Call,), check=_check_dma_accumulation),
    "NKI2010": Hooks(nodes=(ast.Call,), check=_check_channels),
    "NKI2011": Hooks(nodes=(ast.Assign,), check=_check_returned_hbm),
    "NKI2031": Hooks(nodes=(ast.Call,), check=_matmul),
    "NKI2032": Hooks(nodes=(ast.Call,), check=_ignored),
}
