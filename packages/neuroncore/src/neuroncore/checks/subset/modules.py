"""Source files as trees: the definitions of their names, in the file and in the files beside it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from neuroncore.checks.subset.runtime_names import names_of_file, path_of
from neuroncore.python_source import parse_python

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Import:
    """`import module` or `from module import attribute`; `level` counts the leading dots."""

    module: str
    attribute: str | None = None
    level: int = 0

    @property
    def path(self) -> str:
        """The dotted name, as far as it is absolute."""
        name = f"{self.module}.{self.attribute}" if self.attribute else self.module
        return "." * self.level + name


@dataclass(frozen=True)
class Module:
    """One parsed file; `names` is what its names are at run time, where it has been imported."""

    file: str
    tree: ast.Module
    names: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def imports(self) -> dict[str, Import]:
        """Every imported name of the file, also in its functions."""
        found: dict[str, Import] = {}
        for node in ast.walk(self.tree):
            match node:
                case ast.Import(names=names):
                    for alias in names:
                        root = alias.name.partition(".")[0]
                        found[alias.asname or root] = Import(alias.name if alias.asname else root)
                case ast.ImportFrom(module=module, names=names, level=level):
                    for alias in names:
                        name = alias.asname or alias.name
                        found[name] = Import(module or "", alias.name, level)
        return found

    @cached_property
    def definitions(self) -> dict[str, Definition]:
        """Functions and classes by name; of several of a name, the outermost."""
        found: dict[str, Definition] = {}
        for node in _breadth_first(self.tree):
            if isinstance(node, Definition):
                found.setdefault(node.name, node)
        return found

    @cached_property
    def constants(self) -> dict[str, ast.expr]:
        """Names assigned once at module level, with their expressions."""
        found: dict[str, list[ast.expr]] = {}
        for node in self.tree.body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    found.setdefault(name, []).append(value)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    found.setdefault(name, []).append(value)
        return {name: values[0] for name, values in found.items() if len(values) == 1}

    @cached_property
    def loop_bodies(self) -> frozenset[str]:
        """The names of the functions that loops on the device run."""
        calls = (n for n in ast.walk(self.tree) if isinstance(n, ast.Call))
        found = [(call, _LOOPS.get(self.nki(call.func) or "")) for call in calls]
        bodies = (_argument(call, at, "body_fun") for call, at in found if at is not None)
        return frozenset(node.id for node in bodies if isinstance(node, ast.Name))

    def dotted(self, node: ast.AST | None) -> str | None:
        """The full name of what an expression refers to, if its first name is imported."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.imports:
            return None
        return ".".join([self.imports[node.id].path, *reversed(parts)])

    def nki(self, node: ast.AST | None) -> str | None:
        """The same, for names of NKI alone and without the package of 0.1 in front.

        What a name is at run time comes before what the imports of the file say.
        """
        return _in_nki(path_of(node, self.names)) or _in_nki(self.dotted(node))


_LOOPS = {"nki.language.fori_loop": 2, "nki.language.while_loop": 1}
"""The loops on the device that run a function, and the position of that argument."""


def _argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """The argument of a call at a position, or by name."""
    if position < len(call.args):
        return call.args[position]
    return next((k.value for k in call.keywords if k.arg == name), None)


def _in_nki(path: str | None) -> str | None:
    """A dotted name as NKI's own, such as nki.language.load; None where it is not."""
    package, _, rest = (path or "").partition(".")
    if package == "nki_beta1":  # 0.1 without the switch: from nki_beta1 import nl
        name, _, more = rest.partition(".")
        path = ".".join(part for part in (_DIRECTLY.get(name, name), more) if part)
    path = (path or "").removeprefix("neuronxcc.")
    return path if path.partition(".")[0] == "nki" else None


_DIRECTLY = {"nl": "nki.language", "nisa": "nki.isa", "nt": "nki.typing"}


