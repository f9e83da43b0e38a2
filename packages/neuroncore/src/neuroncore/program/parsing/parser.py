"""Reads a program's text; neuroncore.program.ir.printer describes the format."""

from __future__ import annotations

import ast
import linecache
from enum import Enum
from itertools import count
from typing import Any

from neuroncore.enums import MemorySpace
from neuroncore.errors import KernelError, ProgramMistakesError, ProgramTextError
from neuroncore.instructions import INSTRUCTIONS, Attr, Instruction
from neuroncore.program.ir.nodes import Allocate, Buffer, Call, Loop, Statement, make_call
from neuroncore.program.ir.program import Program
from neuroncore.program.parsing.expressions import Constants
from neuroncore.program.verification.findings import as_error
from neuroncore.program.verification.verify import LARGEST, verify
from neuroncore.python_source import parse_python
from neuroncore.source_location import Place
from neuroncore.surface import VERSIONS

_HEADER = 'program("trn2", "0.6"), then one def'
_BUFFER = "buffer(float32[128, 512], sbuf)"


def parse_program(text: str, path: str | None = None) -> Program:
    """The program that `text` writes; statements know their lines in it.

    `path` names the file that the text is from, if any. Raises ProgramTextError with line, column
    and a caret at the mistake; one that holds every mistake (`errors`) where there are several, and
    with them what `check` says about the rest of the program.
    """
    if not isinstance(text, str):
        raise ProgramTextError("not the text of a program", expected="a str",
                               got=type(text).__name__)  # fmt: skip
    path = path or remember(text)
    try:
        tree = parse_python(text, path)
    except SyntaxError as wrong:
        place = Place(path, wrong.lineno or 1, max(0, (wrong.offset or 1) - 1))
        raise ProgramTextError(f"not a program: {wrong.msg}", place=place) from None
    try:
        return _Reader(path).program(tree)
    except RecursionError:
        raise ProgramTextError("nested too deeply", place=Place(path, 1)) from None


