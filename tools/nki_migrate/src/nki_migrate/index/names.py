"""Import aliases → canonical names.

Canonical names are the documentation's short forms, the same for both namespaces: `nki.jit`,
`nl.load`, `nisa.nc_matmul`, `nki.typing.tensor`, `np.float32`. `neuronxcc.nki._private.x` keeps
its full dotted form.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import PurePath

_PREFIXES = (
    ("neuronxcc.nki.language", "nl"),
    ("neuronxcc.nki.isa", "nisa"),
    ("neuronxcc.nki.compiler", "ncc"),
    ("neuronxcc.nki", "nki"),
    ("nki.language", "nl"),
    ("nki.isa", "nisa"),
    ("nki.compiler", "ncc"),
    ("numpy", "np"),
)


@dataclass(frozen=True, slots=True)
class ImportedName:
    """One alias of an import statement: `local` is the dotted path `path`."""

    local: str
    path: str
    statement: ast.Import | ast.ImportFrom
    alias: ast.alias

    @property
    def is_beta1(self) -> bool:
        """Whether it comes from the 0.1 namespace."""
        return self.path == "neuronxcc" or self.path.startswith("neuronxcc.")


def imported_names(statements: Iterable[ast.stmt], file: str = "") -> Iterator[ImportedName]:
    """Every name that the import statements of a file bind.

    The path of a relative import begins with a dot, and goes on from the folder of the file.
    """
    for node in statements:
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                path = alias.name if alias.asname else bound
                yield ImportedName(bound, path, node, alias)
        elif isinstance(node, ast.ImportFrom):
            around = ["", *PurePath(file).parts[: -node.level]] if node.level else []
            for alias in node.names:
                parts = [*around, *([node.module] if node.module else []), alias.name]
                yield ImportedName(alias.asname or alias.name, ".".join(parts), node, alias)


def dotted(node: ast.AST | None) -> str | None:
    """ "a.b.c" for a chain of attributes on a name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else None
    return None


@cache
def shorten(path: str) -> str:
    """ "neuronxcc.nki.language.load" → "nl.load"."""
    for prefix, short in _PREFIXES:
        if path == prefix:
            return short
        if path.startswith(prefix + "."):
            return short + path[len(prefix) :]
    return path
