"""Source text with what has to be spelled anew put in, imported names, values as numbers."""

from __future__ import annotations

import ast
import re

from neuroncore.targets import resolve_target
from nki_migrate.facts.dtypes import BOOL, NUMPY_NAMES, DType
from nki_migrate.facts.symbols import Poly
from nki_migrate.facts.values import (
    Const,
    Parameter,
    Ref,
    Sym,
    Unknown,
    Value,
)
from nki_migrate.index import children
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Reason

_PATH = re.compile(r"[A-Za-z_]\w*(\.\w+)*")  # `N`, `config.width`
_TARGET = resolve_target("trn1")  # `nl.tile_size` has the limits of NeuronCore-v2
TILE_SIZES = {
    "nl.tile_size.pmax": _TARGET.partitions,
    "nl.tile_size.psum_fmax": _TARGET.psum_bank_bytes // 4,
    "nl.tile_size.gemm_stationary_fmax": _TARGET.stationary_free_max,
    "nl.tile_size.gemm_moving_fmax": _TARGET.moving_free_max,
    "nl.tile_size.bn_stats_fmax": _TARGET.bn_stats_free_max,
}
_FLOATS = {f"{module}.{name}" for module in ("math", "np") for name in ("pi", "e", "inf")}
_FLOAT32_MIN = "-3.4028235e38"
_LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028235e38}


def text_of(ctx: Context, node: ast.AST) -> str:
    """The node's source text with all noted rewrites put in."""
    source = ctx.index.source
    base = source.offset(*source.span(node)[:2])
    pieces, position = [], base
    for start, end, text in sorted(_rewrites_in(ctx, node)):
        if start < position:
            continue
        pieces += [source.text[position:start], text]
        position = end
    end = source.offset(*source.span(node)[2:])
    text = "".join([*pieces, source.text[position:end]])
    return f"({text})" if isinstance(node, ast.NamedExpr) else text


def _rewrites_in(ctx: Context, node: ast.AST) -> list[tuple[int, int, str]]:
    source, found = ctx.index.source, []
    queue: list[ast.AST] = [node]
    while queue:
        n = queue.pop()
        if n in ctx.rewrites:
            line, column, end_line, end_column = source.span(n)
            where = source.offset(line, column), source.offset(end_line, end_column)
            found.append((*where, ctx.rewrites[n]))
        else:
            queue += children(n)
    return found


def as_number(ctx: Context, value: Value) -> Sym | None:
    """The value as a compile-time number, if it can be one."""
    if isinstance(value, Sym):
        return value
    if isinstance(value, Parameter):
        names, atom = frozenset({(value.name, value.version)}), f"{value.name}@{value.version}"
        is_float = ctx.kinds.get(atom) is float
        return Sym(Poly.atom(atom), value.name, is_float=is_float, names=names)
    if isinstance(value, Unknown) and _PATH.fullmatch(value.text):
        return Sym(Poly.atom(value.text), value.text)
    if isinstance(value, Const) and isinstance(value.value, float):
        return Sym(Poly.atom(f"float {value.text}"), value.text, is_float=True)
    return None


def as_dtype(ctx: Context, node: ast.expr | None) -> DType | None:
    """A dtype argument; None if it was not given. Raises Cannot for anything else."""
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return None
    if isinstance(node, ast.Name) and node.id == "bool" and node.id not in ctx.scope.values:
        ctx.rewrites[node] = f"{ctx.alias('nl')}.{BOOL}"
        return DType(ctx.rewrites[node], BOOL)
    value = ctx.value_of(node)
    text = text_of(ctx, node)
    if isinstance(value, Ref):
        module, _, name = value.name.partition(".")
        return DType(text, NUMPY_NAMES.get(name, name) if module == "np" else name)
    known = value.value if isinstance(value, Const) else None
    if isinstance(known, DType):
        return known
    if not isinstance(known, str):
        return ctx.dtype(text)
    ctx.rewrites[node] = f"{ctx.alias('nl')}.{known}"
    return DType(ctx.rewrites[node], known)


