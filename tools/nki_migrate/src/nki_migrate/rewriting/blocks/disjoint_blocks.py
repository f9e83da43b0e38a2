"""Disjointness of the blocks that iterations of a loop use.

The blocks of a place are what its indices come to over the loops around it and, in a helper, over
the calls of that; two places are apart where the ranges of one index are.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from nki_migrate.facts.symbols import Poly
from nki_migrate.index import bound_names, children, walk

Suite = list[ast.stmt]
Step = tuple[Suite, ast.stmt]
_AROUND = ast.For | ast.If | ast.With | ast.FunctionDef


class Tree:
    """A function: where each name occurs, and the suites that each node is in."""

    def __init__(self, function: ast.FunctionDef) -> None:
        self.function = function
        self.names: dict[str, list[ast.Name]] = {}
        nodes = walk(function)
        self.arguments = [n.arg for n in nodes if isinstance(n, ast.arg)]
        self.helpers = [n.name for n in nodes if isinstance(n, ast.FunctionDef)]
        self.parents: dict[ast.AST, ast.AST] = {}
        self._suites: dict[ast.stmt, Suite] = {}
        for node in nodes:
            if isinstance(node, ast.Name):
                self.names.setdefault(node.id, []).append(node)
            for child in children(node):
                self.parents[child] = node
            for suite in _suites(node):
                self._suites |= dict.fromkeys(suite, suite)

    def bindings(self, name: str) -> int:
        """How often the name is bound."""
        stored = sum(not isinstance(n.ctx, ast.Load) for n in self.names.get(name, ()))
        return stored + self.arguments.count(name)

    def is_constant(self, name: str) -> bool:
        """Whether the name means one thing as long as the function runs."""
        if not self.bindings(name):
            return True
        if self.bindings(name) > 1 or name in self.helpers:
            return False
        own = (a.arg for a in walk(self.function.args) if isinstance(a, ast.arg))
        if name in self.arguments:
            return name in own
        bound = next(n for n in self.names[name] if not isinstance(n.ctx, ast.Load))
        path = self.path(bound)
        return len(path) == 1 and not isinstance(path[0][1], ast.For | ast.While)

    def path(self, node: ast.AST) -> list[Step]:
        """The suites around a node, outermost first, each with its statement on the way."""
        steps: list[Step] = []
        at: ast.AST | None = node
        while at is not None and at is not self.function:
            if isinstance(at, ast.stmt):
                steps.insert(0, (self._suites[at], at))
            at = self.parents.get(at)
        return steps


@lru_cache(maxsize=1)
def tree_of(function: ast.FunctionDef) -> Tree:
    return Tree(function)


def _suites(node: ast.AST) -> list[Suite]:
    found = (getattr(node, name, None) for name in ("body", "orelse", "finalbody"))
    return [s for s in found if isinstance(s, list)]


def stored(node: ast.AST) -> list[str]:
    return [n.id for n in bound_names(walk(node))]


def between(home: list[Step], path: list[Step]) -> tuple[ast.stmt, ...] | None:
    """The statements around the last suite of the path, from the suite of the allocation on.

    None where the allocation is not seen, or may be seen by what is not understood.
    """
    depth = len(home)
    if len(path) < depth or path[depth - 1][0] is not home[-1][0]:
        return None
    around = tuple(s for _, s in path[depth - 1 : -1])
    return around if all(isinstance(s, _AROUND) for s in around) else None


_RANGES = {"range", "affine_range", "sequential_range", "static_range"}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a block tensor is used: which block, and what is around since its allocation."""

    block: tuple[ast.expr, ...]
    around: tuple[ast.stmt, ...]


# The blocks of a region's runs under one chain of loops: per dimension first and last.
_Runs = tuple[tuple[Poly, Poly], ...]


def are_disjoint(tree: Tree, statement: ast.Assign, places: Sequence[Place]) -> bool:
    """Whether no block is worked on by two runs of regions."""
    found: list[_Runs] = []
    for place in places:
        runs = _runs(tree, statement, place)
        if runs is None:
            return False
        found += runs
    return all(_do_not_overlap(a, b) for a, b in combinations(found, 2))


def _do_not_overlap(a: _Runs, b: _Runs) -> bool:
    return any(
        _is_negative(a_last - b_first) or _is_negative(b_last - a_first)
        for (a_first, a_last), (b_first, b_last) in zip(a, b, strict=True)
    )


def _is_negative(poly: Poly) -> bool:
    return poly.constant is not None and poly.constant < 0


def _runs(tree: Tree, statement: ast.Assign, place: Place) -> list[_Runs] | None:
    """One entry per chain of loops that leads to the region; None if two runs may share a block."""
    found = []
    for here in _environments(tree, statement, place):
        runs = None if here is None else _in_chain(here, place)
        if runs is None:
            return None
        found.append(runs)
    return found


def _environments(tree: Tree, statement: ast.Assign, place: Place) -> Sequence[_Environment | None]:
    """Meanings of names at the place, per chain of loops; None where that is not understood."""
    once = _Environment.of(tree)
    at = next((k for k, s in enumerate(place.around) if isinstance(s, ast.FunctionDef)), None)
    if at is None:
        return [once.entered(place.around)]
    helper, inner = place.around[at], place.around[at + 1 :]
    assert isinstance(helper, ast.FunctionDef)
    calls = _calls(tree, statement, helper)
    if calls is None or any(isinstance(s, ast.FunctionDef) for s in inner):
        return [None]
    found = []
    for call, around in calls:
        entered = once.entered(around)
        passed = entered and entered.passed(helper, call)
        found.append(passed and passed.entered(inner))
    return found