class _Reader(Constants):
    """Walks the syntax tree; one method per kind of statement."""

    def program(self, tree: ast.Module) -> Program:
        match tree.body:
            case [ast.Expr(ast.Call(ast.Name("program"), settings, [])), ast.FunctionDef() as made,
                  *sections]:  # fmt: skip
                pass
            case _:
                raise self.wrong(tree.body[0] if tree.body else tree, "not a program", _HEADER)
        target, nki = LARGEST, VERSIONS[-1]
        with self.going_on(tree.body[0]):
            target, nki = self.settings(settings, tree.body[0])
        for node in _odd(made):
            with self.going_on(node):
                raise self.wrong(node, "not a parameter", "x: float32[128, 512]")
        parameters: list[Buffer] = []
        for argument in made.args.args:
            with self.going_on(argument):
                parameters.append(self.parameter(argument))
        self.read_sections(sections)
        *statements, last = made.body
        body = self.block(statements)
        results: tuple[str, ...] = ()
        with self.going_on(last):
            if not isinstance(last, ast.Return):
                raise self.wrong(last, "a program ends with return", "return NAME, …")
            results = self.results(last)
        self.reject_sections()
        places = {"results": self.place(last)}
        places |= {p: self.place(n) for p, n in zip(("target", "nki"), settings, strict=False)}
        program = Program(made.name, tuple(parameters), body, results, target, nki, places)
        if self.errors:
            raise self.mistakes(program)
        return program

    def settings(self, settings: list[ast.expr], node: ast.stmt) -> tuple[str, str]:
        """The target and the NKI version."""
        match settings:
            case [ast.Constant(str() as target), ast.Constant(str() as nki)]:
                return target, nki
        raise self.wrong(node, "not a target and an NKI version", _HEADER)

    def mistakes(self, program: Program) -> KernelError:
        """The mistakes of the text, and what is wrong with that part of the program that could be
        read; what only follows from a statement that could not is left out.
        """
        violations = map(as_error, verify(program, content=False))
        errors = sorted([*self.errors, *violations], key=_position)
        return errors[0] if len(errors) == 1 else ProgramMistakesError(errors)

    def parameter(self, argument: ast.arg) -> Buffer:
        if argument.annotation is None:
            raise self.wrong(
                argument, "a parameter without dtype and shape", "x: float32[128, 512]"
            )
        shape, dtype = self.tensor(argument.annotation)
        return self.remember(Buffer(argument.arg, shape, dtype, MemorySpace.hbm), argument)

    def remember(self, buffer: Buffer, node: ast.AST) -> Buffer:
        if buffer.name in self.buffers:
            raise self.wrong(node, f"{buffer.name} is already a buffer", "another name")
        self.buffers[buffer.name] = buffer
        return buffer

    def results(self, node: ast.Return) -> tuple[str, ...]:
        value = node.value
        items = value.elts if isinstance(value, ast.Tuple) else [value] if value else []
        return tuple(buffer.name for buffer in self.each(self.known, items))

    # -- statements -------------------------------------------------------------------------------

    def block(self, statements: list[ast.stmt]) -> tuple[Statement, ...]:
        read: list[Statement] = []
        for node in statements:
            if not isinstance(node, ast.Pass):
                with self.going_on(node):
                    read.append(self.statement(node))
        return tuple(read)

    def statement(self, node: ast.stmt) -> Statement:
        match node:
            case ast.For(ast.Name() as variable, ast.Call(ast.Name("range"), bounds, []), body):
                return self.loop(variable, bounds, body, node)
            case ast.Assign([ast.Name(name) as made], ast.Call(ast.Name("buffer")) as call):
                buffer = self.remember(self.buffer(name, call), made)
                return Allocate(buffer, self.place(node))
            case ast.Assign([ast.Name(name) as made], ast.Call(ast.Name("constant")) as call):
                buffer = self.remember(self.constant(name, call), made)
                return Allocate(buffer, self.place(node))
            case ast.Expr(ast.Call(ast.Name(name)) as call) if name in INSTRUCTIONS:
                return self.call(INSTRUCTIONS[name], call)
            case ast.Expr(ast.Call(ast.Name(name))):
                raise self.wrong(node, f"{name} is not an instruction", ", ".join(INSTRUCTIONS))
        raise self.wrong(node, "not a statement of a program", "a buffer, a loop or an instruction")

    def loop(
        self, variable: ast.Name, given: list[ast.expr], body: list[ast.stmt], node: ast.For
    ) -> Loop:
        name, start, stop, step = variable.id, 0, 1, 1  # unreadable bounds: it runs
        with self.going_on(node.iter):
            start, stop, step = self.bounds(given, node)
        if name in self.loops:
            raise self.wrong(variable, f"loop variable {name} is in use by an outer loop")
        self.loops.append(name)
        inner = self.block(body)
        self.loops.pop()
        return Loop(name, start, stop, inner, step, self.place(node))

    def bounds(self, given: list[ast.expr], node: ast.For) -> tuple[int, int, int]:
        """Start, stop and step of a loop."""
        bounds = self.each(self.integer, given)
        if not 1 <= len(bounds) <= 3 or (len(bounds) == 3 and bounds[2] < 1) or node.orelse:
            raise self.wrong(node.iter, "a loop needs bounds and a positive step", "range(0, 8, 2)")
        start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        return start, stop, step

    def buffer(self, name: str, call: ast.Call) -> Buffer:
        match call.args:
            case [tensor, ast.Name(space)] if space in MemorySpace.__members__:
                pass
            case _:
                raise self.wrong(call, "not a buffer", _BUFFER)

        def read(node: ast.AST) -> Any:
            if not isinstance(node, ast.keyword):
                return self.tensor(tensor)
            self.keyword(node, ("address",))
            return self.integers(node.value, 2)

        (shape, dtype), *address = self.each(read, [tensor, *call.keywords])
        return Buffer(name, shape, dtype, MemorySpace[space], *address)

    def call(self, record: Instruction, node: ast.Call) -> Call:
        fields = (*record.operands, *record.attrs, "name")
        if node.args:
            raise self.wrong(node.args[0], f"{record.name} takes its operands by name",
                             ", ".join(fields[:-1]))  # fmt: skip

        def read(keyword: ast.keyword) -> tuple[str, Any]:
            name, value = self.keyword(keyword, fields), keyword.value
            if name == "name":
                return name, self.label(value)
            if name in record.operands:
                return name, self.operand(value)
            return name, self.attribute(name, record.attrs[name], value)

        values = {"name": None, **dict(self.each(read, node.keywords))}
        return make_call(record.name, origin=self.place(node), **values)

    def label(self, node: ast.expr) -> str:
        label = self.literal(node)
        if not isinstance(label, str):
            raise self.wrong(node, "not a name", "a string")
        return label

    def attribute(self, name: str, attr: Attr, node: ast.expr) -> Any:
        if isinstance(attr.default, Enum):
            members = type(attr.default).__members__
            if isinstance(node, ast.Name) and node.id in members:
                return members[node.id]
            shown = node.id if isinstance(node, ast.Name) else "this"
            raise self.wrong(node, f"{shown} is not a value of {name}", ", ".join(members))
        value = node.id if isinstance(node, ast.Name) else self.literal(node)
        try:
            return attr.convert(self.literal(node) if value in ("inf", "nan") else value)
        except KernelError as wrong:
            raise self.wrong(node, wrong.what, wrong.expected) from None
        except (TypeError, ValueError, OverflowError):
            raise self.wrong(node, f"{value!r} is not a value of {name}") from None


def _odd(made: ast.FunctionDef) -> list[ast.AST]:
    """The parts of a function's signature that no program has."""
    given = made.args
    extra = (given.vararg, given.kwarg, *given.kwonlyargs, *given.posonlyargs, *given.defaults)
    return [n for n in (*extra, *made.decorator_list, made.returns) if n is not None]


def _position(error: KernelError) -> tuple[bool, int, int]:
    """By lines and columns; last what stands nowhere."""
    place = error.place
    return (place is None, place.line if place else 0, place.column if place else 0)


REMEMBERED = 64  # texts; the oldest are forgotten, their errors then show no line

_number = count(1)
_paths: list[str] = []


def remember(text: str, what: str = "program") -> str:
    """A path under which `linecache` finds the lines of `text`."""
    path = f"<{what} {next(_number)}>"
    lines = [line + "\n" for line in text.splitlines()]
    linecache.cache[path] = (len(text), None, lines, path)  # no mtime: checkcache keeps it
    _paths.append(path)
    while len(_paths) > REMEMBERED:
        linecache.cache.pop(_paths.pop(0), None)
    return path
