"""Reads the constants of a program's text; see neuroncore.program.content for how they look."""

from __future__ import annotations

import ast
from dataclasses import replace

from neuroncore.engines import Space
from neuroncore.program._expressions import Expressions
from neuroncore.program.content import digest_of, from_numbers, from_text
from neuroncore.program.nodes import Buffer

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
        """What follows the function: bytes of constants."""
        for node in nodes:
            with self.going_on(node):
                match node:
                    case ast.Assign([ast.Name(name)], ast.Call(ast.Name("data"))):
                        if name in self.sections:
                            raise self.wrong(node, f"{name} has data already", "another name")
                        self.sections[name] = node
                    case _:
                        raise self.wrong(node, "not the data of a constant", _DATA)

    def refuse_sections(self) -> None:
        """What no constant has asked for is a mistake."""
        for name, node in self.sections.items():
            with self.going_on(node):
                if name not in self.broken:
                    raise self.wrong(node, f"{name} is no constant without content")

    def constant(self, name: str, call: ast.Call) -> Buffer:
        if not 1 <= len(call.args) <= 2 or call.keywords:
            raise self.wrong(call, "not a constant", _CONSTANT)
        shape, dtype = self.tensor(call.args[0])
        made = Buffer(name, shape, dtype, Space.shared_hbm)
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
                raise self.wrong(element, f"{value!r} is no {made.dtype}")
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