def _calls(
    tree: Tree, statement: ast.Assign, helper: ast.FunctionDef
) -> list[tuple[ast.Call, tuple[ast.stmt, ...]]] | None:
    """The statements `helper(…)`, each with what is around it; None if it is used otherwise."""
    home = tree.path(statement)
    if tree.helpers.count(helper.name) != 1 or tree.bindings(helper.name):
        return None
    found = []
    for name in tree.names.get(helper.name, ()):
        call = tree.parents[name]
        if not isinstance(call, ast.Call) or not isinstance(tree.parents[call], ast.Expr):
            return None
        around = between(home, tree.path(call))
        if around is None or any(isinstance(s, ast.FunctionDef) for s in around):
            return None
        found.append((call, around))
    return found


_OPERATIONS: dict[type[ast.operator], Callable[[Poly, Poly], Poly]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


@dataclass(frozen=True, slots=True)
class _Environment:
    """Meanings of names at a place, and the bounds of its loops."""

    constant: frozenset[str]
    values: Mapping[str, Poly]
    ranges: Mapping[str, tuple[Poly, Poly]]

    @staticmethod
    def of(tree: Tree) -> _Environment:
        return _Environment(frozenset(n for n in tree.names if tree.is_constant(n)), {}, {})

    def number(self, node: ast.expr) -> Poly | None:
        """An expression of numbers and names that mean one thing in the whole function."""
        match node:
            case ast.Constant(value=int(value)):
                return Poly.number(value)
            case ast.Name(id=name):
                known = self.values.get(name)
                return known or (Poly.atom(name) if name in self.constant else None)
            case ast.BinOp(left=left, op=op, right=right):
                a, b = self.number(left), self.number(right)
                combine = _OPERATIONS.get(type(op))
                return None if a is None or b is None or combine is None else combine(a, b)
        return None

    def entered(self, around: Sequence[ast.stmt]) -> _Environment | None:
        """Inside these statements; None where a loop is not understood."""
        here = self
        for statement in around:
            if isinstance(statement, ast.For):
                inside = here._in_loop(statement)
                if inside is None:
                    return None
                here = inside
        return here

    def _in_loop(self, loop: ast.For) -> _Environment | None:
        bounds = _range_bounds(loop)
        if bounds is None or not isinstance(loop.target, ast.Name):
            return None
        name = loop.target.id
        start, stop = map(self.number, bounds)
        if start is None or name in (n for s in loop.body for n in stored(s)):
            return None
        atom = f"{name} of line {loop.lineno}:{loop.col_offset}"
        stop = stop if stop is not None else Poly.atom(f"end of {atom}")
        ranges = {**self.ranges, atom: (start, stop - Poly.number(1))}
        return _Environment(self.constant, {**self.values, name: Poly.atom(atom)}, ranges)

    def passed(self, helper: ast.FunctionDef, call: ast.Call) -> _Environment | None:
        """Inside a function that is called with these arguments."""
        names = [a.arg for a in helper.args.args]
        given = dict(zip(names, call.args, strict=False))
        given |= {k.arg: k.value for k in call.keywords if k.arg}
        bound = {n for s in helper.body for n in stored(s)}
        if bound & set(names) or len(given) != len(names) or len(call.args) > len(names):
            return None
        own = bound | set(names)
        known = {n: v for n, v in self.values.items() if n not in own}
        known |= {n: v for n, a in given.items() if (v := self.number(a)) is not None}
        return _Environment(self.constant - own, known, self.ranges)


def _in_chain(here: _Environment, place: Place) -> _Runs | None:
    """The blocks of the runs inside these loops; None if two runs may be of one block."""
    indices = [n for i in place.block if (n := here.number(i)) is not None]
    if len(indices) < len(place.block):
        return None
    counted = set(here.ranges)
    decided = {next(iter(n.atoms() & counted)) for n in indices if len(n.atoms() & counted) == 1}
    if counted - decided or not all(_is_linear(n, counted) for n in indices):
        return None
    ends = [_ends(number, here.ranges) for number in indices]
    if any((low.atoms() | high.atoms()) & counted for low, high in ends):
        return None  # a range that another loop decides
    return tuple(ends)


def _ends(number: Poly, ranges: Mapping[str, tuple[Poly, Poly]]) -> tuple[Poly, Poly]:
    """A linear expression where all loops are at their start, and where all are at their end."""
    low = high = number
    for atom in number.atoms() & ranges.keys():
        start, end = ranges[atom]
        low, high = low.substitute(atom, start), high.substitute(atom, end)
    return low, high


def _range_bounds(loop: ast.For) -> tuple[ast.expr, ast.expr] | None:
    """Start and stop of a `for` over one of the ranges, without a step."""
    match loop.iter:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[*start, stop]) if (
            name in _RANGES and len(start) <= 1
        ):
            return start[0] if start else ast.Constant(0), stop
    return None


def _is_linear(number: Poly, counted: set[str]) -> bool:
    """Whether it grows with every loop variable in it, by a literal step."""
    return all(len(m) == 1 and c > 0 for m, c in number.terms if any(atom in counted for atom in m))
