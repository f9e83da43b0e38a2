"""SPMD grids: every axis of a launch becomes a loop in the kernel (trap T7).

0.1 ran a kernel once per point of the launch grid; from 0.2 on the bracket is a number of
cores. The extents come from the launches in view, rewritten in the kernel's parameters: a host
variable is replaced by its definition, an argument by the parameter it is passed as.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nki_migrate.facts.symbols import Poly
from nki_migrate.facts.values import ATOM, Sym
from nki_migrate.index import FileIndex, Function, Launch, bound_names, walk
from nki_migrate.index.grids import is_grid_call, uses_grid
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.plan.changes import Loops

Launches = tuple[tuple[FileIndex, Launch], ...]  # each with the file it is in


@dataclass(frozen=True, slots=True)
class GridPlan:
    """Extents of the grid axes in kernel words, the loops to put in, and the launches to change."""

    extents: tuple[str, ...]
    loops: Loops
    variables: tuple[str, ...]
    launches: tuple[Launch, ...]


def plan_grid(index: FileIndex, function: Function, launches: Launches) -> GridPlan | None:
    """The plan for one kernel; None if its grid stays (no launch with a grid, or one core axis).

    The kernel's own file decides; launches of other files only if it has none. Raises Cannot if
    the deciding launches do not determine the loops.
    """
    if not uses_grid(index, function):
        return None
    own = [x for x in launches if x[0].source.path == index.source.path]
    deciding = own if _with_grid(own) else launches
    gridded = _with_grid(deciding)
    if all(is_core_count(x) for _, x in gridded):
        return None
    found = {_extents(where, function, x) for where, x in gridded}
    if len(found) > 1 or len(gridded) < len(deciding):
        call = gridded[0][1].call if gridded[0][0] is index else function.node
        raise Cannot(Reason.LAUNCH_GRID, "the launches in view differ in their grids", call)
    extents = found.pop()
    agreeing = tuple(x for w, x in _with_grid(launches) if _says(w, function, x) == extents)
    return _planned(index, function, extents, agreeing)


def plan_of(
    index: FileIndex, function: Function, extents: tuple[str, ...], launches: Launches
) -> GridPlan:
    """Loops of these extents, for every launch in view."""
    return _planned(index, function, extents, tuple(x for _, x in _with_grid(launches)))


def _planned(
    index: FileIndex, function: Function, extents: tuple[str, ...], launches: tuple[Launch, ...]
) -> GridPlan:
    variables = _loop_names(index, function, len(extents))
    return GridPlan(extents, _loops(index, function, extents, variables), variables, launches)


def _with_grid(launches: Iterable[tuple[FileIndex, Launch]]) -> list[tuple[FileIndex, Launch]]:
    return [(where, x) for where, x in launches if x.grid]


def _says(index: FileIndex, function: Function, launch: Launch) -> tuple[str, ...] | None:
    try:
        return _extents(index, function, launch)
    except Cannot:
        return None


def is_core_count(launch: Launch) -> bool:
    """`k[2]`: one axis of one or two cores may stay."""
    only = launch.grid[0] if len(launch.grid) == 1 else None
    return isinstance(only, ast.Constant) and only.value in {1, 2}


def _extents(index: FileIndex, function: Function, launch: Launch) -> tuple[str, ...]:
    arguments = _bound_arguments(index, function, launch)
    rewriter = _InKernelWords(index, launch, arguments)
    return tuple(ast.unparse(_counts(rewriter, axis, launch)) for axis in rewriter.axes())


def _counts(rewriter: _InKernelWords, axis: ast.expr, launch: Launch) -> ast.expr:
    """An extent in kernel words. Raises Cannot for anything but a number of programs."""
    extent = rewriter.of(axis)
    if isinstance(extent, ast.Tuple | ast.List):
        raise rewriter.foreign(axis)
    negative = isinstance(extent, ast.UnaryOp) and isinstance(extent.op, ast.USub)
    number = extent.value if isinstance(extent, ast.Constant) else 1
    if negative or not isinstance(number, int) or number < 1:
        raise Cannot(
            Reason.LAUNCH_GRID,
            f"a grid of `{ast.unparse(extent)}` programs, which 0.1 rejects",
            launch.call,
        )
    return extent


def _bound_arguments(index: FileIndex, function: Function, launch: Launch) -> dict[str, str]:
    """Source text of an argument → the parameter it is passed as."""
    if any(isinstance(a, ast.Starred) for a in launch.arguments):
        raise Cannot(Reason.LAUNCH_GRID, "a launch with `*` arguments", launch.call)
    bound = {ast.unparse(a): p for a, p in zip(launch.arguments, function.parameters, strict=False)}
    return bound | {ast.unparse(k.value): k.arg for k in launch.keywords if k.arg}


class _InKernelWords(ast.NodeTransformer):
    """Rewrites a host expression in the kernel's parameters."""

    def __init__(self, index: FileIndex, launch: Launch, arguments: dict[str, str]) -> None:
        self.index, self.launch, self.arguments = index, launch, arguments
        self.since = (launch.bracket or launch.call).lineno
        """The line of the definition that is being written: it reads names as they are there."""
        self.names: tuple[str, ...] = ()
        """Those whose definitions are being written."""

    def axes(self) -> tuple[ast.expr, ...]:
        """The extents of the launch in host words; a tuple that has a name is taken apart."""
        grid = self.launch.grid
        if len(grid) == 1 and isinstance(grid[0], ast.Name):
            found = self._definition(grid[0].id)
            if found is not None and isinstance(found[0], ast.Tuple):
                self.since = min(self.since, found[1])
                return tuple(found[0].elts)
        return tuple(grid)

    def of(self, node: ast.expr) -> ast.expr:
        copied = ast.parse(ast.unparse(node), mode="eval").body
        return self._expression(copied)

    def _expression(self, node: ast.expr) -> ast.expr:
        visited = self.visit(node)
        assert isinstance(visited, ast.expr)
        return visited

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.expr):
            parameter = self.arguments.get(ast.unparse(node))
            if parameter is not None:
                self._reject_changed(node)
                return ast.Name(parameter, ast.Load())
        return super().visit(node)

    def _reject_changed(self, node: ast.expr) -> None:
        """Raise Cannot where a name has another value at the launch than in the definition."""
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        launched = self.launch.call.lineno
        for made in _own_nodes(self._host):
            if not isinstance(made, ast.Name) or not isinstance(made.ctx, ast.Store):
                continue
            if made.id in names and self.since <= made.lineno < launched:
                raise self.foreign(node)

    @property
    def _host(self) -> ast.AST:
        return self.launch.host if self.launch.host is not None else self.index.source.tree

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = self.index.canonical(node.func)
        if name == "nl.spmd_dim" and len(node.args) == 2:
            one, other = map(self._expression, node.args)
            return ast.BinOp(one, ast.Mult(), other)
        if name == "nl.nc" and len(node.args) == 1:
            return self._expression(node.args[0])
        own = node.func.id if isinstance(node.func, ast.Name) else None
        if own in {"min", "max", "len", "int"} or name == "math.ceil":
            node.args = [self._expression(a) for a in node.args]
            return node
        raise self.foreign(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        definition = self._definition(node.id)
        if definition is None or node.id in self.names:
            raise self.foreign(node)
        value, line = definition
        outer = self.since, self.arguments, self.names
        self.names += (node.id,)
        if self.launch.host is not None and not _is_made_in(self.launch.host, node.id):
            self.arguments = self._seen_by_the_module()
        elif line >= self.since:  # made after it is read, or of itself
            raise self.foreign(node)
        self.since = min(self.since, line)
        written = self.of(value)
        self.since, self.arguments, self.names = outer
        return written

    def _seen_by_the_module(self) -> dict[str, str]:
        """Arguments without names of the launching function, which a module does not know."""
        host = self._host
        return {
            text: parameter for text, parameter in self.arguments.items()
            if not any(isinstance(n, ast.Name) and _is_made_in(host, n.id)
                       for n in ast.walk(ast.parse(text, mode="eval")))
        }  # fmt: skip

    def foreign(self, node: ast.AST) -> Cannot:
        return Cannot(
            Reason.LAUNCH_GRID,
            f"the grid `{ast.unparse(node)}` of the launch in line {self.launch.call.lineno}"
            " cannot be written in the kernel's parameters",
            self.launch.call,
        )

    def _definition(self, name: str) -> tuple[ast.expr, int] | None:
        """The only assignment of a host variable, in the launching function or at module level,
        and its line; None where something else makes it, too.
        """
        host = self.launch.host
        if host is not None and _is_made_in(host, name):
            return _only_assignment(host, name)
        return _only_assignment(self.index.source.tree, name)


def _is_made_in(host: ast.AST, name: str) -> bool:
    """Whether a function has a parameter or a variable of this name."""
    return any(
        (isinstance(node, ast.arg) and node.arg == name)
        or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name)
        for node in walk(host)
    )


