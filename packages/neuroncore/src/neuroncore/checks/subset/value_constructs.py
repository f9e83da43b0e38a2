"""Constructs that depend on what a name refers to: a builtin, a module, a tensor, a register."""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from neuroncore.checks.subset.modules import Module
from neuroncore.checks.subset.syntax_constructs import Check, Hit, is_dynamic
from neuroncore.checks.subset.traversal import parameters, walk
from neuroncore.checks.subset.value_kinds import Kind, Scope
from neuroncore.surface import signature

_KNOWN_BUILTINS = {
    *("abs", "bool", "dict", "divmod", "float", "int", "isinstance", "len", "list", "max", "min"),
    *("print", "slice", "str", "tuple", "type", "range", "super"),
}
_MATH = {*("ceil", "floor", "gcd", "log2", "log10", "pow", "sqrt"), *("pi", "e", "inf", "nan")}
_METHODS: Mapping[Kind, set[str]] = {
    "list": {*("append", "clear", "copy", "count", "extend", "index", "pop", "remove", "reverse")},
    "dict": {*("clear", "copy", "get", "items", "keys", "pop", "setdefault", "values")},
}
_DIFFERENT = {
    "count": "list.count gives the length of the list",
    "index": "list.index gives None where Python raises",
    "remove": "list.remove drops every match",
}
_TAKE_NUMBER = ("int", "float", "bool", "range", "min", "max")
_CONDITIONS: Mapping[type[ast.AST], str] = {
    ast.If: "if", ast.IfExp: "a conditional expression", ast.While: "while", ast.Assert: "assert",
}  # fmt: skip


