"""One file's index: the meaning of names, the functions of the device, their launches."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from nki_migrate.index.launchers import LAUNCHERS, bracket_of, launcher_aliases, object_member
from nki_migrate.index.names import ImportedName, dotted, imported_names, shorten
from nki_migrate.index.source import Source
from nki_migrate.index.walking import children

# A function that calls one of these is device code, also where nothing in the file launches it.
_DEVICE_ONLY = {
    f"nl.{name}"
    for name in (
        "load", "store", "arange", "mgrid", "program_id", "par_dim", "add", "subtract", "multiply",
        "divide", "exp", "log", "sqrt", "rsqrt", "square", "tanh", "sigmoid", "maximum", "minimum",
        "sum", "max", "min", "mean", "matmul", "copy", "where", "zeros", "full", "ones", "softmax",
    )
}  # fmt: skip

_LANGUAGE = {"np", "nl", "nisa", "nki"}

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Function:
    """A function that runs on the device. `entry`: something marks or launches it as a kernel."""

    name: str
    node: FunctionNode
    entry: bool
    decorated: bool
    called_from_device: bool
    host_calls: bool  # called (or launched) by host code of this file

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of all parameters, in order."""
        a = self.node.args
        return tuple(p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs))


@dataclass(frozen=True, slots=True)
class Launch:
    """A call of a kernel from host code: `kernel[grid](arguments)` or `kernel(arguments)`.

    `bracket` is the subscript to remove when the grid moves into the kernel; None without a grid.
    """

    kernel: str
    grid: tuple[ast.expr, ...]
    bracket: ast.Subscript | None
    call: ast.Call
    arguments: tuple[ast.expr, ...]
    keywords: tuple[ast.keyword, ...]
    host: FunctionNode | None


