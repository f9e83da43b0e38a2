"""Source that only tests use is dead, and so is a module that nothing reaches.

Users of a name are the source of all packages, programs, examples, kernels (the names of the NKI
API) and pages. `kept_names.toml` has the exceptions, each with its reason.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
from imports import REGISTRIES, Graph, Module, import_graph, source_modules
from members import ROOT, members
from vulture import Vulture

from neuroncore.instructions import INSTRUCTIONS

pytestmark = pytest.mark.timeout(1800)  # the whole tree is read twice
# Called by a framework or a protocol, never by name.
IGNORED_NAMES = ["pytest_*", "pytestmark", "visit_*", "leave_*"]
IGNORED_DECORATORS = ["@nox.session", "@*.fixture"]
REGISTERING_DECORATORS = [
    "@implements",
    "@implements_ufunc",
    "@method",
]  # of NumPy's functions and methods
SOURCE = ("packages", "tools", "workspace", "examples", "benchmarks", "noxfile.py")
CASE_FILES = ("examples", "tests/corpora")  # their TOML files name kernels and references
BY_NAME = ["*/corpora/styles/*.py", "*/end_to_end/device_loops/*"]
"""Kernels in the styles of others, and functions that tests look up by the name of a kernel."""
PAGES = ("README.md", "docs/*.md", "packages/*/README.md", "tools/*/README.md")
API = ROOT / "tests" / "coverage" / "nki_names.json"
TABLES = tomllib.loads(Path(__file__).with_name("kept_names.toml").read_text(encoding="utf-8"))


class ExportsAreNoUse(Vulture):
    """Vulture, which counts a name in `__all__` as used."""

    def visit_Assign(self, node: ast.Assign) -> None:  # noqa: N802  # name of ast.NodeVisitor
        pass


def words_of(paths: Iterable[Path]) -> set[str]:
    return {w for p in paths for w in re.findall(r"[A-Za-z_]\w*", p.read_text(encoding="utf-8"))}


@cache
def called_elsewhere() -> set[str]:
    """Names in case files, pages and the NKI API, and the instructions, found by a registry."""
    cases = words_of(p for f in CASE_FILES for p in (ROOT / f).rglob("*.toml"))
    pages = words_of(p for glob in PAGES for p in ROOT.glob(glob))
    api = set(re.findall(r"\w+", json.dumps(json.loads(API.read_text(encoding="utf-8")))))
    return cases | pages | api | {name.upper() for name in INSTRUCTIONS}


def scan(search: Vulture, folders: Iterable[str], exclude: list[str]) -> set[tuple[str, str]]:
    """(package or file, name) of what `folders` define and do not use."""
    search.scavenge([str(ROOT / name) for name in folders], exclude=exclude)
    items = [i for i in search.get_unused_code(min_confidence=60) if i.typ != "import"]
    return {(owner(Path(i.filename)), i.name) for i in items}


def owner(path: Path) -> str:
    """The import package of a source file; the path of any other."""
    package = next((m.module for m in members() if path.is_relative_to(m.source)), None)
    return package or path.relative_to(ROOT).as_posix()


def registered() -> list[str]:
    """Names assigned in the modules of registries, which look for records among their values."""
    modules = (m for n, m in source_modules().items() if n in entries() and m.folder in REGISTRIES)
    trees = (ast.parse(module.path.read_text(encoding="utf-8")) for module in modules)
    names = (n for tree in trees for s in tree.body for n in ast.walk(s) if not _is_definition(s))
    return [n.id for n in names if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def _is_definition(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.FunctionDef | ast.ClassDef)


@cache
def unused() -> set[str]:
    decorators = IGNORED_DECORATORS + REGISTERING_DECORATORS
    options = {"ignore_names": IGNORED_NAMES + registered(), "ignore_decorators": decorators}
    in_source = scan(ExportsAreNoUse(**options), SOURCE, ["*/tests/*"])
    everywhere = scan(Vulture(**options), (*SOURCE, "tests"), BY_NAME)
    found = in_source | {(place, name) for place, name in everywhere if "/" in place}
    return {f"{place}:{name}" for place, name in found if name not in called_elsewhere()}


def test_everything_has_a_user_or_a_stated_reason():
    assert sorted(unused() - TABLES["names"].keys()) == []


def test_every_stated_reason_is_still_needed():
    assert sorted(TABLES["names"].keys() - unused()) == []


def reached(graph: Graph, roots: Iterable[str]) -> set[str]:
    """The modules that `roots` import, directly or not; importing a module runs its packages."""
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name in found or name not in graph:
            continue
        found.add(name)
        waiting += [*graph[name], name.rpartition(".")[0]]
    return found


def by_name(module: Module) -> set[str]:
    """The modules whose names are texts of a module, which imports them when it needs them."""
    tree = ast.parse(module.path.read_text(encoding="utf-8"))
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {text for text in texts if isinstance(text, str) and "." in text}


def test_every_module_is_reached_from_a_package_a_command_or_a_registry():
    modules = source_modules()
    roots = [name for name, module in modules.items() if is_root(module)]
    graph = {name: found | by_name(modules[name]) for name, found in import_graph(modules).items()}

    unreached = modules.keys() - reached(graph, roots)

    kept = TABLES["modules"].keys()
    assert sorted(m for m in unreached if not any(m.startswith(k) for k in kept)) == []
    assert sorted(k for k in kept if not any(m.startswith(k) for m in unreached)) == []


def is_root(module: Module) -> bool:
    """Packages, programs, entries of registries and of entry points."""
    named = "." not in module.name or module.name in entries() or module.name in commands()
    return named or is_program(module)


@cache
def commands() -> set[str]:
    """The modules that `python -m PACKAGE` starts."""
    mains = [
        text for m in members() for f in m.source.glob("__main__.py") for text in [f.read_text()]
    ]
    form = r"(?:^from |entry_point\(\"[\w-]+\", \")([\w.]+)(?: import main$|\")"
    return {name for text in mains for name in re.findall(form, text, re.M)}


def is_program(module: Module) -> bool:
    is_main = module.path.name == "__main__.py"
    return is_main or 'if __name__ == "__main__"' in module.path.read_text(encoding="utf-8")


@cache
def entries() -> set[str]:
    """Modules that a registry imports by their folder, and modules that pyproject files name."""
    texts = [(m.directory / "pyproject.toml").read_text(encoding="utf-8") for m in members()]
    entry_points = {e for t in texts for e in re.findall(r'= "(\w+\.[\w.]+)(?::\w+)?"', t)}
    return entry_points | {n for n, m in source_modules().items() if m.folder in REGISTRIES}
