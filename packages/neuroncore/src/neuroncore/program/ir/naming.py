"""Names from the kernel's source: the variable that a statement assigns, its loops."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import lru_cache

from neuroncore.integers.affine import Affine
from neuroncore.machine.kernels import python_name
from neuroncore.program.ir.nodes import Access, Allocate, Buffer, Call, Loop, Statement
from neuroncore.program.ir.program import Program
from neuroncore.program.ir.traversal import map_accesses, walk
from neuroncore.source_location import Place

RESERVED = frozenset({"nki", "nl", "nisa", "range", "buffer", "program", "float", "slice"})
"""Names that the text or emitted source needs for itself."""

_LOOP_NAMES = "ijklmnpqrs"


@dataclass(frozen=True, slots=True)
class _For:
    """A `for` statement of the source: its variable, its lines, where it stands."""

    variable: str
    first: int
    last: int
    function: int


@dataclass(frozen=True, slots=True)
class _Value:
    """An expression of the source that gets a name: where it begins and ends."""

    name: str
    start: tuple[int, int]
    end: tuple[int, int]


def _statements(path: str) -> tuple[dict[int, list[_Value]], tuple[_For, ...]]:
    """Line → values that get a name there; every `for` of the file."""
    return _read("".join(linecache.getlines(path)))


@lru_cache(maxsize=64)
def _read(source: str) -> tuple[dict[int, list[_Value]], tuple[_For, ...]]:
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return {}, ()
    assigned: dict[int, list[_Value]] = {}
    loops: list[_For] = []
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            around = [f.lineno for f in functions if _within(node.lineno, f)]
            loops.append(
                _For(node.target.id, node.lineno, node.end_lineno or 0, max(around or [0]))
            )
        for value in _named_values(node):
            for line in range(value.start[0], value.end[0] + 1):
                assigned.setdefault(line, []).append(value)
    return assigned, tuple(loops)


def _named_values(node: ast.AST) -> Iterator[_Value]:
    """The values that a statement assigns or appends, each with its name."""
    match node:
        case ast.Assign([target, *_], value) | ast.AugAssign(target, _, value):
            yield from _pairs(target, value, node)
        case ast.AnnAssign(target, _, ast.expr() as value):
            yield from _pairs(target, value, node)
        case ast.NamedExpr(ast.Name(name), value):
            yield _value(name, node)
        case ast.Expr(ast.Call(function)):
            name = _appended(function)
            if name:
                yield _value(name, node)


def _pairs(target: ast.expr, value: ast.expr, node: ast.expr | ast.stmt) -> Iterator[_Value]:
    """Of a, b = x, y each value with its own target."""
    match target, value:
        case ast.Tuple(names), ast.Tuple(values) if len(names) == len(values):
            for name, part in zip(names, values, strict=True):
                yield from _pairs(name, part, part)
        case _:
            name = _target(target)
            if name:
                yield _value(name, node)


def _value(name: str, node: ast.expr | ast.stmt) -> _Value:
    start, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
    return _Value(name, start, (end[0] or start[0], end[1] or start[1]))


def _within(line: int, node: ast.stmt) -> bool:
    return node.lineno <= line <= (node.end_lineno or 0)


def _appended(function: ast.expr) -> str | None:
    """The list in names.append(…)."""
    match function:
        case ast.Attribute(value, "append"):
            return _target(value)
    return None


def _target(node: ast.expr) -> str | None:
    """The variable behind `x`, `x[i]` or `self.x`."""
    match node:
        case ast.Name(name) | ast.Attribute(_, name):
            return name
        case ast.Subscript(value, _):
            return _target(value)
    return None


def assigned_name(place: Place | None) -> str | None:
    """The variable that gets or collects the value of the expression at `place`; None without one.

    Of several on a line, the innermost one whose value contains the place.
    """
    if place is None:
        return None
    values = _statements(place.file)[0].get(place.line, [])
    at = place.line, place.column
    around = [v for v in values if v.start <= at < v.end]
    innermost = max(around, key=lambda v: v.start, default=None)
    if innermost is not None:
        return innermost.name
    return values[0].name if len(values) == 1 else None


def _source_loops(places: Iterable[Place]) -> Iterator[tuple[str, Place]]:
    """Variables and lines of the `for` statements around all of the places of one function, inner
    first."""
    by_file: dict[str, list[int]] = {}
    for place in places:
        by_file.setdefault(place.file, []).append(place.line)
    for path, lines in by_file.items():
        loops = _statements(path)[1]
        around = [f for f in loops if any(f.first < line <= f.last for line in lines)]
        for function in dict.fromkeys(f.function for f in around):
            mine = [f for f in around if f.function == function]
            inside = [n for n in lines if any(f.first < n <= f.last for f in mine)]
            common = [f for f in mine if all(f.first < n <= f.last for n in inside)]
            for loop in sorted(common, key=lambda f: -f.first):
                yield loop.variable, Place(path, loop.first)


def named_like_source(program: Program, hints: Mapping[str, str]) -> Program:
    """The program with buffers named by `hints` and loops by their source, all names unique."""
    taken = {b.name for b in program.parameters} | RESERVED
    names: dict[str, str] = {}
    numbers: dict[str, int] = {}
    for statement in walk(program.body):
        if isinstance(statement, Allocate):
            old = statement.buffer.name
            names[old] = unused(hints.get(old, old), taken, numbers=numbers)
            taken.add(names[old])
    body = tuple(_rename(s, names, {}, taken) for s in program.body)
    results = tuple(names.get(r, r) for r in program.results)
    return replace(program, body=body, results=results)


def unused(
    wanted: str, taken: Set[str], otherwise: str = "tile", numbers: dict[str, int] | None = None
) -> str:
    """`wanted`, or `otherwise` where Python has no such name; with the first number that makes it
    new.

    `numbers`: up to which number each name is taken, for many calls while `taken` grows.
    """
    base = python_name(wanted, otherwise)
    number = 1 if numbers is None else numbers.get(base, 1)
    name = base if number == 1 else f"{base}_{number}"
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    if numbers is not None:
        numbers[base] = number
    return name


def _rename(
    statement: Statement, names: Mapping[str, str], loops: Mapping[str, str], taken: set[str]
) -> Statement:
    match statement:
        case Allocate(buffer):
            if names[buffer.name] == buffer.name:
                return statement
            return replace(statement, buffer=replace(buffer, name=names[buffer.name]))
        case Loop(_, start, stop, _, step):
            variable, origin = _variable(statement, loops, taken)
            inner = {**loops, statement.variable: variable}
            body = tuple([_rename(s, names, inner, taken) for s in statement.body])
            return Loop(variable, start, stop, body, step, origin)

    def access(old: Access) -> Access:
        name, offset = names.get(old.buffer, old.buffer), old.offset
        if offset.terms:  # variables of loops around a place differ, old ones and new ones
            new = sorted(
                [(loops.get(variable, variable), factor) for variable, factor in offset.terms]
            )
            offset = Affine(offset.constant, tuple(new))
        elif name == old.buffer:
            return old
        return Access(name, offset, old.shape, old.strides, old.dtype, old.indirect)

    return map_accesses(statement, access)


def _variable(loop: Loop, outer: Mapping[str, str], taken: set[str]) -> tuple[str, Place | None]:
    """The variable and the line of a loop, from its source where that has a loop for it."""
    used = {*outer.values(), *taken}
    if loop.variable.isidentifier() and loop.variable not in used:
        return loop.variable, loop.origin
    places = [s.origin for s in walk(loop.body) if isinstance(s, Call) and s.origin]
    around = list(_source_loops(places))
    inner = _perfect_depth(loop)  # so many loops inside will take the innermost variables
    sourced = [(v, at) for v, at in (*around[inner:], *around[:inner]) if v not in used]
    if sourced:
        return sourced[0]
    return next((v for v in _LOOP_NAMES if v not in used), None) or unused("i", used), loop.origin


def _perfect_depth(loop: Loop) -> int:
    """How many loops follow one another inside without a call between them."""
    match [s for s in loop.body if not isinstance(s, Allocate)]:
        case [Loop() as inner]:
            return 1 + _perfect_depth(inner)
    return 0


def without_clashes(program: Program, needed: Set[str]) -> Program:
    """The program with an underscore behind its names that are in `needed`.

    A loop variable gets one too where a buffer has its name: Python has one scope for both.
    """
    buffers = program.buffers()
    variables = dict.fromkeys(s.variable for s in walk(program.body) if isinstance(s, Loop))
    taken = {*buffers, *variables, *needed}
    names = {n: underscored(n, taken) for n in buffers if n in needed}
    loops = {n: underscored(n, taken) for n in variables if n in needed or n in buffers}
    name = underscored(program.name, taken) if program.name in needed else program.name
    named = replace(program, name=name)
    return _renamed(named, names, loops) if names or loops else named


def _renamed(program: Program, names: Mapping[str, str], loops: Mapping[str, str]) -> Program:
    """The program with other names for buffers and loops."""
    body = tuple(_replaced(s, names, loops) for s in program.body)
    parameters = tuple(_named(b, names) for b in program.parameters)
    results = tuple(names.get(r, r) for r in program.results)
    return replace(program, parameters=parameters, body=body, results=results)


def with_canonical_names(program: Program) -> Program:
    """One program for all that differ in names and places of the source alone: the kernel is
    `kernel`, buffers are `b0`, … in their order, loops `i0`, … by their depth.
    """
    names = {name: f"b{number}" for number, name in enumerate(program.buffers())}
    return replace(
        program,
        name="kernel",
        parameters=tuple(_named(b, names) for b in program.parameters),
        body=tuple(_numbered(s, names, {}) for s in program.body),
        results=tuple(names[r] for r in program.results),
    )


def _numbered(
    statement: Statement, names: Mapping[str, str], loops: Mapping[str, str]
) -> Statement:
    plain = replace(statement, origin=None)
    if not isinstance(plain, Loop):
        return _replaced(plain, names, loops)
    variable = f"i{len(loops)}"
    inner = {**loops, plain.variable: variable}
    body = tuple(_numbered(s, names, inner) for s in plain.body)
    return replace(plain, variable=variable, body=body)


def names_of(program: Program) -> set[str]:
    """Every name that a kernel of the program has: its own, buffers, loop variables."""
    variables = (s.variable for s in walk(program.body) if isinstance(s, Loop))
    return {program.name, *program.buffers(), *variables}


def underscored(name: str, taken: set[str]) -> str:
    """`name` with as many underscores behind it as make it new; it is taken from then on."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _named(buffer: Buffer, names: Mapping[str, str]) -> Buffer:
    return replace(buffer, name=names.get(buffer.name, buffer.name))


def _replaced(
    statement: Statement, names: Mapping[str, str], loops: Mapping[str, str]
) -> Statement:
    match statement:
        case Allocate(buffer):
            return replace(statement, buffer=_named(buffer, names))
        case Loop(variable):
            body = tuple(_replaced(s, names, loops) for s in statement.body)
            return replace(statement, variable=loops.get(variable, variable), body=body)
    new = {old: Affine.variable(name) for old, name in loops.items()}

    def access(old: Access) -> Access:
        name = names.get(old.buffer, old.buffer)
        return replace(old, buffer=name, offset=old.offset.substitute(new))

    return map_accesses(statement, access)
