"""Abstract evaluation of kernel expressions.

`value_of` finds out what an expression represents. A call that makes a tile is rewritten on the
way: its instructions are emitted and the value is the new tile, so nested calls unfold in
evaluation order. Parts that need another spelling in 0.2 are noted in
`ctx.rewrites`; `text_of` puts them into the source text.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce

from nki_migrate.facts.dtypes import DType
from nki_migrate.facts.symbols import Poly
from nki_migrate.facts.values import (
    ATOM,
    Const,
    Container,
    Grid,
    Index,
    Mask,
    Seq,
    ShapeOf,
    Sym,
    Tensor,
    Unknown,
    Value,
    is_none,
)
from nki_migrate.index import children, walk
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason, Unsupported
from nki_migrate.rewriting.context.source_text import (
    as_number,
    dtype_limit,
    option_of,
    reference,
    text_of,
)
from nki_migrate.rewriting.expressions.compile_time_calls import (
    KNOWN_CALLS,
    builtin_name,
    index_grid,
    joined_sizes,
    with_new_axes,
)
from nki_migrate.rewriting.expressions.deferred_code import SCOPED, stays_inside
from nki_migrate.rewriting.inference.helper_calls import as_tile
from nki_migrate.rewriting.inference.list_items import item_of
from nki_migrate.rewriting.inference.observations import refined
from nki_migrate.rewriting.operations.calls import rewrite_call
from nki_migrate.rewriting.operations.operators import (
    binary_operator,
    comparison_operator,
    unary_operator,
)
from nki_migrate.rewriting.views.index_tensors import (
    index_arithmetic,
    number_arithmetic,
    one_of_indices,
)
from nki_migrate.rewriting.views.masks import compare, conjoin
from nki_migrate.rewriting.views.subscripts import access
from nki_migrate.rewriting.views.tensors import as_tensor, dimension, home, own_dtype

_AXES = {"p": 0, "x": 1, "y": 2, "z": 3}


def evaluate(ctx: Context, node: ast.expr) -> Value:
    """The value of an expression."""
    evaluate_kind = EXPRESSIONS.get(type(node))
    if evaluate_kind is None:
        with stays_inside(ctx, node, "an expression that is not taken apart"):
            _visit_children(ctx, node)
        return Unknown(ctx.index.source.segment(node))
    return refined(ctx, node, evaluate_kind(ctx, node))


def _visit_children(ctx: Context, node: ast.AST) -> None:
    for child in children(node):
        if isinstance(child, ast.expr):
            ctx.value_of(child)
        elif not isinstance(child, ast.expr_context | ast.operator):
            _visit_children(ctx, child)


def _constant(ctx: Context, node: ast.Constant) -> Value:
    if isinstance(node.value, int) and not isinstance(node.value, bool):
        return Sym(Poly.number(node.value), ctx.index.source.segment(node))
    return Const(node.value, ctx.index.source.segment(node))


def _name(ctx: Context, node: ast.Name) -> Value:
    if node.id in ctx.scope.values:
        return ctx.scope.values[node.id]
    canonical = ctx.index.canonical(node)
    if canonical:
        return reference(ctx, node, canonical)
    constant = ctx.index.constant(node.id)
    number = as_number(ctx, ctx.value_of(constant)) if constant is not None else None
    if number is None:
        return Unknown(node.id)
    return Sym(number.poly, node.id, is_float=number.is_float)


def _attribute(ctx: Context, node: ast.Attribute) -> Value:
    canonical = ctx.index.canonical(node)
    root = node
    while isinstance(root, ast.Attribute):
        root = root.value  # type: ignore[assignment]
    if canonical and not (isinstance(root, ast.Name) and root.id in ctx.scope.values):
        return reference(ctx, node, canonical)
    if (limit := dtype_limit(ctx, node)) is not None:
        return limit
    base = ctx.value_of(node.value)
    if isinstance(base, Grid) and node.attr in _AXES and _AXES[node.attr] < len(base.axes):
        ctx.require(Reason.INDEX_GRID)
        return base.axes[_AXES[node.attr]]
    if node.attr == "shape":
        return _shape(ctx, base, node)
    if node.attr == "dtype":
        tensor = as_tensor(ctx, base)
        if tensor is not None:
            _away_from_list(ctx, node, tensor)
            return Const(_dtype_of(ctx, tensor, text_of(ctx, node)), text_of(ctx, node))
    return Unknown(text_of(ctx, node))


def _away_from_list(ctx: Context, node: ast.Attribute, tensor: Tensor) -> None:
    """`t.dtype` and `t.shape` of blocks in words that hold for a list of tiles, or folded ones."""
    storage = tensor.storage
    if not storage.blocks or tensor.dims is not None or (storage.folded and node.attr == "dtype"):
        return
    known = storage.dtype
    if node.attr == "shape":
        text = ctx.shape_text(tensor.shape) if tensor.shape is not None else ""
    elif known is not None and ctx.still_valid(known.names):
        text = known.text
    else:
        text = f"{home(ctx, storage)}{'[0]' * storage.blocks}.dtype"
    if not text:
        raise Cannot(Reason.BLOCK_DIMENSIONS, "the shape of block dimensions is not known", node)
    ctx.report(Reason.BLOCK_DIMENSIONS, node, f"the tiles have another `.{node.attr}`")
    ctx.rewrites[node] = text


def _dtype_of(ctx: Context, tensor: Tensor, text: str) -> DType:
    known = tensor.storage.dtype
    if known is None:
        known = tensor.storage.dtype = own_dtype(ctx, tensor)
    return ctx.dtype(text, known.key)


def _shape(ctx: Context, base: Value, node: ast.Attribute) -> Value:
    if isinstance(base, Index):  # the index tensor goes, its extents stay
        ctx.require(Reason.INDEX_TENSOR)
        ctx.rewrites[node] = ctx.shape_text(base.extents)
        return Seq(base.extents, ctx.rewrites[node])
    tensor = as_tensor(ctx, base)
    if tensor is None:
        return Unknown(text_of(ctx, node))
    if tensor.shape is None:
        return ShapeOf(tensor.storage.name)
    _away_from_list(ctx, node, tensor)
    return Seq(tensor.shape, text_of(ctx, node))


def _sequence(ctx: Context, node: ast.Tuple | ast.List) -> Value:
    marks = {i for i, e in enumerate(node.elts) if _is_par_dim(ctx, e)}
    items = tuple(ctx.value_of(e) for e in node.elts)
    return Seq(items, text_of(ctx, node), frozenset(marks))


def _is_par_dim(ctx: Context, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ctx.index.canonical(node.func) == "nl.par_dim"


def _subscript(ctx: Context, node: ast.Subscript) -> Value:
    if ctx.index.canonical(node.value) == "nl.mgrid":
        return index_grid(ctx, node)
    base = ctx.value_of(node.value)
    _reject_mixed_blocks(base, node)
    if isinstance(base, Container) or _is_key(node.slice):
        ctx.value_of(node.slice)
        return _item(ctx, node) or option_of(ctx, base, node) or Unknown(text_of(ctx, node))
    if isinstance(base, Index):
        return with_new_axes(ctx, base, node)
    if isinstance(base, Grid | Seq | ShapeOf):
        return _element(ctx, base, node)
    tensor = as_tensor(ctx, base)
    if tensor is not None:
        return access(ctx, tensor, node)
    if not isinstance(node.slice, ast.Slice):
        ctx.value_of(node.slice)
    return Unknown(text_of(ctx, node))


def _reject_mixed_blocks(base: Value, node: ast.AST) -> None:
    """Part of what is a list of tiles in some branches only."""
    if isinstance(base, Unsupported) and base.reason is Reason.BLOCK_DIMENSIONS:
        raise Cannot(base.reason, base.text, node)


def _item(ctx: Context, node: ast.Subscript) -> Tensor | None:
    name = node.value.id if isinstance(node.value, ast.Name) else ""
    return item_of(ctx, name, text_of(ctx, node))


def _is_key(node: ast.expr) -> bool:
    """Whether a subscript is a key of a dict."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _element(ctx: Context, base: Value, node: ast.Subscript) -> Value:
    is_slice = isinstance(node.slice, ast.Slice)
    position = None if is_slice else as_number(ctx, ctx.value_of(node.slice))
    at = position.value if position else None
    if isinstance(base, ShapeOf):
        if at is None or at < 0:
            return Unknown(text_of(ctx, node))
        if at > 0:  # `x.shape[0]` alone does not mean one dimension
            ctx.seen.ranks[base.text] = max(at + 1, ctx.seen.ranks.get(base.text, 0))
        return dimension(ctx, base.text, at)
    items = base.axes if isinstance(base, Grid) else base.items  # type: ignore[attr-defined]
    if at is None or not -len(items) <= at < len(items):
        return _item(ctx, node) or Unknown(text_of(ctx, node))
    item = items[at]
    if isinstance(node.value, ast.Tuple | ast.List):
        return as_tile(ctx, item, text_of(ctx, node))
    if isinstance(item, Unknown):  # `sizes[0]` of `sizes = (count(x), 2)`: not the call again
        return Unknown(text_of(ctx, node))
    if isinstance(item, Sym):
        if node.value in ctx.rewrites:  # `i.shape[0]` of an index tensor: that extent alone
            ctx.rewrites[node] = item.at(ATOM)
            return item
        return Sym(item.poly, text_of(ctx, node), names=_names_in(ctx, node))
    return as_tile(ctx, item, text_of(ctx, node))