def _only_assignment(scope: ast.AST, name: str) -> tuple[ast.expr, int] | None:
    """The value assigned to the name, if no other binding in the scope makes it; its line."""
    nodes = list(_own_nodes(scope))
    if sum(n.id == name for n in bound_names(nodes)) != 1:
        return None
    if any(isinstance(n, ast.arg) and n.arg == name for n in nodes):
        return None
    for node in nodes:
        for target in node.targets if isinstance(node, ast.Assign) else ():
            value = _assigned(target, node.value, name)  # type: ignore[attr-defined]
            if value is not None:
                return value, node.lineno  # type: ignore[attr-defined]
    return None


def _assigned(target: ast.expr, value: ast.expr, name: str) -> ast.expr | None:
    """The value that the name gets; `a, b = x.shape` defines a as `x.shape[0]`."""
    if isinstance(target, ast.Name):
        return value if target.id == name else None
    for position, element in enumerate(target.elts if isinstance(target, ast.Tuple) else ()):
        if isinstance(element, ast.Name) and element.id == name:
            if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):  # type: ignore[attr-defined]
                return value.elts[position]
            return ast.Subscript(value, ast.Constant(position), ast.Load())
    return None


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, or of a module outside of its functions and classes."""
    if not isinstance(scope, ast.Module):
        yield from walk(scope)
        return
    for statement in scope.body:
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from walk(statement)


# -- the loops


def _loop_names(index: FileIndex, function: Function, count: int) -> tuple[str, ...]:
    """`i = nl.program_id(0)` names its loop; other axes get program_<axis>."""
    named: dict[int, str] = {}
    for target, value in _single_assignments(function.node):
        match target, value:
            case ast.Name(id=name), ast.Call(func=called, args=[ast.Constant(value=int(axis)), *_]):
                if index.canonical(called) == "nl.program_id":
                    named.setdefault(axis, name)
    taken = {n.id for n in walk(function.node) if isinstance(n, ast.Name)}
    names = []
    for axis in range(count):
        name = named.get(axis, f"program_{axis}")
        while name in taken and axis not in named:
            name += "_"
        names.append(name)
    return tuple(names)


def _single_assignments(function: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Targets with their values; `i, j = a, b` is two."""
    for node in walk(function):
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                yield from zip(targets, values, strict=False)
            case ast.Assign(targets=[target, *_], value=value):
                yield target, value