class FileIndex:
    """Name resolution, call graph and launches of one file."""

    def __init__(self, source: Source, elsewhere: Collection[str] = ()) -> None:
        """`elsewhere`: functions that device functions of other files call."""
        self.source = source
        self.elsewhere = frozenset(elsewhere)
        self._aliases: dict[str, str | None] = {}
        self._canonical: dict[ast.AST | None, str | None] = {}
        self._parents: dict[ast.AST, ast.AST] = {}
        self._calls: list[ast.Call] = []
        self._name_nodes: list[ast.Name] = []
        self._definitions: dict[str, FunctionNode] = {}
        imports: list[ast.Import | ast.ImportFrom] = []
        keep: dict[type[ast.AST], Callable[[Any], object]] = {
            ast.Call: self._calls.append,
            ast.Name: self._name_nodes.append,
            ast.FunctionDef: self._define,
            ast.AsyncFunctionDef: self._define,
            ast.Import: imports.append,
            ast.ImportFrom: imports.append,
        }
        self.nodes: list[ast.AST] = [source.tree]  # as walk gives them
        for node in self.nodes:
            below = children(node)
            self._parents |= dict.fromkeys(below, node)
            self.nodes += below
            if type(node) in keep:
                keep[type(node)](node)
        self.imports: tuple[ImportedName, ...] = tuple(imported_names(imports, source.path))
        self._paths = {i.local: i.path for i in reversed(self.imports)}
        self._paths |= launcher_aliases(source.tree, self.path)

    def _define(self, node: FunctionNode) -> None:
        self._definitions.setdefault(node.name, node)

    # -- names

    def path(self, node: ast.AST | None) -> str | None:
        """The full dotted import path of a name or attribute chain; None if it is not imported."""
        name = dotted(node)
        if name is None:
            return None
        first, dot, rest = name.partition(".")
        base = self._paths.get(first)
        return None if base is None else base + dot + rest

    def canonical(self, node: ast.AST | None) -> str | None:
        """The short canonical name of an imported name or attribute chain ("nl.load")."""
        if node not in self._canonical:
            path = self.path(node)
            self._canonical[node] = None if path is None else shorten(path)
        return self._canonical[node]

    def parent(self, node: ast.AST) -> ast.AST | None:
        """The enclosing node."""
        return self._parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Enclosing nodes, innermost first."""
        while (up := self._parents.get(node)) is not None:
            yield up
            node = up

    def statement_of(self, node: ast.AST) -> ast.stmt | None:
        """The innermost statement that holds the node (itself if it is one)."""
        chain = (node, *self.ancestors(node))
        return next((n for n in chain if isinstance(n, ast.stmt)), None)

    @cached_property
    def changing(self) -> frozenset[str]:
        """Module names that a function declares global or an augmented assignment changes."""
        declared = {name for n in self.nodes if isinstance(n, ast.Global) for name in n.names}
        counted = {
            n.target.id
            for n in self.source.tree.body
            if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)
        }
        return frozenset(declared | counted)

    def definition(self, name: str) -> FunctionNode | None:
        """The function of that name in this file."""
        return self._definitions.get(name)

    def constant(self, name: str) -> ast.expr | None:
        """The value of a module-level name, if one plain assignment of a number determines it.

        A name that is defined by itself (`N = N + 1`, or by way of others) is unknown.
        """
        found, reached = self._plain_value(name), {name}
        queue = [] if found is None else [found]
        for value in queue:
            names = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
            if name in names:
                return None
            queue += [v for n in sorted(names - reached) if (v := self._plain_value(n))]
            reached |= names
        return found

    def _plain_value(self, name: str) -> ast.expr | None:
        found = [
            s.value
            for s in self.source.tree.body
            if isinstance(s, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == name for t in s.targets)
        ]
        return found[0] if len(found) == 1 and self._may_be_a_number(found[0]) else None

    def _may_be_a_number(self, node: ast.expr) -> bool:
        """Whether an expression has a form that numbers have: `math.sqrt(2 / math.pi)`."""
        if isinstance(node, ast.Call):
            return (self.path(node.func) or "").startswith("math.")
        return isinstance(node, ast.Constant | ast.UnaryOp | ast.BinOp | ast.Attribute | ast.Name)

    def alias_for(self, short: str) -> str | None:
        """How this file spells a module ("nl" → "nl", "language", …); None if not imported."""
        if short not in self._aliases:
            self._aliases[short] = self._find_alias(short)
        return self._aliases[short]

    def _find_alias(self, short: str) -> str | None:
        for imported in self.imports:
            if shorten(imported.path) == short:
                return imported.local
        nki = next((i.local for i in self.imports if shorten(i.path) == "nki"), None)
        member = {"nl": "language", "nisa": "isa"}.get(short)
        if nki and member and not self._mentions(f"{nki}.{member}"):
            return None
        return (
            f"{nki}.{member}"
            if nki and member and short != "nki"
            else nki
            if short == "nki"
            else None
        )

    def _mentions(self, chain: str) -> bool:
        return any(dotted(n) == chain for n in self.nodes if isinstance(n, ast.Attribute))

    # -- functions

    @cached_property
    def jit_aliases(self) -> dict[str, str]:
        """`fast = nki.jit(kernel)` → {"fast": "kernel"}; a kernel's own name maps to itself."""
        found = {name: name for name in self._entry_names()}
        for node in self.nodes:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                wrapped = self._wrapped_kernel(node.value)
                if wrapped:
                    found |= {t.id: wrapped for t in node.targets if isinstance(t, ast.Name)}
        return found

    def _wrapped_kernel(self, call: ast.Call) -> str | None:
        """The kernel of a harness call: `nki.jit(k)`, `nki.benchmark(warmup=5)(k)`, …"""
        func = call.func.func if isinstance(call.func, ast.Call) else call.func
        if self.canonical(func) not in LAUNCHERS or not call.args:
            return None
        first = call.args[0]
        if isinstance(first, ast.Subscript):
            first = first.value
        if isinstance(first, ast.Name) and first.id in self._definitions:
            return first.id
        return None

    def _entry_names(self) -> set[str]:
        decorated = {n for n, f in self._definitions.items() if self.kernel_decorators(f)}
        wrapped = {w for call in self._calls if (w := self._wrapped_kernel(call))}
        return decorated | wrapped

    def kernel_decorators(self, node: FunctionNode) -> tuple[ast.expr, ...]:
        """The decorators that make a function a kernel."""
        return tuple(
            d
            for d in node.decorator_list
            if self.canonical(d.func if isinstance(d, ast.Call) else d) in LAUNCHERS
        )

    @cached_property
    def functions(self) -> dict[str, Function]:
        """All device functions by name: kernels, what they call, helpers with device calls."""
        entries = self._entry_names()
        called = set(self.elsewhere & self._definitions.keys())
        reached, queue = set(entries), sorted(entries | called | self._self_evident())
        while queue:
            name = queue.pop(0)
            reached.add(name)
            for callee in self.callees(name):
                called.add(callee)
                if callee not in reached and callee not in queue:
                    queue.append(callee)
        host = self._called_from_host(reached)
        ordered = sorted(reached, key=lambda n: self._definitions[n].lineno)
        return {
            n: Function(
                n,
                self._definitions[n],
                entry=n in entries,
                decorated=bool(self.kernel_decorators(self._definitions[n])),
                called_from_device=n in called,
                host_calls=n in host,
            )
            for n in ordered
        }

    def _self_evident(self) -> set[str]:
        found: set[str] = set()
        for call in self._calls:
            if self._is_device_call(call):
                found |= {n for n in self._up_to_decorated(call) if n in self._definitions}
        return found | {n for name in found for n in self._siblings(self._definitions[name])}

    def _siblings(self, node: FunctionNode) -> set[str]:
        """The other methods of a class that has device code in one."""
        around = self._parents[node]
        methods = around.body if isinstance(around, ast.ClassDef) else ()
        return {
            m.name
            for m in methods
            if isinstance(m, FunctionNode) and self._definitions[m.name] is m
        }

    def _up_to_decorated(self, node: ast.AST) -> Iterator[str]:
        """The functions around; what is around a decorated one made it, and runs on the host."""
        for around in self.ancestors(node):
            if isinstance(around, FunctionNode):
                yield around.name
                if around.decorator_list:
                    return

    def _is_device_call(self, node: ast.Call) -> bool:
        name = self.canonical(node.func)
        return name is not None and (
            name in _DEVICE_ONLY or (name.startswith("nisa.") and name != "nisa.get_nc_version")
        )

    @cached_property
    def _calls_by_function(self) -> dict[str, list[ast.Call]]:
        """Calls anywhere inside each function of the file."""
        found: dict[str, list[ast.Call]] = {n: [] for n in self._definitions}
        for call in self._calls:
            for around in self.ancestors(call):
                if isinstance(around, FunctionNode) and self._definitions[around.name] is around:
                    found[around.name].append(call)
        return found

    def callees(self, name: str) -> list[str]:
        """The functions of this file that one of them calls by name, once per call."""
        function = self._definitions[name]
        return [
            node.func.id
            for node in self._calls_by_function[name]
            if isinstance(node.func, ast.Name)
            and node.func.id in self._definitions
            and self._definitions[node.func.id] is not function
        ]

    def _called_from_host(self, device: set[str]) -> set[str]:
        nodes = {self._definitions[n] for n in device}
        names = self.jit_aliases
        return {
            names.get(node.id, node.id)
            for node in self._name_nodes
            if names.get(node.id, node.id) in device
            and not any(a in nodes for a in self.ancestors(node))
        }

    def outermost_functions(self) -> list[Function]:
        """The functions that are not inside of a kernel."""
        outside = ((f, self.parent(f.node) or self.source.tree) for f in self.functions.values())
        return [f for f, around in outside if self.device_function_of(around) is None]

    def device_function_of(self, node: ast.AST) -> Function | None:
        """The innermost device function around a node; a decorator belongs to its function."""
        for n in (node, *self.ancestors(node)):
            if isinstance(n, FunctionNode):
                found = self.functions.get(n.name)
                if found is not None and found.node is n:
                    return found
        return None

    # -- launches

    @cached_property
    def launches(self) -> tuple[Launch, ...]:
        """Every launch of a kernel of this file from its host code."""
        return tuple(x for x in self._all_launches() if x.kernel in self.functions)

    @cached_property
    def foreign_launches(self) -> tuple[Launch, ...]:
        """Launches of imported kernels; `kernel` is the import path."""
        return tuple(x for x in self._all_launches() if x.kernel not in self.functions)

    def _all_launches(self) -> Iterator[Launch]:
        for call in self._calls:
            if self.device_function_of(call) is None:
                yield from self._launch_at(call)

    def _launch_at(self, call: ast.Call) -> Iterator[Launch]:
        callee, arguments = call.func, call.args
        if self.canonical(callee) in {"nki.simulate_kernel", "nki.simulate"} and arguments:
            callee, arguments = arguments[0], arguments[1:]
        bracket = bracket_of(callee, self.host_of(call))
        name = self._kernel_name(bracket.value if bracket else callee)
        if name is None or (bracket is not callee and name not in self.functions):
            return
        grid: tuple[ast.expr, ...] = ()
        if bracket is not None:
            inner = bracket.slice
            grid = tuple(inner.elts) if isinstance(inner, ast.Tuple) else (inner,)
        yield Launch(
            name, grid, bracket, call, tuple(arguments), tuple(call.keywords), self.host_of(call)
        )

    def _kernel_name(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Call):
            return self._wrapped_kernel(node)
        if isinstance(node, ast.Name) and node.id in self.jit_aliases:
            return self.jit_aliases[node.id]
        path = self.path(node) or object_member(node, self.parent(node))
        known = path is not None and shorten(path).partition(".")[0] not in _LANGUAGE
        return path if known else None

    @cached_property
    def foreign_device_calls(self) -> frozenset[str]:
        """Import paths of what the device functions of this file call: "module.function"."""
        return frozenset(
            path
            for call in self._calls
            if (path := self.path(call.func)) is not None
            and shorten(path).partition(".")[0] not in _LANGUAGE
            and self.device_function_of(call) is not None
        )

    def host_of(self, node: ast.AST) -> FunctionNode | None:
        """The innermost function around a node."""
        return next((a for a in self.ancestors(node) if isinstance(a, FunctionNode)), None)
