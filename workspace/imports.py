"""`python workspace/imports.py`: import cycles, and modules that only one other module imports.

Every import counts, also under `TYPE_CHECKING` and inside functions. `from a import b` is an import
of the module `a.b` where there is one, of `a` otherwise.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from members import members

# Found by a registry, which imports them all: no module needs to import them.
REGISTRIES = (
    "neuroncore.instructions",
    "neuroncore.checks",
    "neuroncore.checks.traps",
    "neuroncore.findings.formats",
    "nki_migrate.rules",
    "nkigen_lite.frontend.functions",
    "nkigen_lite.ops",
    "nkigen_lite.passes.decompositions",
    "nkigym.transforms",
    "tokenplan.rules",
)

Graph = Mapping[str, set[str]]


@dataclass(frozen=True, slots=True)
class Module:
    """A module of the source by its dotted name."""

    name: str
    path: Path

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def folder(self) -> str:
        return self.name if self.is_package else self.name.rpartition(".")[0]


def source_modules() -> dict[str, Module]:
    """Every module of every package by its dotted name, without `__main__`: nothing imports it, and
    it imports the command, which is on top."""
    return {
        module.name: module
        for member in members()
        for path in sorted(member.source.rglob("*.py"))
        if path.stem != "__main__"
        for module in [Module(_dotted(path.relative_to(member.source.parent)), path)]
    }


def _dotted(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def imports(module: Module, modules: Mapping[str, Module]) -> set[str]:
    """The modules among `modules` that `module` imports anywhere in its text."""
    tree = ast.parse(module.path.read_text(encoding="utf-8"))
    named = (name for node in ast.walk(tree) for name in _imported(node, module, modules))
    return {name for name in named if name in modules and name != module.name}


def _imported(node: ast.AST, module: Module, modules: Mapping[str, Module]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = _absolute(node, module)
        for alias in node.names:
            inner = f"{base}.{alias.name}"
            yield inner if inner in modules else base


def _absolute(node: ast.ImportFrom, module: Module) -> str:
    if not node.level:
        return node.module or ""
    above = module.folder.split(".")
    return ".".join([*above[: len(above) - node.level + 1], *filter(None, [node.module])])


def import_graph(modules: Mapping[str, Module]) -> dict[str, set[str]]:
    """Module → the modules that it imports."""
    return {name: imports(module, modules) for name, module in modules.items()}


def folder_graph(graph: Graph, modules: Mapping[str, Module]) -> dict[str, set[str]]:
    """Folder → the other folders that its modules import from."""
    folders: dict[str, set[str]] = {}
    for name, imported in graph.items():
        own = modules[name].folder
        others = {modules[other].folder for other in imported}
        folders.setdefault(own, set()).update(others - {own})
    return folders


def cycles(graph: Graph) -> list[list[str]]:
    """The strongly connected components of more than one node, the largest first.

    [Tarjan, "Depth-first search and linear graph algorithms", 1972]
    """
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = lowest[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
            if other in stack:
                lowest[node] = min(lowest[node], lowest[other])
        if lowest[node] == index[node]:
            start = stack.index(node)
            found.append(sorted(stack[start:]))
            del stack[start:]

    for node in graph:
        if node not in index:
            visit(node)
    return sorted((c for c in found if len(c) > 1), key=len, reverse=True)


def imported_once(graph: Graph, modules: Mapping[str, Module]) -> list[str]:
    """Modules that exactly one other module imports.

    Imports by a package's `__init__` do not count; entries of registries are left out.
    """
    importers = Counter(
        other
        for name, imported in graph.items()
        if not modules[name].is_package
        for other in imported
    )
    return [
        name
        for name, module in modules.items()
        if importers[name] == 1
        and not module.is_package
        and not (module.folder in REGISTRIES and not name.rpartition(".")[2].startswith("_"))
    ]


def main() -> int:
    """Print the cycles of files and of folders, and the modules that are imported once."""
    modules = source_modules()
    graph = import_graph(modules)
    for title, found in (
        ("files", cycles(graph)),
        ("folders", cycles(folder_graph(graph, modules))),
    ):
        print(f"{len(found)} import cycles of {title}")
        for cycle in found:
            print(f"  {len(cycle)}: {' '.join(cycle)}")
    single = imported_once(graph, modules)
    print(f"{len(single)} modules are imported by exactly one other")
    for name in single:
        print(f"  {name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