def _loops(
    index: FileIndex, function: Function, extents: tuple[str, ...], variables: tuple[str, ...]
) -> Loops:
    """From the first statement that depends on the program id to the one before the return."""
    body = function.node.body
    dependent = _dependent(index, body)
    if not dependent:
        raise Cannot(
            Reason.LAUNCH_GRID, "the program id is only used inside nested code", function.node
        )
    last = len(body) - 1
    if isinstance(body[last], ast.Return):
        last -= 1
    if any(isinstance(n, ast.Return) for s in body[: last + 1] for n in walk(s)):
        raise Cannot(
            Reason.LAUNCH_GRID, "a kernel with an early return cannot become a loop", function.node
        )
    first = min(dependent)
    hoisted = {
        i for i in range(first, last + 1) if i not in dependent and _creates_output(index, body[i])
    }
    headers = tuple(f"for {v} in range({e}):" for v, e in zip(variables, extents, strict=True))
    return Loops(function.node, first, last, headers, frozenset(hoisted))


def _dependent(index: FileIndex, body: list[ast.stmt]) -> set[int]:
    """Statements that mention the program id or a name derived from it."""
    names: set[str] = set()
    found: set[int] = set()
    for i, statement in enumerate(body):
        nodes = list(walk(statement))
        reads = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        if reads & names or any(is_grid_call(index, n) for n in nodes):
            found.add(i)
            names |= {
                n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
            }
    return found


def _creates_output(index: FileIndex, statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Assign) else None
    return isinstance(value, ast.Call) and any(
        index.canonical(k.value) in {"nl.shared_hbm", "nl.hbm"}
        for k in value.keywords
        if k.arg == "buffer"
    )


def bind_grid(ctx: Context, plan: GridPlan) -> None:
    """Make the loop variables and extents known to the rewriting."""
    for axis, (name, extent) in enumerate(zip(plan.variables, plan.extents, strict=True)):
        atom = ctx.atom(name)
        size = Poly.atom(f"grid {axis}")
        ctx.facts.positive.add(f"grid {axis}")
        ctx.facts.ranges[atom] = (Poly.number(0), size - Poly.number(1))
        ctx.program_ids[axis] = Sym(Poly.atom(atom), name)
        ctx.program_counts[axis] = Sym(size, extent, _level(extent))


def _level(extent: str) -> int:
    """How tightly the text of an extent binds; what is not one name or call, not at all."""
    node = ast.parse(extent, mode="eval").body
    return ATOM if isinstance(node, ast.Name | ast.Constant | ast.Subscript | ast.Call) else 0
