"""Calls: the table from canonical names to lowering rules, and calls that have none."""

from __future__ import annotations

import ast
from functools import cache

from neuroncore.surface import instruction_names
from nki_migrate.facts.values import Parameter, Seq, Storage, Tensor, Unknown, Value
from nki_migrate.lower.context import Cannot, Context
from nki_migrate.lower.destination import Target
from nki_migrate.lower.keep import keep_call
from nki_migrate.lower.signatures import SIGNATURES, bind
from nki_migrate.lower.sums import note_given
from nki_migrate.lower.views import spell

__all__ = ["NUMPY_OPERATORS", "lower_call", "operator_text", "rule_of"]

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

# Operators given as NumPy functions (rule NKI1187)
NUMPY_OPERATORS = {
    "max": "maximum", "amax": "maximum", "min": "minimum", "amin": "minimum", "sum": "add",
    "prod": "multiply", "absolute": "abs", "not_equal": "not_equal", "equal": "equal",
} | {
    n: n
    for n in (
        "add", "subtract", "multiply", "maximum", "minimum", "power", "divide", "exp", "log", "sin",
        "tanh", "sqrt", "square", "sign", "abs", "arctan", "reciprocal", "less", "less_equal",
        "greater", "greater_equal", "logical_and", "logical_or", "logical_xor", "logical_not",
        "bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift", "copy",
    )
}  # fmt: skip


@cache
def _lowerings() -> dict[str, tuple[str, object]]:
    from nki_migrate.rules import all_rules

    return {name: (r.id, f) for r in all_rules().values() for name, f in r.calls.items()}


def lower_call(ctx: Context, node: ast.Call, canonical: str | None, target: Target | None) -> Value:
    """The value of a call; a device call is turned into instructions that write to `target`."""
    found = _lowerings().get(canonical or "")
    if found is None and isinstance(node.func, ast.Attribute):
        method = _method(ctx, node, target)
        if method is not None:
            return method
    if found is None:
        return _other_call(ctx, node, canonical)
    rule, lower = found
    assert canonical is not None
    if canonical.startswith("nisa.") and canonical not in _DST_IN_01 and _has_destination(node):
        return _other_call(ctx, node, None)  # already destination-passing
    ctx.require(rule)
    site = bind(canonical, node, SIGNATURES.get(canonical, ("x", "y")))
    if site is None:
        raise Cannot(rule, f"the arguments of `{canonical}` cannot be told apart", node)
    if kept := keep_call(ctx, site, lower, target):  # type: ignore[arg-type]
        return kept
    if canonical.startswith("nl.") and canonical not in _ALLOCATIONS and site.get("dtype"):
        ctx.report("NKI1238", node, "`dtype=` is the dtype of the destination")
    return lower(ctx, site, target)  # type: ignore[operator]


def _has_destination(node: ast.Call) -> bool:
    return any(k.arg == "dst" for k in node.keywords)


def _method(ctx: Context, node: ast.Call, target: Target | None) -> Value | None:
    """Methods of tiles: `.broadcast_to`, `.astype`, `.reshape`; None if the object is no tile."""
    from nki_migrate.lower.evaluate import value_of
    from nki_migrate.rules.nki1162_methods import METHODS

    assert isinstance(node.func, ast.Attribute)
    if node.func.attr not in METHODS or ctx.index.canonical(node.func) is not None:
        return None
    base = value_of(ctx, node.func.value)
    if isinstance(base, Tensor | Parameter):
        return METHODS[node.func.attr](ctx, node, base, target)
    return None


def _other_call(ctx: Context, node: ast.Call, canonical: str | None) -> Value:
    """A call that stays: a helper, a builtin, or something of nl/nisa that 0.2 still has."""
    from nki_migrate.lower.evaluate import value_of
    from nki_migrate.lower.source_text import text_of

    stays = canonical in _KEPT or _has_destination(node)
    if canonical and canonical.partition(".")[0] in {"nl", "nisa"} and not stays:
        raise _no_rule(canonical, node)
    if isinstance(node.func, ast.Attribute):
        value_of(ctx, node.func.value)
    values = []
    for argument in (*node.args, *(k.value for k in node.keywords)):
        value = value_of(ctx, argument)
        values.append(value)
        hand_over(ctx, argument, value)
    if isinstance(node.func, ast.Name):
        ctx.seen.arguments.setdefault(node.func.id, []).append(tuple(values))
    return _named_result(ctx, node) or Unknown(text_of(ctx, node))


