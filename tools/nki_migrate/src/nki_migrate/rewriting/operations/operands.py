"""Numbers as operands: their text, and whether they are floats."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from nki_migrate.facts.values import Const, Sym, Value
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.context.source_text import default_of, text_of
from nki_migrate.rewriting.inference.observations import guard, is_seen_float

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


def operator_text(ctx: Context, node: ast.expr) -> str:
    """An `op=` argument: NumPy functions become `nl` operators."""

    canonical = ctx.index.canonical(node)
    module, _, name = (canonical or "").partition(".")
    if module == "np":
        if name not in NUMPY_OPERATORS:
            raise Cannot(
                Reason.NUMPY_OPERATOR, f"`{canonical}` is not an operator of the machine", node
            )
        text = f"{ctx.alias('nl')}.{NUMPY_OPERATORS[name]}"
        ctx.report(Reason.NUMPY_OPERATOR, node, f"operators are NKI's own: `{text}`")
        ctx.rewrites[node] = text
        return text
    if canonical is None:
        ctx.value_of(node)
    if module == "nl" and name in {"max", "min", "sum"}:
        return f"{ctx.alias('nl')}.{NUMPY_OPERATORS[name]}"
    return text_of(ctx, node)


_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")  # `n`, `config.scale`; not `x.shape[0]`


def is_truth_value(value: Value) -> bool:
    """Whether a number is True or False."""
    return isinstance(value, Const) and isinstance(value.value, bool)


def scalar_of(ctx: Context, value: Value, node: ast.AST) -> tuple[str, str, bool | None]:
    """Its text as an operand of `/`, as an argument, and whether it is a float (None: unknown)."""
    if isinstance(value, Sym):
        spelled = ctx.spell(value) if not value.is_float else value.text
        return value.at(3), spelled, value.is_float or _number_kind(ctx, value)
    if isinstance(value, Const) and isinstance(value.value, int | float):
        text = value.text if value.value >= 0 else f"({value.text})"
        return text, value.text, isinstance(value.value, float)
    raise Cannot(Reason.TILE_ARITHMETIC, "an operand that is neither a tile nor a number", node)


def _number_kind(ctx: Context, value: Sym) -> bool | None:
    """Whether a number is a float; None for what comes from outside of the kernel unexplained."""
    if not any("@" in atom or _PATH.fullmatch(atom) for atom in value.poly.atoms()):
        return False
    name = value.text
    own = name.isidentifier() and value.poly.single_atom == f"{name}@{_first(ctx, name)}"
    basis = float_basis(ctx, name) if own else None
    if basis is None and own and _is_float_by_default(ctx, name):
        return True
    if basis is None:
        return is_seen_float(ctx, value.poly.single_atom)
    ctx.basis.append(basis)
    return True


def _is_float_by_default(ctx: Context, name: str) -> bool:
    """Whether the default of a parameter is a float; an assert in the new kernel says so."""
    default = default_of(ctx.function.node.args, name)
    if not isinstance(default, ast.Constant) or not _is_float(default):
        return False
    guard(ctx, f"isinstance({name}, float)", f"the default of `{name}` is {default.value}")
    return True


def _first(ctx: Context, name: str) -> int:
    """The version of a name that is bound once only, as a parameter is."""
    return ctx.scope.versions.get(name, 0)


def float_basis(ctx: Context, name: str) -> str | None:
    """The fact that says that a parameter is a float; None if there is none."""
    arguments = ctx.function.node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    own = next((a for a in every if a.arg == name), None)
    if own is None:
        return None
    if isinstance(own.annotation, ast.Name) and own.annotation.id == "float":
        return f"`{name}` is annotated as float"
    passed = list(_passed(ctx, name))
    if passed and all(_is_float(p) for p in passed):
        return f"every launch in the file passes a float as `{name}`"
    return None


def _passed(ctx: Context, name: str) -> Iterator[ast.expr | None]:
    """Arguments of the calls in the file; None where a call does not determine it."""
    position = list(ctx.function.parameters).index(name)
    default = default_of(ctx.function.node.args, name)
    for node in ast.walk(ctx.index.source.tree):
        if isinstance(node, ast.Call) and _callee(node) == ctx.function.name:
            yield _argument(node, name, position, default)


def _callee(call: ast.Call) -> str | None:
    """The name that is called, or launched over a grid."""
    callee = call.func.value if isinstance(call.func, ast.Subscript) else call.func
    return callee.id if isinstance(callee, ast.Name) else None


def _argument(
    call: ast.Call, name: str, position: int, default: ast.expr | None
) -> ast.expr | None:
    keyword = next((k.value for k in call.keywords if k.arg == name), None)
    if keyword is not None or any(isinstance(a, ast.Starred) for a in call.args):
        return keyword
    if any(k.arg is None for k in call.keywords):
        return None
    return call.args[position] if position < len(call.args) else default


def _is_float(node: ast.expr | None) -> bool:
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and isinstance(node.value, float)
