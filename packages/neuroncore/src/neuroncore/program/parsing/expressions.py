"""Reads accesses, numbers, dtypes and the content of constants in the text of a program."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import nan
from typing import Any

from neuroncore.enums import MemorySpace
from neuroncore.errors import KernelError, ProgramTextError
from neuroncore.integers.affine import Affine
from neuroncore.program.ir.constants import digest_of, from_numbers, from_text
from neuroncore.program.ir.nodes import Access, Buffer, Indirect, Value
from neuroncore.program.ir.subscripts import Item, Slice, access_at
from neuroncore.source_location import Place
from nki_dtypes import DType, UnknownDTypeError, resolve

_PATTERN = "x.ap([[512, 128], [1, 512]], 0)"


class ConsequenceError(Exception):
    """A part that cannot be read because of a mistake that is listed already."""


class Expressions:
    """The names in scope and the mistakes so far; one method per kind of expression."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.buffers: dict[str, Buffer] = {}
        self.loops: list[str] = []
        self.errors: list[KernelError] = []
        self.broken: set[str] = set()

    @contextmanager
    def going_on(self, node: ast.AST) -> Iterator[None]:
        """Keep the mistake of this part of the text, and read on after it.

        The use of a name that the part should have defined is not a second mistake.
        """
        try:
            yield
        except ConsequenceError:
            pass  # the mistake that it follows from is listed
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

    def each(self, read: Callable[..., Any], nodes: Sequence[ast.AST], *more: Any) -> list[Any]:
        """The results of `read` for each node (and its partners), collecting all mistakes.

        Raises ConsequenceError where there was one.
        """
        parts: list[Any] = []
        for node, *rest in zip(nodes, *more, strict=True):
            with self.going_on(node):
                parts.append(read(node, *rest))
        if len(parts) < len(nodes):
            raise ConsequenceError
        return parts

    def tensor(self, node: ast.expr) -> tuple[tuple[int, ...], DType]:
        match node:
            case ast.Subscript(ast.Name() as name, index):
                sizes = index.elts if isinstance(index, ast.Tuple) else [index]
                readers = [self.dtype] + [self.integer] * len(sizes)
                dtype, *shape = self.each(lambda n, read: read(n), [name, *sizes], readers)
                return tuple(shape), dtype
        raise self.wrong(node, "not a tensor", "float32[128, 512]")

    def dtype(self, node: ast.expr) -> DType:
        if not isinstance(node, ast.Name):
            raise self.wrong(node, "not a dtype", "float32")
        try:
            return resolve(node.id)
        except UnknownDTypeError as unknown:
            raise self.wrong(node, unknown.what, unknown.expected) from None

    def keywords(self, call: ast.Call, *known: str) -> dict[str, ast.expr]:
        """The arguments by name."""
        self.each(self.keyword, call.keywords, [known] * len(call.keywords))
        return {k.arg: k.value for k in call.keywords if k.arg}

    def keyword(self, keyword: ast.keyword, known: Sequence[str]) -> str:
        name = keyword.arg
        if name is None or name not in known:
            raise self.wrong(keyword.value, f"no argument {name}", ", ".join(known))
        return name

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
        name = node.id if isinstance(node, ast.Name) else "this"
        if name in self.broken:
            raise ConsequenceError
        if not isinstance(node, ast.Name) or name not in self.buffers:
            known = ", ".join(self.buffers) or "no buffer is known here"
            raise self.wrong(node, f"{name} is not a buffer", known)
        return self.buffers[name]

    def box(self, node: ast.Subscript) -> Access:
        buffer, index = self.known(node.value), node.slice
        items = index.elts if isinstance(index, ast.Tuple) else [index]
        if len(items) != len(buffer.shape):
            raise self.wrong(
                node, f"{len(items)} indices into a buffer of rank {len(buffer.shape)}",
                f"{len(buffer.shape)} slices or indices",
            )  # fmt: skip
        return access_at(buffer, self.each(self.item, items, buffer.shape))

    def item(self, node: ast.expr, size: int) -> Item:
        if not isinstance(node, ast.Slice):
            return self.affine(node)
        bounds = [node.lower or ast.Constant(0), node.upper or ast.Constant(size)]
        parts = [*bounds, node.step or ast.Constant(1)]
        readers = [self.affine, self.affine, self.integer]
        start, stop, step = self.each(lambda part, read: read(part), parts, readers)
        length = stop - start
        if not length.is_constant or length.constant < 1 or step < 1:
            raise self.wrong(
                node, f"the slice has {length} elements", "a positive constant size and step"
            )
        return Slice(start, -(-length.constant // step), step)

    def pattern(self, node: ast.Call) -> Access:
        assert isinstance(node.func, ast.Attribute)
        if not 1 <= len(node.args) <= 2 or not isinstance(node.args[0], ast.List):
            raise self.wrong(node, "not a pattern", _PATTERN)
        first, offset = (*node.args, ast.Constant(0))[:2]
        parts = [node.func.value, first, offset, node]
        readers = [self.known, self.pairs, self.affine, self.seen_as]
        buffer, pairs, start, how = self.each(lambda part, read: read(part), parts, readers)
        shape, strides = tuple(n for _, n in pairs), tuple(s for s, _ in pairs)
        return Access(buffer.name, start, shape, strides, *how)

    def pairs(self, node: ast.List) -> list[tuple[int, ...]]:
        return self.each(self.integers, node.elts, [2] * len(node.elts))

    def seen_as(self, node: ast.Call) -> tuple[DType | None, Indirect | None]:
        """The meaning of a pattern's arguments by name."""
        given = self.keywords(node, "dtype", "scalar_offset", "vector_offset", "dim")
        dtype = self.dtype(given["dtype"]) if "dtype" in given else None
        return dtype, self.indirect(given, node)

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
        return tuple(self.each(self.integer, elements))

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


_CONSTANT = (
    "constant(float32[3], [0.5, 1.0, inf]), or without content and NAME = data(…) at the end"
)
_DATA = 'NAME = data("9f86d081884c7d65", base64="…"), or with deflated='


class Constants(Expressions):
    """Keeps what follows the function, by the names of constants, until they ask for it."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.sections: dict[str, ast.Assign] = {}

    def read_sections(self, nodes: list[ast.stmt]) -> None:
        """Reads the text behind the function: bytes of constants."""
        for node in nodes:
            with self.going_on(node):
                match node:
                    case ast.Assign([ast.Name(name)], ast.Call(ast.Name("data"))):
                        if name in self.sections:
                            raise self.wrong(node, f"{name} has data already", "another name")
                        self.sections[name] = node
                    case _:
                        raise self.wrong(node, "not the data of a constant", _DATA)

    def reject_sections(self) -> None:
        """Data that belongs to no constant is a mistake."""
        for name, node in self.sections.items():
            with self.going_on(node):
                if name not in self.broken:
                    raise self.wrong(node, f"{name} is not a constant without content")

    def constant(self, name: str, call: ast.Call) -> Buffer:
        if not 1 <= len(call.args) <= 2 or call.keywords:
            raise self.wrong(call, "not a constant", _CONSTANT)
        shape, dtype = self.tensor(call.args[0])
        made = Buffer(name, shape, dtype, MemorySpace.shared_hbm)
        if len(call.args) == 2:
            return replace(made, content=self.numbers(call.args[1], made))
        node = self.sections.pop(name, None)
        if node is None:
            raise self.wrong(call, f"{name} has no content", _CONSTANT)
        assert isinstance(node.value, ast.Call)
        return replace(made, content=self.bytes_of(node.value, made))

    def numbers(self, node: ast.expr, made: Buffer) -> bytes:
        """The content of a constant whose elements are listed."""
        if not isinstance(node, ast.List) or len(node.elts) != made.size:
            count = f"{len(node.elts)} elements" if isinstance(node, ast.List) else "not elements"
            raise self.wrong(node, count, f"{made.size} numbers in brackets")
        values = self.each(self.literal, node.elts)
        for value, element in zip(values, node.elts, strict=True):
            if from_numbers([value], made.dtype) is None:
                raise self.wrong(element, f"{value!r} does not fit {made.dtype}")
        content = from_numbers(values, made.dtype)
        assert content is not None
        return content

    def bytes_of(self, node: ast.Call, made: Buffer) -> bytes:
        """The content that stands behind the function."""
        match node:
            case ast.Call(
                args=[ast.Constant(str() as digest) as shown],
                keywords=[ast.keyword("base64" | "deflated" as way, ast.Constant(str()) as text)],
            ):
                pass
            case _:
                raise self.wrong(node, "not the data of a constant", _DATA)
        try:
            content = from_text(way, str(text.value), made.num_bytes)
        except ValueError as wrong:
            raise self.wrong(text, f"not {way}: {wrong}") from None
        tensor = f"{made.dtype}[{', '.join(map(str, made.shape))}]"
        if len(content) != made.num_bytes:
            more = "more than " if len(content) > made.num_bytes else ""
            count = made.num_bytes if more else len(content)
            raise self.wrong(
                text, f"{made.name} has {more}{count} bytes here",
                f"{made.num_bytes} for {tensor}",
            )  # fmt: skip
        if digest_of(content) != digest:
            raise self.wrong(
                shown, f"the digest of {made.name} is another: the text was changed",
                digest_of(content),
            )  # fmt: skip
        return content