def _named_result(ctx: Context, node: ast.Call) -> Tensor | None:
    """The tile that a helper returned to an instruction, by the runs: it gets a name (NKI1185)."""
    from nki_migrate.lower.source_text import text_of

    around = ctx.index.parent(node)
    around = ctx.index.parent(around) if isinstance(around, ast.keyword) else around
    operand = isinstance(around, ast.BinOp | ast.UnaryOp | ast.Compare | ast.Subscript)
    if isinstance(around, ast.Call):
        module = (ctx.index.canonical(around.func) or "").partition(".")[0]
        operand = module in {"nl", "nisa"}
    seen = ctx.observed.at(ctx.index.source.span(node)) if ctx.observed is not None else None
    if not operand or seen is None or not seen.is_tensor or seen.rank != 2:
        return None
    if seen.memory not in {"sbuf", "psum"}:
        return None
    ctx.report("NKI1185", node, "what a helper returns to an instruction gets a name")
    name = ctx.fresh_name(f"{ctx.index.source.segment(node.func)}_result")
    ctx.emit(f"{name} = {text_of(ctx, node)}")
    ctx.rewrites[node] = name
    ctx.scope.bind(name, Unknown(name))
    mentions = ctx.mentioned(name)
    tensor = Tensor(Storage(name, None, None, None, mentions=mentions, given=True), None)
    ctx.scope.values[name] = tensor
    ctx.scope.hold(name, tensor)
    return tensor


def hand_over(ctx: Context, node: ast.expr, value: Value) -> None:
    """An operand of code that stays: tiles made on the way are named there."""
    if isinstance(value, Tensor):
        ctx.use(value, "op")
        ctx.aliased.add(value.storage.site)
        note_given(ctx, value.storage)
        if isinstance(node, ast.Name) and _holds(ctx, node.id, value):
            return
        text = spell(ctx, value)
        if text != ctx.index.source.segment(node):
            ctx.rewrites[node] = text
    elif isinstance(value, Seq) and isinstance(node, ast.Tuple | ast.List):
        for element, item in zip(node.elts, value.items, strict=True):
            hand_over(ctx, element, item)


def _holds(ctx: Context, name: str, tensor: Tensor) -> bool:
    held = ctx.scope.held.get(name)
    return held is tensor or (tensor.dims is None and held is tensor.storage)


_RULE_OF_MISSING = {
    "nl.all_reduce": "NKI1237", "nl.atomic_rmw": "NKI1237",
    "nl.static_cast": "NKI1237", "nl.load_transpose2d": "NKI1233", "nl.where": "NKI1234",
    "nl.softmax": "NKI1229", "nl.var": "NKI1229", "nl.rms_norm": "NKI1229",
    "nl.gather_flattened": "NKI1236", "nl.rand": "NKI1236", "nl.random_seed": "NKI1236",
    "nl.dropout": "NKI1236", "nl.fmod": "NKI1236", "nl.floor": "NKI1236",
    "nl.ceil": "NKI1236", "nl.trunc": "NKI1236", "nl.expand_dims": "NKI1235",
    "nisa.builtin_custom_op": "NKI1199", "nisa.tensor_copy_dynamic_src": "NKI1273",
    "nisa.tensor_copy_dynamic_dst": "NKI1273",
}  # fmt: skip


_RULE_OF_NAMES = {"nl.arange": "NKI1150", "nl.mgrid": "NKI1154", "nl.par_dim": "NKI1130"}


def rule_of(canonical: str) -> str:
    """The rule that speaks about a name of 0.1."""
    if canonical in _lowerings():
        return _lowerings()[canonical][0]
    default = "NKI1199" if canonical.startswith("nisa._") else "NKI1198"
    if canonical.startswith("nl."):
        default = "NKI1236"
    return (_RULE_OF_MISSING | _RULE_OF_NAMES).get(canonical, default)


def _no_rule(canonical: str, node: ast.AST) -> Cannot:
    rule, name = rule_of(canonical), canonical.partition(".")[2]
    message = f"`{canonical}` has no counterpart that this tool writes yet"
    if rule == "NKI1229":
        message = f"`{canonical}` is several instructions; from 0.3 on the call itself runs, too"
    elif rule == "NKI1198" and name in instruction_names(OLDEST):
        message = f"`{canonical}` writes to `dst=` from 0.2 on: allocate the result"
    elif rule == "NKI1198":
        message = f"`{canonical}` is gone: 0.2 and later have no such instruction"
    return Cannot(rule, message, node)


OLDEST = "0.2"  # the first version whose instructions take their destination


def operator_text(ctx: Context, node: ast.expr) -> str:
    """An `op=` argument: NumPy functions become `nl` operators."""
    from nki_migrate.lower.evaluate import value_of
    from nki_migrate.lower.source_text import text_of

    canonical = ctx.index.canonical(node)
    module, _, name = (canonical or "").partition(".")
    if module == "np":
        if name not in NUMPY_OPERATORS:
            raise Cannot("NKI1187", f"`{canonical}` is no operator of the machine", node)
        text = f"{ctx.alias('nl')}.{NUMPY_OPERATORS[name]}"
        ctx.report("NKI1187", node, f"operators are NKI's own: `{text}`")
        ctx.rewrites[node] = text
        return text
    if canonical is None:
        value_of(ctx, node)
    if module == "nl" and name in {"max", "min", "sum"}:
        return f"{ctx.alias('nl')}.{NUMPY_OPERATORS[name]}"
    return text_of(ctx, node)
