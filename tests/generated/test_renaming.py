"""No pass reads source text: other names in the NumPy program give the same kernel.

Tiles are named after variables: names apart.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from pathlib import Path

import pytest
from generated import FOLDER, Example, examples

# Kernels, files and parameters are named after the first two; the others keep their names.
KEPT = {example.name for example in examples()} | set(dir(builtins))
KEPT |= {name for example in examples() for name in example.arguments}


def bindings(tree: ast.AST) -> Iterator[tuple[int, int, str]]:
    """(line, column, name) wherever the program binds a name of its own, or may use it."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name):
                yield node.lineno, node.col_offset, name
            case ast.FunctionDef(name=name):
                yield node.lineno, node.col_offset + len("def "), name
            case ast.alias(asname=str(name), end_col_offset=int(end)):
                yield node.lineno, end - len(name), name


def renamed(text: str) -> str:
    """The program with other names for imports, variables and helpers, line by line."""
    lines = text.splitlines(keepends=True)
    for row, column, name in sorted(bindings(ast.parse(text)), reverse=True):
        if name not in KEPT:
            line = lines[row - 1]
            lines[row - 1] = f"{line[:column]}other_{line[column:]}"
    return "".join(lines)


def without_names(text: str) -> str:
    """The program with its names numbered as they come, and without comments."""
    tree, numbers = ast.parse(text), dict[str, int]()
    for node in ast.walk(tree):
        for field in ("id", "arg", "name"):
            if isinstance(name := getattr(node, field, None), str):
                setattr(node, field, f"name_{numbers.setdefault(name, len(numbers))}")
    return ast.unparse(tree)


@pytest.mark.parametrize("example", examples(), ids=lambda e: e.name)
def test_renaming_every_import_and_variable_gives_the_same_kernel(example: Example, tmp_path: Path):
    for file in {path.name for path in FOLDER.glob("*.py")} - {e.kernel for e in examples()}:
        (tmp_path / file).write_text(renamed((FOLDER / file).read_text(encoding="utf-8")))
    assert "other_np." in (tmp_path / example.function.partition(":")[0]).read_text()

    example.generate(tmp_path / "kernel.py", folder=tmp_path)

    ours, wanted = (tmp_path / "kernel.py").read_text(), (FOLDER / example.kernel).read_text()
    assert without_names(ours) == without_names(wanted)
