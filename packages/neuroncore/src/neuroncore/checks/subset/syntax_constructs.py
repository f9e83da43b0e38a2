"""Constructs that a frontend supports or rejects by their form alone."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping

from neuroncore.checks.subset.call_graph import is_kernel_maker
from neuroncore.checks.subset.modules import Module
from neuroncore.checks.subset.traversal import Function
from neuroncore.checks.subset.value_kinds import Scope

Hit = tuple[str, ast.AST, str]
"""The code of a rule, the node at fault, and what to name in the message."""

Check = Callable[[ast.AST, Scope], Iterable[Hit]]

_STATEMENTS: Mapping[str, str] = {
    "Try": "try", "TryStar": "try", "Raise": "raise", "Delete": "del", "Global": "global",
    "Nonlocal": "nonlocal", "Import": "import", "ImportFrom": "import", "Match": "match",
    "AsyncFor": "async for", "AsyncWith": "async with", "AsyncFunctionDef": "async def",
    "TypeAlias": "type",
}  # fmt: skip
_EXPRESSIONS: Mapping[str, str] = {
    "ListComp": "list comprehension", "SetComp": "set comprehension",
    "DictComp": "dict comprehension", "GeneratorExp": "generator", "Set": "set literal",
    "NamedExpr": "the operator :=", "Await": "await", "Yield": "yield", "YieldFrom": "yield from",
}  # fmt: skip
_DEFINITIONS = {"FunctionDef": "def", "ClassDef": "class", "Lambda": "lambda"}
_DECORATORS = {"dataclass", "dataclasses.dataclass", "staticmethod"}
_PROPERTIES = {"property", "functools.cached_property", "cached_property"}
_BASES = {"nki.language.NKIObject", "enum.Enum"}
_CLASS_STATEMENTS = (ast.AnnAssign, ast.Assign, ast.FunctionDef, ast.Pass)


def _statement(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    yield "statement", node, _STATEMENTS[type(node).__name__]


def _expression(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    yield "expression", node, _EXPRESSIONS[type(node).__name__]


def _nested(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    if node is scope.function:
        return
    is_body = getattr(node, "name", None) in scope.module.loop_bodies
    code = "nested-body" if is_body else "nested-definition"
    yield code, node, _DEFINITIONS[type(node).__name__]


def _loop(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    assert isinstance(node, ast.For | ast.While)
    if node.orelse:
        yield "loop-else", node.orelse[0], "for" if isinstance(node, ast.For) else "while"
    if isinstance(node, ast.For) and not isinstance(node.target, ast.Name):
        yield "loop-target", node.target, ""


def _with(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    assert isinstance(node, ast.With)
    for item in node.items:
        call = item.context_expr
        is_known = (
            isinstance(call, ast.Call)
            and scope.module.nki(call.func) == "nki.language.no_reorder"
            and not (call.args or call.keywords or item.optional_vars or len(node.items) > 1)
        )
        if not is_known:
            yield "with", item.context_expr, ast.unparse(item)


def _exit(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    """`break` and `continue` belong to the innermost loop, `return` leaves all of them."""
    loops = [above for above in scope.above(node) if isinstance(above, ast.For | ast.While)]
    concerned = loops if isinstance(node, ast.Return) else loops[:1]
    if any(is_dynamic(loop, scope) for loop in concerned):
        yield "dynamic-loop-exit", node, type(node).__name__.lower()


def is_dynamic(loop: ast.For | ast.While, scope: Scope) -> bool:
    """Whether the device counts the loop, or a register ends it."""
    if isinstance(loop, ast.While):
        return scope.kind(loop.test) == "register"
    call = loop.iter
    return (
        isinstance(call, ast.Call) and scope.module.nki(call.func) == "nki.language.dynamic_range"
    )


def _stored_name(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    assert isinstance(node, ast.Name)
    if not isinstance(node.ctx, ast.Store):
        return
    for loop in scope.above(node):
        match loop:
            case ast.For(target=ast.Name(id=index) as target) if is_dynamic(loop, scope):
                if target is not node and index == node.id:
                    yield "dynamic-index-write", node, node.id


def _starred(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    if not isinstance(scope.parents.get(node), ast.Call):
        yield "starred", node, ""


def _unpacking(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    assert isinstance(node, ast.Call)
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            yield "call-unpacking", argument, ast.unparse(argument)
    for keyword in node.keywords:
        if keyword.arg is None:
            yield "call-unpacking", keyword, f"**{ast.unparse(keyword.value)}"


def _matmul(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    assert isinstance(node, ast.BinOp | ast.AugAssign)
    if isinstance(node.op, ast.MatMult):
        yield "matmul-operator", node, ""


def _constant(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    assert isinstance(node, ast.Constant)
    if isinstance(node.value, bytes | complex):
        yield "constant", node, type(node.value).__name__


def _dict(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    assert isinstance(node, ast.Dict)
    for key, value in zip(node.keys, node.values, strict=True):
        if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
            yield "dict-key", key or value, ""


def _formatted(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    assert isinstance(node, ast.FormattedValue)
    if node.format_spec is not None:
        yield "format-spec", node, ""


def _identity(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    assert isinstance(node, ast.Compare)
    for operator, right in zip(node.ops, node.comparators, strict=True):
        if isinstance(operator, ast.Is | ast.IsNot):
            text = ast.unparse(node)
            yield "identity", node, text
            if not (isinstance(right, ast.Constant) and right.value is None):
                yield "is-not-none", node, text


BY_FORM: Mapping[str, tuple[Check, ...]] = {
    **dict.fromkeys(_STATEMENTS, (_statement,)),
    **dict.fromkeys(_EXPRESSIONS, (_expression,)),
    **dict.fromkeys(_DEFINITIONS, (_nested,)),
    **dict.fromkeys(("For", "While"), (_loop,)),
    **dict.fromkeys(("Break", "Continue", "Return"), (_exit,)),
    **dict.fromkeys(("BinOp", "AugAssign"), (_matmul,)),
    "With": (_with,), "Name": (_stored_name,), "Starred": (_starred,), "Call": (_unpacking,),
    "Constant": (_constant,), "Dict": (_dict,), "FormattedValue": (_formatted,),
    "Compare": (_identity,),
}  # fmt: skip
"""Checks by the type of node that they look at."""


def check_signature(function: Function, module: Module) -> Iterator[Hit]:
    """The parameters and decorators of a function."""
    args = function.args
    if args.vararg is not None:
        yield "star-parameter", args.vararg, args.vararg.arg
    if args.kwarg is not None:
        yield "double-star-parameter", args.kwarg, args.kwarg.arg
    for parameter in args.kwonlyargs:
        yield "keyword-only", parameter, parameter.arg
    yield from _decorators(function, module)


def _decorators(node: Function | ast.ClassDef, module: Module) -> Iterator[Hit]:
    for decorator in node.decorator_list:
        name = ast.unparse(decorator)
        call = decorator.func if isinstance(decorator, ast.Call) else decorator
        path = module.dotted(call) or ast.unparse(call)
        if path in _PROPERTIES or path.endswith((".setter", ".getter", ".deleter")):
            yield "super-or-property", decorator, f"@{name}"
        elif path not in _DECORATORS and not is_kernel_maker(module, decorator):
            yield "decorator", decorator, f"@{name}"


def check_class(node: ast.ClassDef, module: Module) -> Iterator[Hit]:
    """The head and the statements of a class; its methods are functions like others."""
    yield from _decorators(node, module)
    bases = [module.nki(base) or module.dotted(base) or ast.unparse(base) for base in node.bases]
    if len(bases) != 1 or not _BASES.issuperset(bases) or node.keywords:
        given = ", ".join(ast.unparse(part) for part in (*node.bases, *node.keywords))
        yield (
            "class-base",
            node,
            f"{node.name}({given})" if given else f"{node.name} without a base",
        )
    for statement in node.body:
        is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not (is_docstring or isinstance(statement, _CLASS_STATEMENTS)):
            yield "class-body", statement, type(statement).__name__.lower()
