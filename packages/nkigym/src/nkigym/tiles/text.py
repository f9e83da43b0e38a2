"""Tile programs as text: Python's syntax, so that every editor colours it and `ast` reads it.

    def f(A: float32[128, 128], B: float32[128, 256]):
        output = allocate(128, 256)
        t0 = A[0:128, 0:128]
        t1 = B[0:128, 0:256]
        t2 = nc_matmul(stationary=t0, moving=t1)
        output[0:128, 0:256] = t2
        return output

A variable without a subscript is all of it; `repeat(A[0:128, 0:128], copies=2)` loads a part so
many times, side by side. `parse_tiles(print_tiles(p)) == p` for every program.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from neuroncore.errors import Place, ProgramTextError
from neuroncore.python_source import parse_python
from nki_dtypes import resolve
from nkigym.tiles.operators import ONE, OPERATORS, Operator
from nkigym.tiles.program import (
    ALLOCATE,
    REPEAT,
    STORE,
    Attribute,
    Interval,
    Reference,
    Shape,
    Statement,
    TileProgram,
    copies_of,
    load,
    part_of,
    part_of_tile,
    tile,
)

INDENT = "    "


def print_tiles(program: TileProgram) -> str:
    """The program's text."""
    head = ", ".join(
        f"{name}: {program.dtype}[{', '.join(map(str, shape))}]"
        for name, shape in program.parameters
    )
    shapes = {s.output.name: s.output.shape for s in program.statements if s.operator != STORE}
    lines = [f"{INDENT}{_statement(s, shapes)}" for s in program.statements]
    last = f"{INDENT}return {', '.join(program.returns)}"
    return "\n".join([f"def {program.name}({head}):", *lines, last, ""])


def _statement(statement: Statement, shapes: Mapping[str, Shape]) -> str:
    match statement.operator:
        case "allocate":
            extents = ", ".join(map(str, statement.output.shape))
            return f"{statement.output.name} = {ALLOCATE}({extents})"
        case "load":
            part, copies = _part(statement.references[0]), copies_of(statement)
            loaded = f"{REPEAT}({part}, copies={copies})" if copies > 1 else part
            return f"{statement.output.name} = {loaded}"
        case "store":
            read, written = statement.references
            return f"{_part(written)} = {_tile(read, shapes)}"
    given = ", ".join(
        f"{name}={_tile(value, shapes) if isinstance(value, Reference) else repr(value)}"
        for name, value in statement.arguments
    )
    return f"{statement.output.name} = {statement.operator}({given})"


def _tile(reference: Reference, shapes: Mapping[str, Shape]) -> str:
    whole = tuple((0, extent) for extent in shapes.get(reference.name, ()))
    return reference.name if reference.intervals == whole else _part(reference)


def _part(reference: Reference) -> str:
    return f"{reference.name}[{', '.join(f'{a}:{b}' for a, b in reference.intervals)}]"


# -- reading ---------------------------------------------------------------------------------------


_HEADER = "def f(A: float32[128, 128], B: float32[128, 512]):"


def parse_tiles(text: str, path: str | None = None) -> TileProgram:
    """The program that `text` writes, of a file. Raises ProgramTextError with line, column and a
    caret.
    """
    path = path or f"<tiles {sha256(text.encode(errors='replace')).hexdigest()[:8]}>"
    linecache.cache[path] = len(text), None, text.splitlines(keepends=True), path
    try:
        tree = parse_python(text, path)
    except SyntaxError as wrong:
        place = Place(path, wrong.lineno or 1, max(0, (wrong.offset or 1) - 1))
        raise ProgramTextError(f"not a tile program: {wrong.msg}", place=place) from None
    return _Reader(path).program(tree)


