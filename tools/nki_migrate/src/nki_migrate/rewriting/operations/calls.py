"""Calls: the table from canonical names to rewriting rules, and calls that have none."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from neuroncore.findings import Safety
from nki_migrate.facts.values import Container, Parameter, Returned, Seq, Tensor, Unknown, Value
from nki_migrate.rewriting.context.call_site import NOWHERE, CallSite, Target, bind
from nki_migrate.rewriting.context.context import Context, Helper
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.context.scope import Passed
from nki_migrate.rewriting.context.source_text import text_of
from nki_migrate.rewriting.destinations.psum_accumulation import note_given
from nki_migrate.rewriting.inference.helper_calls import at_call, bound_to
from nki_migrate.rewriting.inference.list_items import note_item
from nki_migrate.rewriting.inference.observations import in_representatives
from nki_migrate.rewriting.operations.masked_calls import under_predicate
from nki_migrate.rewriting.views.view_text import spell

# Calls that mean the same in 0.2 (migration rules 5.2, "kept in 0.2")
_KEPT = {
    "nl.affine_range", "nl.sequential_range", "nl.static_range", "nl.ds", "nl.program_id",
    "nl.num_programs", "nl.program_ndim", "nl.shared_constant",
    "nl.device_print", "nisa.get_nc_version",
}  # fmt: skip

# Calls that had a destination in 0.1 as well
_DST_IN_01 = {
    "nisa.dma_copy", "nisa.nc_stream_shuffle", "nisa.select_reduce", "nisa.tensor_copy_predicated",
}  # fmt: skip
_ALLOCATIONS = {
    f"nl.{n}" for n in ("ndarray", "zeros", "ones", "full", "zeros_like", "empty_like")
}  # fmt: skip


_HOST_ARRAYS = {
    f"np.{n}"
    for n in (
        "array", "asarray", "arange", "empty", "eye", "full", "identity", "linspace", "ones",
        "ones_like", "tril", "triu", "zeros", "zeros_like",
    )
}  # fmt: skip

# What the rewriting of a call must consist of for the call to stay.
_PLAIN = {
    "nl.load": "dma_copy",
    "nl.store": "dma_copy",
    "nl.sum": "tensor_reduce",
    "nl.max": "tensor_reduce",
    "nl.min": "tensor_reduce",
} | dict.fromkeys(("nl.add", "nl.subtract", "nl.multiply", "nl.maximum", "nl.minimum"), "tensor_")
_PLAIN |= dict.fromkeys(
    (f"nl.{n}" for n in ("exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "relu", "gelu", "silu")),
    "activation",
)
STAYING = frozenset(_PLAIN)


def rewrite_call(
    ctx: Context, node: ast.Call, canonical: str | None, target: Target = NOWHERE
) -> Value:
    """The value of a call; a device call is transposed into instructions that write to `target`."""
    found = ctx.rules.calls.get(canonical or "")
    if found is None or canonical is None:
        method = _method(ctx, node, target)
        return method if method is not None else _other_call(ctx, node, canonical)
    rule, rewrite = found
    if canonical.startswith("nisa.") and canonical not in _DST_IN_01 and _has_destination(node):
        return _other_call(ctx, node, None)  # already destination-passing
    ctx.require(rule)
    site = bind(canonical, node, target)
    if site is None:
        raise Cannot(rule, f"the arguments of `{canonical}` cannot be distinguished", node)
    if kept := _keep_call(ctx, site, rewrite):
        return kept
    if canonical.startswith("nl.") and canonical not in _ALLOCATIONS and site.get("dtype"):
        ctx.report(Reason.DTYPE_ARGUMENT, node, "`dtype=` is the dtype of the destination")
    return under_predicate(ctx, site, rewrite) or rewrite(ctx, site)


def _keep_call(
    ctx: Context, site: CallSite, rewrite: Callable[[Context, CallSite], Value]
) -> Value | None:
    """The value of a call that stays, apart from its subscripts; None if it is rewritten.

    From 0.3 on `nl.*` calls are back, but without masks and without broadcasting, and some do not
    compile for the device (decision 1 of the rule catalogue). So with `--nl keep` a call stays only
    if its rewriting, tried and thrown away, is the one plain instruction that the call would be.
    """
    instruction = _PLAIN.get(site.name)
    wanted = ctx.request.nl == "keep" and ctx.request.target >= "0.3" and instruction is not None
    if not wanted or site.get("mask") is not None or site.target.view:
        return None
    before, names, findings = len(ctx.out), set(ctx.generated), ctx.pending_findings()
    value = rewrite(ctx, site)
    calls = [line for line in ctx.out[before:] if f"{ctx.alias('nisa')}." in line]
    del ctx.out[before:]
    ctx.generated = names
    ctx.forget_findings(findings)
    if len(calls) != 1 or f".{instruction}" not in calls[0] or "operand0=" in calls[0]:
        return None
    for node in site.arguments.values():
        _rewrite_view(ctx, node)
    ctx.kept.add(site.node)
    return value


def _rewrite_view(ctx: Context, node: ast.expr) -> None:
    """Subscripts with index tensors become slices."""
    value = ctx.value_of(node) if isinstance(node, ast.Subscript) else None
    if isinstance(value, Tensor):
        text = spell(ctx, value)
        if text != ctx.index.source.segment(node):
            ctx.rewrites[node] = text


def _has_destination(node: ast.Call) -> bool:
    return any(k.arg == "dst" for k in node.keywords)


def _method(ctx: Context, node: ast.Call, target: Target) -> Value | None:
    """Methods of tiles: `.broadcast_to`, `.astype`, `.reshape`; None for other objects."""
    if not isinstance(node.func, ast.Attribute):
        return None
    method = ctx.rules.methods.get(node.func.attr)
    if method is None or ctx.index.canonical(node.func) is not None:
        return None
    base = ctx.value_of(node.func.value)
    if isinstance(base, Tensor | Parameter):
        return method(ctx, node, base, target)
    return None


def _other_call(ctx: Context, node: ast.Call, canonical: str | None) -> Value:
    """A call that stays: a helper, a builtin, or something of nl/nisa that 0.2 still has."""
    stays = canonical in _KEPT or _has_destination(node)
    if canonical and canonical.partition(".")[0] in {"nl", "nisa"} and not stays:
        raise ctx.rules.unsupported(canonical, node)
    if isinstance(node.func, ast.Attribute):
        ctx.value_of(node.func.value)
    values = []
    for argument in (*node.args, *(k.value for k in node.keywords)):
        value = ctx.value_of(argument)
        values.append(value)
        hand_over(ctx, argument, value)
        _report_list(ctx, node, argument, value)
    _note_appended(ctx, node.func, values)
    returned = _returned(ctx, node, values)
    kind = Container if canonical in _HOST_ARRAYS else Unknown
    return _named_result(ctx, node, returned) or returned or kind(text_of(ctx, node))


def _returned(ctx: Context, node: ast.Call, values: Sequence[Value]) -> Value | None:
    """The result of a helper of the file here; its arguments are noted."""
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    key = name if name in ctx.helpers else ctx.index.path(node.func) or name
    helper = ctx.helpers.get(key)
    if not key:
        return None
    passed = _by_parameter(ctx, node, helper, values)
    ctx.seen.arguments.setdefault(key, []).append(passed)
    if helper is None or helper.returned is None:
        return None
    return at_call(ctx, helper.returned, helper.parameters, passed)


def _report_list(ctx: Context, call: ast.Call, node: ast.expr, value: Value) -> None:
    """Report a list of tiles that goes to a function of a file that is not in view."""
    path = ctx.index.path(call.func)
    if path is None or path in ctx.helpers or not isinstance(value, Tensor):
        return
    storage = value.storage
    if storage.blocks and not (storage.folded or storage.alone) and value.dims is None:
        text = f"`{storage.name}` is a list of tiles now, and `{path.rpartition('.')[2]}` is in a"
        ctx.report(
            Reason.BLOCK_DIMENSIONS,
            node,
            f"{text} file that was not given: name that file, too",
            safety=Safety.MANUAL,
        )


def _note_appended(ctx: Context, function: ast.expr, values: Sequence[Value]) -> None:
    match function:
        case ast.Attribute(value=ast.Name(id=name), attr="append") if len(values) == 1:
            note_item(ctx, name, values[0])


def _by_parameter(
    ctx: Context, node: ast.Call, helper: Helper | None, values: Sequence[Value]
) -> Passed:
    """The arguments of a call in the order of the parameters, tiles in words of all its callers."""
    found = tuple(in_representatives(ctx, v) for v in values)
    if helper is None:
        return found
    names = helper.parameters
    if any(isinstance(a, ast.Starred) for a in node.args) or any(not k.arg for k in node.keywords):
        return tuple(Unknown() for _ in names)
    given = dict(zip(names, found[: len(node.args)], strict=False))
    given |= {k.arg or "": v for k, v in zip(node.keywords, found[len(node.args) :], strict=True)}
    return tuple(map(given.get, names))


def _named_result(ctx: Context, node: ast.Call, returned: Value | None) -> Tensor | None:
    """The tile that a helper returned to an instruction: it gets a name."""
    around = ctx.index.parent(node)
    around = ctx.index.parent(around) if isinstance(around, ast.keyword) else around
    operand = isinstance(around, ast.BinOp | ast.UnaryOp | ast.Compare | ast.Subscript)
    if isinstance(around, ast.Call):
        module = (ctx.index.canonical(around.func) or "").partition(".")[0]
        operand = module in {"nl", "nisa"}
    return named_result(ctx, node, returned) if operand else None


def named_result(ctx: Context, node: ast.expr, returned: Value | None) -> Tensor | None:
    """The tile that a call of a helper returns, under a name; None where it may be something else.

    An expression other than a call, and one that has a name already, is none.
    """
    if not isinstance(node, ast.Call) or isinstance(returned, Tensor):
        return None
    if not (isinstance(returned, Returned) or _is_seen_tile(ctx, node)):
        return None
    ctx.report(Reason.NESTED_CALL, node, "what a helper returns to an instruction gets a name")
    name = ctx.fresh_name(f"{ctx.index.source.segment(node.func)}_result")
    ctx.emit(f"{name} = {text_of(ctx, node)}")
    ctx.rewrites[node] = name
    ctx.scope.bind(name, Unknown(name))
    known = returned if isinstance(returned, Returned) else Returned(None, None, "", is_value=None)
    tensor = bound_to(ctx, known, name)
    ctx.scope.values[name] = tensor
    ctx.scope.hold(name, tensor)
    return tensor


def _is_seen_tile(ctx: Context, node: ast.Call) -> bool:
    seen = ctx.seen_at(node)
    if seen is None or not seen.is_tensor or seen.rank != 2:
        return False
    return seen.memory in {"sbuf", "psum"}


def hand_over(ctx: Context, node: ast.expr, value: Value) -> None:
    """An operand of code that stays: tiles made on the way are named there."""
    if isinstance(value, Tensor):
        ctx.use(value, "op")
        ctx.aliased.add(value.storage.site)
        note_given(ctx, value.storage)
        if isinstance(node, ast.Name) and _holds(ctx, node.id, value):
            return
        text = _under_its_name(ctx, node, value, spell(ctx, value))
        if text != ctx.index.source.segment(node):
            ctx.rewrites[node] = text
    elif isinstance(value, Seq) and isinstance(node, ast.Tuple | ast.List):
        for element, item in zip(node.elts, value.items, strict=True):
            hand_over(ctx, element, item)


def _under_its_name(ctx: Context, node: ast.expr, part: Tensor, text: str) -> str:
    """Part of a tile under the name that the source has for the tile, and not another one."""
    name = (
        node.value.id
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)
        else ""
    )
    whole = ctx.scope.values.get(name)
    is_same = isinstance(whole, Tensor) and whole.dims is None and whole.storage is part.storage
    head, bracket, rest = text.partition("[")
    return f"{name}[{rest}" if is_same and bracket and head.isidentifier() else text


def _holds(ctx: Context, name: str, tensor: Tensor) -> bool:
    held = ctx.scope.held.get(name)
    return held is tensor or (tensor.dims is None and held is tensor.storage)
