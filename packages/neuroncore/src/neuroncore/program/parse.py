"""Reads a program's text back; see neuroncore.program.text for how it looks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from math import nan
from typing import Any

from neuroncore._caret import Place
from neuroncore.engines import Space
from neuroncore.errors import KernelError, ProgramMistakesError, ProgramTextError
from neuroncore.instructions import INSTRUCTIONS, Attr, Instruction
from neuroncore.program._source import remember
from neuroncore.program.affine import Affine
from neuroncore.program.box import Item, Slice, access_at
from neuroncore.program.nodes import (
    Access,
    Allocate,
    Buffer,
    Call,
    Indirect,
    Loop,
    Program,
    Statement,
    Value,
    make_call,
)
from nki_dtypes import DType, resolve

_HEADER = 'program("trn2", "0.6"), then one def'
_BUFFER = "buffer(float32[128, 512], sbuf)"
_PATTERN = "x.ap([[512, 128], [1, 512]], 0)"


def parse_program(text: str, path: str | None = None) -> Program:
    """The program that `text` writes; statements know their lines in it.

    `path` names the file that the text is from, if any. Raises ProgramTextError with line, column
    and a caret at the mistake; one that holds every mistake (`errors`) where there are several.
    """
    if not isinstance(text, str):
        raise ProgramTextError("not the text of a program", expected="a str",
                               got=type(text).__name__)  # fmt: skip
    path = path or remember(text)
    try:
        tree = ast.parse(text, path)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as wrong:
        line, column = getattr(wrong, "lineno", None), getattr(wrong, "offset", None)
        what = getattr(wrong, "msg", str(wrong)) or "nested too deeply"
        place = Place(path, line or 1, max(0, (column or 1) - 1))
        raise ProgramTextError(f"not a program: {what}", place=place) from None
    try:
        return _Reader(path).program(tree)
    except RecursionError:
        raise ProgramTextError("nested too deeply", place=Place(path, 1)) from None


class _ConsequenceError(Exception):
    """A name is used whose own statement is at fault."""


class _Reader:
    """Walks the syntax tree; one method per kind of node."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.buffers: dict[str, Buffer] = {}
        self.loops: list[str] = []
        self.errors: list[KernelError] = []
        self.broken: set[str] = set()

    @contextmanager
    def going_on(self, node: ast.AST) -> Iterator[None]:
        """Keep the mistake of this part of the text, and read on after it.

        What uses a name that the part should have made is no mistake of its own.
        """
        try:
            yield
        except _ConsequenceError:
            pass
        except KernelError as wrong:
            self.errors.append(wrong)
        else:
            return
        self.broken |= {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}
        self.broken |= {
            part.id
            for part in ast.walk(node)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        }

    def place(self, node: ast.AST) -> Place:
        return Place(
            self.path,
            getattr(node, "lineno", 1),
            getattr(node, "col_offset", 0),
            getattr(node, "end_lineno", None),
            getattr(node, "end_col_offset", None),
        )

    def wrong(self, node: ast.AST, what: str, expected: str | None = None) -> ProgramTextError:
        return ProgramTextError(what, expected=expected, place=self.place(node))

    def program(self, tree: ast.Module) -> Program:
        match tree.body:
            case [ast.Expr(ast.Call(ast.Name("program"), settings, [])), ast.FunctionDef() as made]:
                pass
            case _:
                raise self.wrong(tree.body[0] if tree.body else tree, "not a program", _HEADER)
        match settings:
            case [ast.Constant(str() as target), ast.Constant(str() as nki)]:
                pass
            case _:
                raise self.wrong(tree.body[0], "not a target and an NKI version", _HEADER)
        given = made.args
        extra = (given.vararg, given.kwarg, *given.kwonlyargs, *given.posonlyargs, *given.defaults)
        odd = [node for node in (*extra, *made.decorator_list, made.returns) if node is not None]
        if odd:
            raise self.wrong(odd[0], "not a parameter", "x: float32[128, 512]")
        parameters: list[Buffer] = []
        for argument in given.args:
            with self.going_on(argument):
                parameters.append(self.parameter(argument))
        *statements, last = made.body
        body = self.block(statements)
        results: tuple[str, ...] = ()
        with self.going_on(last):
            if not isinstance(last, ast.Return):
                raise self.wrong(last, "a program ends with return", "return NAME, …")
            results = self.results(last)
        if self.errors:
            raise self.errors[0] if len(self.errors) == 1 else ProgramMistakesError(self.errors)
        parts = {"target": settings[0], "nki": settings[1], "results": last}
        places = {part: self.place(node) for part, node in parts.items()}
        return Program(made.name, tuple(parameters), body, results, target, nki, places)

    def parameter(self, argument: ast.arg) -> Buffer:
        if argument.annotation is None:
            raise self.wrong(
                argument, "a parameter without dtype and shape", "x: float32[128, 512]"
            )
        shape, dtype = self.tensor(argument.annotation)
        return self.remember(Buffer(argument.arg, shape, dtype, Space.hbm), argument)

    def remember(self, buffer: Buffer, node: ast.AST) -> Buffer:
        if buffer.name in self.buffers:
            raise self.wrong(node, f"{buffer.name} is already a buffer", "another name")
        self.buffers[buffer.name] = buffer
        return buffer

    def tensor(self, node: ast.expr) -> tuple[tuple[int, ...], DType]:
        match node:
            case ast.Subscript(ast.Name() as dtype, index):
                sizes = index.elts if isinstance(index, ast.Tuple) else [index]
                return tuple(self.integer(n) for n in sizes), self.dtype(dtype)
        raise self.wrong(node, "not a tensor", "float32[128, 512]")

    def dtype(self, node: ast.expr) -> DType:
        if not isinstance(node, ast.Name):
            raise self.wrong(node, "not a dtype", "float32")
        try:
            return resolve(node.id)
        except ValueError as unknown:
            raise self.wrong(node, str(unknown).partition("\n")[0]) from None

    def results(self, node: ast.Return) -> tuple[str, ...]:
        value = node.value
        items = value.elts if isinstance(value, ast.Tuple) else [value] if value else []
        return tuple(self.known(item).name for item in items)

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
            case ast.Expr(ast.Call(ast.Name(name)) as call) if name in INSTRUCTIONS:
                return self.call(INSTRUCTIONS[name], call)
            case ast.Expr(ast.Call(ast.Name(name))):
                raise self.wrong(node, f"{name} is not an instruction", ", ".join(INSTRUCTIONS))
        raise self.wrong(node, "not a statement of a program", "a buffer, a loop or an instruction")

    def loop(
        self, variable: ast.Name, given: list[ast.expr], body: list[ast.stmt], node: ast.For
    ) -> Loop:
        name, start, stop, step = variable.id, 0, 0, 1
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
        bounds = [self.integer(b) for b in given]
        if not 1 <= len(bounds) <= 3 or (len(bounds) == 3 and bounds[2] < 1) or node.orelse:
            raise self.wrong(node.iter, "a loop needs bounds and a positive step", "range(0, 8, 2)")
        start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        return start, stop, step

    def buffer(self, name: str, call: ast.Call) -> Buffer:
        match call.args:
            case [tensor, ast.Name(space)] if space in Space.__members__:
                shape, dtype = self.tensor(tensor)
            case _:
                raise self.wrong(call, "not a buffer", _BUFFER)
        given = self.keywords(call, "address")
        address = self.integers(given["address"], 2) if "address" in given else None
        return Buffer(name, shape, dtype, Space[space], address)  # type: ignore[arg-type]

    def keywords(self, call: ast.Call, *known: str) -> dict[str, ast.expr]:
        for keyword in call.keywords:
            if keyword.arg not in known:
                raise self.wrong(keyword.value, f"no argument {keyword.arg}", ", ".join(known))
        return {k.arg: k.value for k in call.keywords if k.arg}

    def call(self, record: Instruction, node: ast.Call) -> Call:
        fields = (*record.operands, *record.attrs)
        if node.args:
            raise self.wrong(node.args[0], f"{record.name} takes its operands by name",
                             ", ".join(fields))  # fmt: skip
        given = self.keywords(node, *fields, "name")
        label = self.literal(given["name"]) if "name" in given else None
        if not isinstance(label, str | None):
            raise self.wrong(given["name"], "not a name", "a string")
        values = {f: self.operand(given[f]) for f in record.operands if f in given}
        values |= {f: self.attribute(f, a, given[f]) for f, a in record.attrs.items() if f in given}
        return make_call(record.name, label, self.place(node), **values)

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
        except (TypeError, ValueError):
            raise self.wrong(node, f"{value!r} is not a value of {name}") from None

    # -- operands ---------------------------------------------------------------------------------

    def operand(self, node: ast.expr) -> Value:
        match node:
            case ast.Subscript(ast.Name(), _):
                return self.box(node)
            case ast.Call(ast.Attribute(ast.Name(), "ap")):
                return self.pattern(node)
        value = self.literal(node)
        if not isinstance(value, (int, float)):
            raise self.wrong(node, "not an operand", "an access of a buffer, or a number")
        return value

    def access(self, node: ast.expr) -> Access:
        found = self.operand(node)
        if not isinstance(found, Access):
            raise self.wrong(node, "not an access of a buffer", "t[:, :]")
        return found

    def literal(self, node: ast.expr) -> Any:
        match node:
            case ast.Name("inf"):
                return float("inf")
            case ast.Name("nan"):
                return nan
            case ast.UnaryOp(ast.USub(), ast.Name("inf")):
                return float("-inf")
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError):
            raise self.wrong(node, "not a literal", "a number, a string, a tuple") from None

    def known(self, node: ast.expr) -> Buffer:
        if not isinstance(node, ast.Name) or node.id not in self.buffers:
            name = node.id if isinstance(node, ast.Name) else "this"
            if name in self.broken:
                raise _ConsequenceError
            known = ", ".join(self.buffers) or "no buffer is known here"
            raise self.wrong(node, f"{name} is not a buffer", known)
        return self.buffers[node.id]

    def box(self, node: ast.Subscript) -> Access:
        buffer, index = self.known(node.value), node.slice
        items = index.elts if isinstance(index, ast.Tuple) else [index]
        if len(items) != len(buffer.shape):
            raise self.wrong(
                node, f"{len(items)} indices into a buffer of rank {len(buffer.shape)}",
                f"{len(buffer.shape)} slices or indices",
            )  # fmt: skip
        return access_at(
            buffer, [self.item(i, n) for i, n in zip(items, buffer.shape, strict=True)]
        )

    def item(self, node: ast.expr, size: int) -> Item:
        if not isinstance(node, ast.Slice):
            return self.affine(node)
        start = self.affine(node.lower) if node.lower else Affine()
        stop = self.affine(node.upper) if node.upper else Affine(size)
        step = self.integer(node.step) if node.step else 1
        length = stop - start
        if not length.is_constant or length.constant < 1 or step < 1:
            raise self.wrong(
                node, f"the slice has {length} elements", "a positive constant size and step"
            )
        return Slice(start, -(-length.constant // step), step)

    def pattern(self, node: ast.Call) -> Access:
        assert isinstance(node.func, ast.Attribute)
        buffer = self.known(node.func.value)
        given = self.keywords(node, "dtype", "scalar_offset", "vector_offset", "dim")
        if not 1 <= len(node.args) <= 2 or not isinstance(node.args[0], ast.List):
            raise self.wrong(node, "not a pattern", _PATTERN)
        pairs = [self.integers(pair, 2) for pair in node.args[0].elts]
        offset = self.affine(node.args[1]) if len(node.args) > 1 else Affine()
        return Access(
            buffer.name,
            offset,
            tuple(n for _, n in pairs),
            tuple(s for s, _ in pairs),
            self.dtype(given["dtype"]) if "dtype" in given else None,
            self.indirect(given, node),
        )

    def indirect(self, given: dict[str, ast.expr], node: ast.Call) -> Indirect | None:
        kinds = [kind for kind in ("scalar", "vector") if f"{kind}_offset" in given]
        if len(kinds) > 1 or ("dim" in given and not kinds):
            raise self.wrong(node, "dim= goes with one of scalar_offset= and vector_offset=")
        if not kinds:
            return None
        dim = self.integer(given["dim"]) if "dim" in given else 0
        return Indirect(kinds[0], self.access(given[f"{kinds[0]}_offset"]), dim)

    def integer(self, node: ast.expr) -> int:
        value = self.literal(node)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.wrong(node, "not an int", "an int")
        return value

    def integers(self, node: ast.expr, count: int) -> tuple[int, ...]:
        elements = node.elts if isinstance(node, (ast.Tuple, ast.List)) else []
        if len(elements) != count:
            raise self.wrong(node, f"not {count} ints", f"{count} ints in brackets")
        return tuple(self.integer(n) for n in elements)

    def affine(self, node: ast.expr) -> Affine:
        match node:
            case ast.Constant(int() as value) if not isinstance(value, bool):
                return Affine(value)
            case ast.Name(name):
                if name in self.loops:
                    return Affine.variable(name)
                known = ", ".join(self.loops) or "no loop is open here"
                raise self.wrong(node, f"{name} is not a loop variable here", known)
            case ast.UnaryOp(ast.USub(), operand):
                return -self.affine(operand)
            case ast.BinOp(left, ast.Add(), right):
                return self.affine(left) + self.affine(right)
            case ast.BinOp(left, ast.Sub(), right):
                return self.affine(left) - self.affine(right)
            case ast.BinOp(left, ast.Mult(), right):
                first, second = self.affine(left), self.affine(right)
                if first.is_constant:
                    return second * first.constant
                if second.is_constant:
                    return first * second.constant
        raise self.wrong(
            node, "not an affine expression", "constants times loop variables, added up"
        )