@dataclass(slots=True)
class _Reader:
    path: str
    parameters: dict[str, Shape] = field(default_factory=dict)
    tiles: dict[str, Shape] = field(default_factory=dict)
    outputs: dict[str, Shape] = field(default_factory=dict)

    def wrong(self, node: ast.AST, what: str, expected: str | None = None) -> ProgramTextError:
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        end = getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None)
        return ProgramTextError(what, expected=expected, place=Place(self.path, line, column, *end))

    def program(self, tree: ast.Module) -> TileProgram:
        match tree.body:
            case [ast.FunctionDef(name, args) as made] if not made.decorator_list:
                dtype = self.head(made, args)
            case _:
                raise self.wrong(tree.body[0] if tree.body else tree, "not a program", _HEADER)
        *statements, last = made.body
        read = tuple(self.statement(node) for node in statements)
        returns = _returned(last)
        if returns and returns == tuple(self.outputs):
            return TileProgram(name, tuple(self.parameters.items()), read, dtype, returns)
        every = ", ".join(self.outputs)
        expected = f"return {every}" if self.outputs else "output = allocate(…)"
        raise self.wrong(last, "a program ends with the return of what it allocated", expected)

    def head(self, made: ast.FunctionDef, given: ast.arguments) -> str:
        """The parameters; gives their dtype."""
        odd = (given.vararg, given.kwarg, *given.kwonlyargs, *given.posonlyargs, *given.defaults)
        found = next((node for node in (*odd, made.returns) if node is not None), None)
        if found is not None or not given.args:
            raise self.wrong(found or made, "parameters are names with dtype and shape", _HEADER)
        dtypes = [self.parameter(argument) for argument in given.args]
        for argument, dtype in zip(given.args, dtypes, strict=True):
            if dtype != dtypes[0]:
                raise self.wrong(argument, "parameters of two dtypes", dtypes[0])
        return dtypes[0]

    def parameter(self, argument: ast.arg) -> str:
        if argument.arg in self.parameters:
            raise self.wrong(argument, f"two parameters are called {argument.arg}", "another name")
        match argument.annotation:
            case ast.Subscript(ast.Name(dtype), extents):
                self.parameters[argument.arg] = tuple(self.extents(self.items(extents), argument))
            case _:
                raise self.wrong(argument, "a parameter without dtype and shape", _HEADER)
        try:
            resolve(dtype)
        except (TypeError, ValueError) as unknown:
            raise self.wrong(argument, str(unknown)) from None
        return dtype

    # -- statements -------------------------------------------------------------------------------

    def statement(self, node: ast.stmt) -> Statement:
        match node:
            case ast.Assign([ast.Name(name) as made], ast.Call(ast.Name(operator)) as call):
                self.new(made)
                if operator == ALLOCATE:
                    return self.allocate(name, call)
                if operator == REPEAT:
                    return self.repeat(name, call)
                return self.call(name, operator, call)
            case ast.Assign([ast.Name(name) as made], ast.Subscript() as source):
                self.new(made)
                return self.load(name, source)
            case ast.Assign([ast.Subscript() as target], value):
                where = self.part(target, self.outputs, "what was allocated")
                return Statement(STORE, (("src", self.tile(value)), ("dst", where)), where)
        raise self.wrong(node, "not a statement of a tile program", "a load, a call or a store")

    def new(self, made: ast.Name) -> None:
        if made.id in (*self.parameters, *self.tiles, *self.outputs):
            raise self.wrong(made, f"{made.id} is defined already", "another name")

    def load(self, name: str, source: ast.expr, copies: int = 1) -> Statement:
        made = load(name, self.part(source, self.parameters, "a parameter"), copies)
        self.tiles[name] = made.output.shape
        return made

    def repeat(self, name: str, call: ast.Call) -> Statement:
        match call.args, call.keywords:
            case [source], [ast.keyword("copies", ast.Constant(int() as copies))] if copies > 1:
                return self.load(name, source, copies)
        raise self.wrong(call, "not a load of copies", f"{REPEAT}(A[0:128, 0:128], copies=2)")

    def allocate(self, name: str, call: ast.Call) -> Statement:
        if call.keywords:
            raise self.wrong(call.keywords[0], "not an extent", "output = allocate(128, 512)")
        shape = tuple(self.extents(call.args, call))
        self.outputs[name] = shape
        return Statement(ALLOCATE, (), part_of(name, shape, *((0, n) for n in shape)))

    def call(self, name: str, operator: str, node: ast.Call) -> Statement:
        record = OPERATORS.get(operator)
        if record is None:
            raise self.wrong(node, f"{operator} is not an operator", ", ".join(OPERATORS))
        if node.args:
            raise self.wrong(node.args[0], f"{operator} takes its operands by name")
        given = tuple(self.argument(record, keyword) for keyword in node.keywords)
        known = {n: value for n, value in given if isinstance(value, Reference)}
        for operand in record.operands:
            if operand not in known and operand != record.accumulates:
                raise self.wrong(node, f"{operator} needs {operand}")
        extents: dict[str, int] = {}
        for operand, value in reversed(known.items()):
            extents |= zip(record.operands[operand], value.extents, strict=True)
        extents[ONE] = 1
        return Statement(operator, given, self.define(name, tuple(map(extents.get, record.result))))

    def argument(self, record: Operator, keyword: ast.keyword) -> tuple[str, Reference | Attribute]:
        if keyword.arg in record.operands:
            return keyword.arg, self.tile(keyword.value)
        if keyword.arg not in record.attributes:
            fields = ", ".join((*record.operands, *record.attributes))
            raise self.wrong(keyword, f"{record.name} has no {keyword.arg}", fields)
        match keyword.value:
            case ast.Constant(bool() | int() | float() | str() as value):
                return keyword.arg, value
            case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as value)) if value:
                return keyword.arg, -value  # -0.0 has no value number of its own
        raise self.wrong(keyword.value, f"not a value of {keyword.arg}")

    def define(self, name: str, extents: Sequence[int | None]) -> Reference:
        shape = tuple(extent or 0 for extent in extents)
        self.tiles[name] = shape
        return tile(name, *shape)

    # -- references -------------------------------------------------------------------------------

    def tile(self, node: ast.expr) -> Reference:
        """All or part of a variable."""
        if isinstance(node, ast.Name):
            if node.id not in self.tiles:
                raise self.wrong(node, f"{node.id} is not a variable", ", ".join(self.tiles))
            return tile(node.id, *self.tiles[node.id])
        found = self.part(node, self.tiles, "a variable")
        return part_of_tile(found.name, *found.intervals)

    def part(self, node: ast.expr, among: dict[str, Shape], what: str) -> Reference:
        """NAME[a:b, c:d] of a tensor among these."""
        match node:
            case ast.Subscript(ast.Name(name), subscript) if name in among:
                intervals = tuple(self.interval(item) for item in self.items(subscript))
                if len(intervals) != len(among[name]):
                    raise self.wrong(node, f"{name} has {len(among[name])} axes")
                return part_of(name, among[name], *intervals)
        raise self.wrong(
            node, f"not part of {what}", ", ".join(f"{n}[0:128, 0:128]" for n in among)
        )

    def interval(self, node: ast.expr) -> Interval:
        match node:
            case ast.Slice(ast.Constant(int() as start), ast.Constant(int() as stop), None):
                if start < stop:
                    return start, stop
        raise self.wrong(node, "not an interval", "START:STOP, START below STOP")

    def items(self, node: ast.expr) -> list[ast.expr]:
        return node.elts if isinstance(node, ast.Tuple) else [node]

    def extents(self, items: Sequence[ast.expr], around: ast.AST) -> Iterator[int]:
        if len(items) != 2:
            raise self.wrong(around, f"{len(items)} extents", "two")
        for node in items:
            match node:
                case ast.Constant(int() as extent) if extent > 0 and not isinstance(extent, bool):
                    yield extent
                case _:
                    raise self.wrong(node, "not an extent", "a positive integer")


def _returned(last: ast.stmt) -> tuple[str, ...]:
    """The names that a statement returns; nothing for any other statement."""
    match last:
        case ast.Return(ast.Name(result)):
            return (result,)
        case ast.Return(ast.Tuple(items)):
            return tuple(item.id for item in items if isinstance(item, ast.Name))
    return ()