def _breadth_first(tree: ast.Module) -> Iterator[ast.AST]:
    """Statements level by level; what a class holds belongs to the class."""
    todo: list[ast.AST] = list(tree.body)
    while todo:
        below: list[ast.AST] = []
        for node in todo:
            yield node
            if not isinstance(node, ast.ClassDef):
                below += [n for n in ast.iter_child_nodes(node) if isinstance(n, _HOLDERS)]
        todo = below


_HOLDERS = (ast.stmt, ast.excepthandler, ast.match_case)


@dataclass(slots=True)
class Project:
    """A file and what it imports from the folders `path`; nothing is imported, all is read."""

    path: Sequence[Path] = ()
    names: Mapping[Path, Mapping[str, Any]] | None = None
    """What names are at run time, by file; None where nothing of the project has been imported."""
    _modules: dict[Path, Module | None] = field(default_factory=dict)
    _files: dict[tuple[Path, int, str], Module | None] = field(default_factory=dict)

    def load(self, file: Path) -> Module | None:
        """The module of a file; None if it cannot be read or is not Python."""
        if file not in self._modules:
            try:
                tree = parse_python(file.read_bytes())
                self._modules[file] = Module(str(file), tree, self._names(file))
            except (OSError, SyntaxError):
                self._modules[file] = None
        return self._modules[file]

    def _names(self, file: Path) -> Mapping[str, Any]:
        if self.names is None:
            return {}
        return self.names.get(file) or names_of_file(str(file))

    def find(self, module: Module, node: ast.AST) -> tuple[Module, Definition] | None:
        """The function or class that a name or attribute refers to, if we have its source."""
        match node:
            case ast.Name(id=name):
                return self._lookup(module, name, set())
            case ast.Attribute(value=value, attr=name):
                owner = self._module(module, value)
                return self._lookup(owner, name, set()) if owner else None
        return None

    def closure(self, module: Module) -> list[Module]:
        """The module and what it imports from our folders, each once."""
        found: dict[str, Module] = {}
        todo = [module]
        while todo:
            part = todo.pop(0)
            if part.file in found:
                continue
            found[part.file] = part
            for origin in part.imports.values():
                inside = ".".join(filter(None, (origin.module, origin.attribute)))
                names = (origin.module, inside) if origin.attribute else (origin.module,)
                owners = (self._file(part, name, origin.level) for name in names)
                todo += [owner for owner in owners if owner is not None]
        return list(found.values())

    def _lookup(
        self, module: Module, name: str, seen: set[tuple[str, str]]
    ) -> tuple[Module, Definition] | None:
        if (module.file, name) in seen:
            return None
        seen.add((module.file, name))
        if name in module.definitions:
            return module, module.definitions[name]
        origin = module.imports.get(name)
        if origin is None or origin.attribute is None:
            return None
        owner = self._file(module, origin.module, origin.level)
        return self._lookup(owner, origin.attribute, seen) if owner else None

    def _module(self, module: Module, node: ast.AST) -> Module | None:
        """The module that an expression such as `package.part` refers to."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        origin = module.imports.get(node.id) if isinstance(node, ast.Name) else None
        if origin is None:
            return None
        names = [origin.module, origin.attribute or "", *reversed(parts)]
        return self._file(module, ".".join(filter(None, names)), origin.level)

    def _file(self, module: Module, name: str, level: int) -> Module | None:
        """The source of module `name`, seen from another module."""
        here = Path(module.file).parent
        if (here, level, name) not in self._files:
            file = self._search(here, name, level)
            self._files[here, level, name] = self.load(file) if file else None
        return self._files[here, level, name]

    def _search(self, here: Path, name: str, level: int) -> Path | None:
        parts = name.split(".") if name else []
        folders = [here.joinpath(*[".."] * (level - 1))] if level else self.path
        for folder in folders:
            place = folder.joinpath(*parts)
            for file in (place.with_suffix(".py") if parts else None, place / "__init__.py"):
                if file is not None and file.is_file():
                    return file.resolve()
        return None
