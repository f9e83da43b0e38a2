"""Kinds of values that a function's names certainly have, from its text alone."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from neuroncore.checks.subset.modules import Module
from neuroncore.checks.subset.rules import Frontend
from neuroncore.checks.subset.traversal import Function, bound_names, parameters, parents, walk
from neuroncore.surface import version_tuple

Kind = Literal["tensor", "register", "string", "list", "dict", "index", "sequential index"]

_CREATORS = {
    f"nki.language.{name}"
    for name in (
        *("ndarray", "zeros", "ones", "full", "zeros_like", "ones_like", "empty_like", "load"),
        *("shared_constant", "shared_identity_matrix"),
    )
}
_REGISTERS = {"nki.isa.register_alloc", "nki.isa.VirtualRegister", "nki.isa.scalar_load"}
_INDEX_CALLS = {"nki.language.arange", "nki.language.mgrid"}  # 0.1
_LOOP_INDICES: Mapping[str, Kind] = {  # of 0.1, which reads range as sequential_range
    "nki.language.affine_range": "index",
    "nki.language.sequential_range": "sequential index",
    "range": "sequential index",
}
_REGISTER_SINCE = (0, 4)  # before, the variable of dynamic_range is not a register
_BUILTINS: Mapping[str, Kind] = {"list": "list", "dict": "dict", "str": "string"}
_VIEWS = {"ap", "reshape", "view", "slice", "select", "permute", "broadcast", "expand_dim"}
# What an operation gives when one of its sides is of a kind, the first first.
_WINNERS: tuple[Kind, ...] = ("tensor", "register", "index", "sequential index", "string", "list")
_SYMBOLS: tuple[Kind, ...] = ("index", "sequential index")  # 0.1
_TENSOR_TYPES = {"ndarray", "NkiTensor", "tensor", "mutable_tensor"}
_TENSOR_ATTRIBUTES = {"shape", "dtype", "ap", "reshape"}


@dataclass(frozen=True)
class Scope:
    """A function under inspection, with all that its checks look at."""

    module: Module
    function: Function
    frontend: Frontend
    nki: str
    is_entry: bool
    kinds: dict[str, Kind | None] = field(default_factory=dict)
    parents: Mapping[ast.AST, ast.AST] = field(default_factory=dict)
    locals: frozenset[str] = frozenset()
    stores: Mapping[str, list[ast.Name]] = field(default_factory=dict)

    def kind(self, node: ast.AST | None) -> Kind | None:
        """The kind of an expression's value; None where the text does not determine it."""
        match node:
            case ast.Constant(value=str()) | ast.JoinedStr():
                return "string"
            case ast.List() | ast.ListComp():
                return "list"
            case ast.Dict() | ast.DictComp():
                return "dict"
            case ast.Name():
                return self._of_name(node)
            case ast.Compare(left=left, comparators=others):
                return self._symbol([left, *others])
            case ast.BoolOp(values=values):
                return self._symbol(values)
            case ast.Subscript(value=value) | ast.UnaryOp(operand=value):
                kind = self.kind(value)
                return kind if kind in ("tensor", "index", "sequential index") else None
            case ast.IfExp(body=body, orelse=orelse):
                kind = self.kind(body)
                return kind if kind == self.kind(orelse) else None
            case ast.BinOp(left=left, right=right):
                return self._of_operation(self.kind(left), self.kind(right))
            case ast.Call():
                return self._of_call(node)
        return None

    def _of_name(self, name: ast.Name) -> Kind | None:
        """Inside a loop over a name, what that loop makes of it: 0.1 unrolls some loops."""
        kind = self.kinds.get(name.id)
        if kind not in _SYMBOLS:
            return kind
        loops = (above for above in self.above(name) if isinstance(above, ast.For))
        own = next((n for n in loops if name.id in (t.id for t in _names(n.target))), None)
        return kind if own is None else self.loop_index(own)

    def _symbol(self, parts: Iterable[ast.expr]) -> Kind | None:
        """The kind of a comparison or a choice with an index among its parts."""
        kinds = {self.kind(part) for part in parts}
        return next((kind for kind in _SYMBOLS if kind in kinds), None)

    def loop_index(self, loop: ast.For) -> Kind | None:
        """The kind of a loop's variable; None for loops over other Python objects."""
        if not isinstance(loop.iter, ast.Call):
            return None
        path = self.module.nki(loop.iter.func) or ast.unparse(loop.iter.func)
        if self.frontend == "beta1":
            return _LOOP_INDICES.get(path)
        is_register = version_tuple(self.nki) >= _REGISTER_SINCE
        return "register" if path == "nki.language.dynamic_range" and is_register else None

    def _of_operation(self, left: Kind | None, right: Kind | None) -> Kind | None:
        return next((kind for kind in _WINNERS if kind in (left, right)), None)

    def _of_call(self, call: ast.Call) -> Kind | None:
        path = self.module.nki(call.func)
        if path in _CREATORS:
            return "tensor"
        if path in _REGISTERS:
            return "register"
        if self.frontend == "beta1" and path in _INDEX_CALLS:
            return "index"
        match call.func:
            case ast.Name(id=name) if name not in self.locals:
                return _BUILTINS.get(name)
            case ast.Attribute(value=value, attr=name) if name in _VIEWS:
                return "tensor" if self.kind(value) == "tensor" else None
            case ast.Attribute(value=value, attr="copy"):
                return self.kind(value)
        return None

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, innermost first, inside the function."""
        while (outer := self.parents.get(node)) is not None:
            yield outer
            node = outer


def scope_of(
    module: Module, function: Function, frontend: Frontend, nki: str, is_entry: bool
) -> Scope:
    """The scope of a function, with the kinds of its names."""
    names = frozenset(bound_names(function))
    scope = Scope(
        module, function, frontend, nki, is_entry, {}, parents(function), names, _stores(function)
    )
    values = _values(scope)
    given: dict[str, Kind | None] = {
        p.arg: "tensor" if _is_tensor(scope, p) else None for p in parameters(function)
    }
    for name in _loop_variables(scope):
        given[name] = "register"
    scope.kinds.update(given)
    for _ in range(3):  # names that are made of names made later in the text
        for name, expressions in values.items():
            begin: set[Kind | None] = {given[name]} if name in given else set()
            steps = [value for value in expressions if _reads(value, name)]
            first = [value for value in expressions if value not in steps]
            for values_so_far in (first, steps):  # `t = t + 1` is judged by what t was before
                begin |= {scope.kind(value) if value else None for value in values_so_far}
                scope.kinds[name] = next(iter(begin)) if len(begin) == 1 else None
        _add_loop_indices(scope)
    return scope


def _loop_variables(scope: Scope) -> Iterator[str]:
    """Variables that device loops pass to the functions that they run, nested ones included."""
    own = scope.function
    for node in walk(own):
        if isinstance(node, ast.FunctionDef) and node.name in scope.module.loop_bodies:
            variables = parameters(node)[:1]
            is_free = node is own or not {p.arg for p in variables} & scope.stores.keys()
            yield from (p.arg for p in variables if is_free)


def _stores(function: Function) -> dict[str, list[ast.Name]]:
    """Where each name is bound."""
    found: dict[str, list[ast.Name]] = {}
    for node in walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.setdefault(node.id, []).append(node)
    return found


def _values(scope: Scope) -> dict[str, list[ast.expr | None]]:
    """Every expression that a name is bound to; None for a binding without an expression."""
    found: dict[str, list[ast.expr | None]] = {}
    told: set[ast.AST] = set()
    for node in walk(scope.function):
        match node:
            case ast.Assign(targets=targets, value=value):
                pairs = [(target, value) for target in targets]
            case (
                ast.AnnAssign(target=target, value=value)
                | ast.NamedExpr(target=target, value=value)
            ):
                pairs = [(target, value)]
            case ast.AugAssign(target=target):
                told.add(target)  # keeps what it was
                continue
            case _:
                continue
        for target, value in pairs:
            if isinstance(target, ast.Name):
                told.add(target)
                found.setdefault(target.id, []).append(value)
    for name, nodes in scope.stores.items():
        if any(node not in told for node in nodes):
            found.setdefault(name, []).append(None)
    return found


def _reads(value: ast.expr | None, name: str) -> bool:
    return value is not None and any(n.id == name for n in _names(value))


def _add_loop_indices(scope: Scope) -> None:
    for node in walk(scope.function):
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            kind = scope.loop_index(node)
            if kind is not None:
                scope.kinds[node.target.id] = kind


def _names(target: ast.expr) -> Iterator[ast.Name]:
    return (node for node in ast.walk(target) if isinstance(node, ast.Name))


def _is_tensor(scope: Scope, parameter: ast.arg) -> bool:
    """Whether a parameter says that it is a tensor: by annotation, or as a kernel's by its use."""
    if parameter.annotation is not None:
        path = scope.module.nki(parameter.annotation) or ""
        return path.rpartition(".")[2] in _TENSOR_TYPES
    return scope.is_entry and any(
        isinstance(node, ast.Attribute)
        and node.attr in _TENSOR_ATTRIBUTES
        and isinstance(node.value, ast.Name)
        and node.value.id == parameter.arg
        for node in walk(scope.function)
    )