def _name(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    assert isinstance(node, ast.Name)
    if not isinstance(node.ctx, ast.Load) or node.id in scope.locals:
        return
    origin = scope.module.imports.get(node.id)
    if origin is not None:
        if origin.path.partition(".")[0] == "neuronxcc":
            yield "old-namespace", node, origin.path
    elif node.id == "super":
        yield "super-or-property", node, "super"
    elif node.id == "range":
        if not _is_loop_iterator(node, scope):
            yield "range-value", node, ""
    elif node.id in scope.module.constants:
        yield from _captured(node, scope)
    elif node.id not in scope.module.definitions and _is_unknown_builtin(node.id):
        yield "builtin", node, node.id


def _is_unknown_builtin(name: str) -> bool:
    return hasattr(builtins, name) and name not in _KNOWN_BUILTINS


def _is_loop_iterator(node: ast.Name, scope: Scope) -> bool:
    call = scope.parents.get(node)
    loop = scope.parents.get(call) if call is not None else None
    return isinstance(loop, ast.For | ast.comprehension) and loop.iter is call


def _captured(node: ast.Name, scope: Scope) -> Iterator[Hit]:
    value = _number(scope.module.constants[node.id])
    if value is not None and not _fits(value):
        yield "wide-int", node, f"{node.id} = {value}"


def _literal(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    """A constant expression of the kernel itself; the whole of it counts, not its parts."""
    assert isinstance(node, ast.expr)
    value, around = _number(node), scope.parents.get(node)
    is_part = isinstance(around, ast.expr) and _number(around) is not None
    if value is not None and not is_part and not _fits(value):
        yield "wide-int", node, ast.unparse(node)


def _fits(value: int) -> bool:
    return -(2**31) <= value < 2**31


def _number(node: ast.expr) -> int | None:
    """The value of a constant expression of ints, such as `2**40 - 1`."""
    match node:
        case ast.Constant(value=int() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = _number(operand)
            return None if value is None else -value
        case ast.BinOp(left=left, op=sign, right=right):
            a, b, combine = _number(left), _number(right), _ARITHMETIC.get(type(sign))
            is_small = a is not None and b is not None and abs(a) < 2**64 and 0 <= b < 2**64
            is_power = isinstance(sign, ast.Pow | ast.LShift)
            if combine is None or not is_small or (is_power and b is not None and b > 64):
                return None
            return combine(a, b)
    return None


_ARITHMETIC: Mapping[type[ast.AST], Callable[[Any, Any], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.LShift: operator.lshift, ast.Pow: operator.pow,
}  # fmt: skip


def _attribute(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    assert isinstance(node, ast.Attribute)
    path = scope.module.dotted(node) or ""
    module, _, name = path.rpartition(".")
    if module == "math" and name not in _MATH:
        yield "math-function", node, name
    call = scope.parents.get(node)
    is_called = isinstance(call, ast.Call) and call.func is node
    is_argument = isinstance(call, ast.Call | ast.keyword) and not is_called
    if is_argument and is_numpy_dtype(scope.module, node):
        yield "numpy-dtype", node, ast.unparse(node)


def is_numpy_dtype(module: Module, node: ast.AST) -> bool:
    """Whether an expression is a scalar type of numpy, such as np.float32."""
    package, _, name = (module.dotted(node) or "").rpartition(".")
    value = getattr(np, name, None) if package == "numpy" else None
    return isinstance(value, type) and issubclass(value, np.generic)


def _call(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    assert isinstance(node, ast.Call)
    yield from _mask(node, scope)
    match node.func:
        case ast.Name(id="min" | "max" as name) if name not in scope.locals and len(node.args) > 2:
            yield "min-max", node, name
        case ast.Name(id=name) if name in _TAKE_NUMBER and _given(node, scope, "register"):
            yield "register-branch", node, f"{name}()"
        case ast.Attribute(value=value, attr=name):
            yield from _method(node, scope.kind(value), name)


def _removed(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    """`nl.dynamic_range`: a rule of versions without it."""
    assert isinstance(node, ast.Call)
    if scope.module.nki(node.func) == "nki.language.dynamic_range":
        yield "dynamic-range", node, ""


def _given(call: ast.Call, scope: Scope, kind: Kind) -> bool:
    return any(scope.kind(argument) == kind for argument in call.args)


def _mask(call: ast.Call, scope: Scope) -> Iterator[Hit]:
    path = scope.module.nki(call.func) or ""
    if not path.startswith(("nki.language.", "nki.isa.")):
        return
    known = signature(path.rpartition(".")[2], scope.nki) if path.startswith("nki.isa.") else None
    if known is not None and any(p.name == "mask" for p in known.params):
        return
    for keyword in call.keywords:
        if keyword.arg == "mask":
            yield "mask", keyword, ""


def _method(call: ast.Call, kind: Kind | None, name: str) -> Iterator[Hit]:
    if kind == "string":
        yield "string-operation", call, f"method {name}"
    elif kind in _METHODS:
        if name not in _METHODS[kind]:
            yield "method", call, f"{kind}.{name}"
        elif kind == "list" and name == "pop" and call.args:
            yield "method", call, "list.pop with an index"
        elif kind == "list" and name in _DIFFERENT:
            yield "method-differs", call, _DIFFERENT[name]


def _subscript(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    assert isinstance(node, ast.Subscript)
    kind = scope.kind(node.value)
    if kind == "string":
        yield "string-operation", node, "subscript"
    is_augmented = isinstance(scope.parents.get(node), ast.AugAssign)
    if kind == "tensor" and isinstance(node.ctx, ast.Store) and not is_augmented:
        yield "tensor-assignment", node, ""
    if kind in ("tensor", "list") and _has_register(node.slice, scope):
        yield "register-branch", node, "an index"


def _has_register(key: ast.expr, scope: Scope) -> bool:
    """Whether an index or a bound of a slice is one."""
    items = key.elts if isinstance(key, ast.Tuple) else [key]
    parts = [p for i in items for p in ((i.lower, i.upper) if isinstance(i, ast.Slice) else (i,))]
    return any(scope.kind(part) == "register" for part in parts)


def _operation(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    match node:
        case ast.BinOp(left=left, op=sign, right=right):
            operands: list[ast.expr] = [left, right]
        case ast.AugAssign(target=target, op=sign, value=value):
            operands = [target, value]
        case ast.UnaryOp(op=sign, operand=operand):
            operands = [operand]
        case _:
            return
    if type(sign) in _SIGNS and any(scope.kind(operand) == "tensor" for operand in operands):
        yield "tensor-arithmetic", node, _SIGNS[type(sign)]


_SIGNS: Mapping[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.LShift: "<<", ast.RShift: ">>", ast.BitOr: "|", ast.BitXor: "^",
    ast.BitAnd: "&", ast.USub: "-", ast.Invert: "~",
}  # fmt: skip


def _comparison(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    """Tensors have no order; `==` is Python's own, which says whether they are one object."""
    assert isinstance(node, ast.Compare)
    operands = [node.left, *node.comparators]
    for sign, sides in zip(node.ops, pairwise(operands), strict=True):
        if type(sign) in _ORDERS and any(scope.kind(side) == "tensor" for side in sides):
            yield "tensor-arithmetic", node, _ORDERS[type(sign)]


_ORDERS: Mapping[type[ast.AST], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip


def _membership(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    assert isinstance(node, ast.Compare)
    for sign, right in zip(node.ops, node.comparators, strict=True):
        if isinstance(sign, ast.In | ast.NotIn) and scope.kind(right) == "dict":
            yield "membership", node, "in" if isinstance(sign, ast.In) else "not in"


def _condition(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    assert isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert)
    if not _depends_on_register(node.test, scope):
        return
    if isinstance(node, ast.While):
        yield "register-while", node.test, ""
    else:
        yield "register-branch", node.test, _CONDITIONS[type(node)]


def _depends_on_register(test: ast.expr, scope: Scope) -> bool:
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _depends_on_register(operand, scope)
        case ast.BoolOp(values=values):
            return any(_depends_on_register(value, scope) for value in values)
        case ast.Compare(left=left, ops=ops, comparators=rest):
            is_identity = all(isinstance(op, ast.Is | ast.IsNot) for op in ops)
            return not is_identity and any(scope.kind(n) == "register" for n in (left, *rest))
    return scope.kind(test) == "register"


BY_VALUE: Mapping[str, tuple[Check, ...]] = {
    **dict.fromkeys(("BinOp", "UnaryOp"), (_operation, _literal)),
    "AugAssign": (_operation,), "Constant": (_literal,),
    **dict.fromkeys(("If", "IfExp", "While", "Assert"), (_condition,)),
    "Name": (_name,), "Attribute": (_attribute,), "Call": (_call, _removed),
    "Subscript": (_subscript,), "Compare": (_membership, _comparison),
}  # fmt: skip
"""Checks by the type of node that they look at."""


def _body(node: ast.AST, scope: Scope) -> ast.For | ast.While | None:
    """The innermost loop on the device around a node; what a `for` runs over is not in it."""
    inner = node
    for outer in scope.above(node):
        is_loop = isinstance(outer, ast.For | ast.While)
        if is_loop and inner in outer.body and is_dynamic(outer, scope):
            return outer
        inner = outer
    return None


def _nested(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    assert isinstance(node, ast.For | ast.While)
    if is_dynamic(node, scope) and _body(node, scope) is not None:
        head = node.iter if isinstance(node, ast.For) else node.test
        yield "nested-dynamic-loop", head, ast.unparse(head)


def _used_outside(code: str, block: Callable[[ast.AST, Scope], ast.AST | None]) -> Check:
    """Finds names that are read outside the blocks in which all their tensors were made."""

    def check(node: ast.AST, scope: Scope) -> Iterator[Hit]:
        assert isinstance(node, ast.Name)
        if not isinstance(node.ctx, ast.Load) or scope.kind(node) != "tensor":
            return
        blocks = [block(store, scope) for store in scope.stores.get(node.id, ())]
        around = {*scope.above(node)}
        if blocks and not any(each is None or each in around for each in blocks):
            yield code, node, node.id

    return check


BY_LOOP: Mapping[str, tuple[Check, ...]] = {
    **dict.fromkeys(("For", "While"), (_nested,)),
    "Name": (_used_outside("body-tensor", _body),),
}
"""Checks of device loops by the type of node that they look at."""


# -- 0.1: control flow on indices, the scope of tensors, where outputs are -------------------------

# A branch on values known when the kernel is traced is none: public kernels of 0.1 make tensors
# and outputs in such branches.
_INDEX_CONDITIONS: Mapping[type[ast.AST], str] = {
    ast.If: "if", ast.IfExp: "the conditional expression", ast.While: "while",
}  # fmt: skip


def _index_condition(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    assert isinstance(node, ast.If | ast.IfExp | ast.While)
    parts = (part for part in walk(node.test) if isinstance(part, ast.Name))
    yield from _on_index(node.test, parts, _INDEX_CONDITIONS[type(node)], scope)


def _index_number(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    """`range(i)`, `min(i, 2)`: what needs the number that a symbol will be."""
    assert isinstance(node, ast.Call)
    name = scope.module.nki(node.func) or ast.unparse(node.func)
    if name in _TAKE_NUMBERS:
        yield from _on_index(node, node.args, name.rpartition(".")[2], scope)


_TAKE_NUMBERS = {"range", "min", "max", *(f"nki.language.{kind}_range" for kind in
                 ("affine", "sequential", "static"))}  # fmt: skip


def _on_index(node: ast.AST, parts: Iterable[ast.expr], what: str, scope: Scope) -> Iterator[Hit]:
    kinds = {scope.kind(part) for part in parts}
    if "index" in kinds:
        yield "index-condition", node, what
    elif "sequential index" in kinds:
        yield "sequential-condition", node, what


def _store(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    """`nl.store(parameter[...], value)`."""
    assert isinstance(node, ast.Call)
    if not scope.is_entry or scope.module.nki(node.func) != "nki.language.store" or not node.args:
        return
    target = node.args[0]
    while isinstance(target, ast.Subscript):
        target = target.value
    if isinstance(target, ast.Name) and _is_read_only(target.id, scope):
        yield "parameter-write", target, target.id


def _is_read_only(name: str, scope: Scope) -> bool:
    """A kernel without a result is of SDK 2.20, which gave kernels their outputs."""
    returns = any(isinstance(n, ast.Return) and n.value is not None for n in walk(scope.function))
    annotations = {p.arg: p.annotation for p in parameters(scope.function)}
    if not returns or name not in annotations:
        return False
    return "mutable_tensor" not in ast.unparse(annotations[name] or ast.Constant(None))


def _output(node: ast.AST, scope: Scope) -> Iterator[Hit]:
    assert isinstance(node, ast.Call)
    for keyword in node.keywords:
        is_shared = scope.module.nki(keyword.value) == "nki.language.shared_hbm"
        if keyword.arg == "buffer" and is_shared and _block(node, scope) is not None:
            yield "nested-output", node, ""


def _block(node: ast.AST, scope: Scope) -> ast.AST | None:
    """The loop around a node whose body 0.1 runs once; it unrolls nl.static_range and lists."""
    return next((above for above in scope.above(node) if _is_block(above, scope)), None)


def _is_block(node: ast.AST, scope: Scope) -> bool:
    return isinstance(node, ast.While) or (
        isinstance(node, ast.For) and scope.loop_index(node) is not None
    )


BY_INDEX: Mapping[str, tuple[Check, ...]] = {
    **dict.fromkeys(("If", "IfExp", "While"), (_index_condition,)),
    "Call": (_store, _output, _index_number),
    "Name": (_used_outside("tensor-scope", _block),),
}
"""Checks of 0.1 by the type of node that they look at."""