def _names_in(ctx: Context, node: ast.AST) -> frozenset[tuple[str, int]]:
    names = {n.id for n in walk(node) if isinstance(n, ast.Name)}
    return frozenset((n, ctx.scope.versions[n]) for n in names if n in ctx.scope.versions)


# -- operators


def _binary(ctx: Context, node: ast.BinOp) -> Value:
    left, right = ctx.value_of(node.left), ctx.value_of(node.right)
    kinds = (type(left), type(right))
    if Container in kinds or Seq in kinds:
        return _joined(ctx, node, left, right)
    if Mask in kinds and isinstance(node.op, ast.BitAnd):
        return conjoin(left, right)
    if Mask in kinds:
        return Unsupported(
            f"`{ctx.index.source.segment(node)}` combines masks by something else than &",
            Reason.OTHER_MASK,
        )
    if Index in kinds:
        return index_arithmetic(ctx, node, left, right)
    if Tensor in kinds:
        return binary_operator(ctx, node, left, right)
    a, b = as_number(ctx, left), as_number(ctx, right)
    if a is None or b is None:
        return Unknown(text_of(ctx, node))
    return number_arithmetic(ctx, node, a, b)


def _joined(ctx: Context, node: ast.BinOp, left: Value, right: Value) -> Value:
    """`sizes + (1,)`, or a list of something else: `[None] * n`, `tiles + [tile]`."""
    text = text_of(ctx, node)
    sizes = joined_sizes(ctx, left, right) if isinstance(node.op, ast.Add) else None
    return Container(text) if sizes is None else replace(sizes, text=text)