def default_of(arguments: ast.arguments, name: str) -> ast.expr | None:
    """The default of a parameter."""
    places = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(reversed(places), reversed(arguments.defaults), strict=False),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return next((d for a, d in pairs if a.arg == name), None)


def option_of(ctx: Context, base: Value, node: ast.Subscript) -> Sym | None:
    """An entry of a parameter whose default is a dict with a number there: a number, too."""
    default = default_of(ctx.function.node.args, base.name) if isinstance(base, Parameter) else None
    if not isinstance(default, ast.Dict) or not isinstance(node.slice, ast.Constant):
        return None
    entries = zip(default.keys, default.values, strict=True)
    key = node.slice.value
    found = [v for k, v in entries if isinstance(k, ast.Constant) and k.value == key]
    number = found[-1].value if found and isinstance(found[-1], ast.Constant) else None
    if isinstance(number, bool) or not isinstance(number, int | float):
        return None
    text = text_of(ctx, node)
    is_float = isinstance(number, float)
    return Sym(Poly.atom(text), text, is_float=is_float, names=ctx.mentioned(text))


def reference(ctx: Context, node: ast.expr, canonical: str) -> Value:
    """The value of an imported name; one that is gone is rewritten."""
    if canonical in TILE_SIZES:
        return Sym(Poly.number(TILE_SIZES[canonical]), ctx.index.source.segment(node))
    if canonical in _FLOATS:
        text = ctx.index.source.segment(node)
        return Sym(Poly.atom(f"float {canonical}"), text, is_float=True)
    if canonical in {"nl.fp32.min", "nisa.fp32.min", "nl.bfp16.min"}:
        ctx.report(Reason.FLOAT_LIMIT, node, f"`{canonical}` is gone; its value is a literal")
        ctx.rewrites[node] = _FLOAT32_MIN
        return Const(-3.4028235e38, _FLOAT32_MIN)
    module, _, name = canonical.partition(".")
    if module == "np" and name in NUMPY_NAMES:
        text = f"{ctx.alias('nl')}.{NUMPY_NAMES[name]}"
        ctx.report(Reason.NUMPY_DTYPE, node, f"kernel code takes NKI dtypes: `{text}`")
        ctx.rewrites[node] = text
        return Ref(f"nl.{NUMPY_NAMES[name]}", text)
    return Ref(canonical, ctx.index.source.segment(node))


def dtype_limit(ctx: Context, node: ast.Attribute) -> Value | None:
    """`nl.finfo(dtype).min` or `.max`; None for other attributes."""
    dtype = _dtype_of_limits(ctx, node.value)
    if node.attr not in {"min", "max"} or dtype is None:
        return None
    ctx.report(Reason.FLOAT_LIMIT, node, "`nl.finfo` is gone; its limits are literals")
    sign, nl = -1 if node.attr == "min" else 1, ctx.alias("nl")
    half, brain, single = (repr(sign * n) for n in _LARGEST.values())
    if dtype.is_known:
        text = repr(sign * _LARGEST[dtype.key])
    else:
        kind = ctx.dtype_text(dtype)
        text = f"{half} if {kind} == {nl}.float16 else {single}"
        text = f"({brain} if {kind} == {nl}.bfloat16 else {text})"
    ctx.rewrites[node] = text
    return Const(sign * _LARGEST["float16"], text)


def _dtype_of_limits(ctx: Context, node: ast.expr) -> DType | None:
    """The dtype of `nl.finfo(dtype)`, if it may be one whose limits are known."""
    if not isinstance(node, ast.Call) or ctx.index.canonical(node.func) != "nl.finfo":
        return None
    dtype = as_dtype(ctx, node.args[0]) if len(node.args) == 1 else None
    is_other = dtype is not None and dtype.is_known and dtype.key not in _LARGEST
    return None if is_other else dtype