def _unary(ctx: Context, node: ast.UnaryOp) -> Value:
    value = ctx.value_of(node.operand)
    if isinstance(value, Tensor):
        return unary_operator(ctx, node, value)
    if isinstance(node.op, ast.USub):
        if isinstance(value, Const) and isinstance(value.value, float):
            return Const(-value.value, text_of(ctx, node))
        number = as_number(ctx, value)
        if number is not None:
            text = text_of(ctx, node)
            return Sym(ctx.facts.negated(number.poly), text, 1, number.is_float, number.names)
    return Unknown(text_of(ctx, node))


def _comparison(ctx: Context, node: ast.Compare) -> Value:
    values = [ctx.value_of(x) for x in (node.left, *node.comparators)]
    values = [v if isinstance(v, Index) else as_number(ctx, v) or v for v in values]
    is_identity = any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in node.ops)
    if is_identity or any(map(is_none, values)):
        return Unknown(text_of(ctx, node))  # of objects, not of what tiles hold
    if len(values) == 2 and isinstance(values[0], Tensor):
        return comparison_operator(ctx, node, values[0], values[1])
    unsupported = [v for v in values if isinstance(v, Unsupported)]
    return unsupported[0] if unsupported else _chain(ctx, node, values)


def _chain(ctx: Context, node: ast.Compare, values: Sequence[Value]) -> Value:
    """Comparisons of numbers and index tensors: the mask that all of them make."""
    if not all(isinstance(v, Sym | Index) for v in values):
        return Unknown(text_of(ctx, node))
    sides = zip(values, node.ops, values[1:], strict=False)
    text = text_of(ctx, node)
    masks = [compare(ctx, a, op, b, text) for a, op, b in sides]
    return masks[0] if len(masks) == 1 else reduce(conjoin, masks)


def _boolean(ctx: Context, node: ast.BoolOp) -> Value:
    values = [ctx.value_of(node.values[0])]
    with stays_inside(ctx, node, "an operand of `and` or `or`"):
        values += [ctx.value_of(v) for v in node.values[1:]]
    if isinstance(node.op, ast.And) and all(isinstance(v, Mask) for v in values):
        return reduce(conjoin, values)
    return Unknown(text_of(ctx, node))


def _conditional(ctx: Context, node: ast.IfExp) -> Value:
    if isinstance(node.test, ast.Constant):  # the other arm never runs
        arm = node.body if node.test.value else node.orelse
        value = ctx.value_of(arm)
        if isinstance(value, Tensor):
            return value
    ctx.value_of(node.test)
    with stays_inside(ctx, node, "an arm of a conditional expression"):
        a, b = ctx.value_of(node.body), ctx.value_of(node.orelse)
    if isinstance(a, Sym) and isinstance(b, Sym):
        text = text_of(ctx, node)
        return Sym(Poly.atom(f"({text})"), text, 0, a.is_float or b.is_float, _names_in(ctx, node))
    kinds = {type(a), type(b)}
    if Tensor in kinds:
        raise Cannot(Reason.PYTHON_STATE, "a tile chosen by a conditional expression", node)
    if kinds & {Index, Unsupported}:
        return one_of_indices(ctx, node, a, b)
    return Unknown(text_of(ctx, node))


# -- calls


def _call(ctx: Context, node: ast.Call) -> Value:
    canonical = ctx.index.canonical(node.func)
    special = KNOWN_CALLS.get(canonical or builtin_name(ctx, node))
    if special is not None:
        found = special(ctx, node)
        if found is not None:
            return found
    return rewrite_call(ctx, node, canonical)


EXPRESSIONS: dict[type[ast.expr], Callable[..., Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Tuple: _sequence,
    ast.List: _sequence,
    ast.Subscript: _subscript,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Compare: _comparison,
    ast.BoolOp: _boolean,
    ast.IfExp: _conditional,
    ast.JoinedStr: lambda ctx, node: Unsupported(
        "a string", Reason.FORMATTED_STRING
    ),  # positions inside are wrong before 3.12
    ast.Call: _call,
    **SCOPED,
}
