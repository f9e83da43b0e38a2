"""Inert stand-ins for packages that a kernel file imports for its host code (torch, jax, ...).

Importing from them, annotating, subclassing and decorating with them works. Any use that needs
the package itself (a call, a truth value, an iteration) is an error that names it.
"""

from __future__ import annotations
import __future__

import ast
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any


class AbsentError(ImportError):
    """Code under test used a package that is not there."""


class _Inert(type):
    """Classes of no content: every attribute is another one."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return inert(f"{cls.__module__}.{name}")

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if not cls.__dict__.get("is_stand_in"):  # a class of the file under test
            return super().__call__(*args, **kwargs)
        if len(args) == 1 and callable(args[0]) and not kwargs:  # used as a decorator
            return args[0]
        raise AbsentError(f"{cls.__module__} is a stand-in and cannot be called")

    def __getitem__(cls, item: Any) -> Any:
        return cls

    def __or__(cls, other: Any) -> Any:
        return cls

    __ror__ = __or__

    def __bool__(cls) -> bool:
        raise AbsentError(f"{cls.__module__} is a stand-in: it is neither true nor false")

    def __iter__(cls) -> Any:
        raise AbsentError(f"{cls.__module__} is a stand-in: it has no elements")


def inert(name: str) -> Any:
    """A class in place of `name`; its `__module__` is that name."""
    return _Inert(name.rpartition(".")[2] or name, (), {"__module__": name, "is_stand_in": True})


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Answers imports of the packages that it was made for, and of everything below them."""

    def __init__(self, packages: Sequence[str]) -> None:
        self.packages = frozenset(packages)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if not any(f"{fullname}.".startswith(f"{package}.") for package in self.packages):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__

        def missing(attribute: str) -> Any:
            if attribute.startswith("__"):
                raise AttributeError(attribute)
            return inert(f"{name}.{attribute}")

        vars(module)["__getattr__"] = missing


Parse = Callable[[bytes, str], ast.Module]

_VENDOR = ("neuronxcc", "nki")  # what the switch answers: a name that it lacks is an error
# What may still run in a module after a statement that needed an absent package.
_DEFINITIONS = (
    *(ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
    *(ast.Assign, ast.AnnAssign),
)


class _StatementLoader(importlib.machinery.SourceFileLoader):
    """Runs a module statement by statement, past host code that needs an absent package.

    So are modules of the repository that its build generates. The names that such a statement
    binds become stand-ins; after it, only imports, definitions and assignments run.
    """

    parse: Parse = staticmethod(ast.parse)

    def exec_module(self, module: ModuleType) -> None:
        tree = self.parse(self.get_data(self.path), self.path)
        is_whole = True
        for statement in tree.body:
            if is_whole or isinstance(statement, _DEFINITIONS):
                is_whole = self._execute(statement, tree, module) and is_whole

    def _execute(self, statement: ast.stmt, tree: ast.Module, module: ModuleType) -> bool:
        part = ast.Module([statement], tree.type_ignores)
        code = compile(part, self.path, "exec", flags=_features(tree), dont_inherit=True)
        try:
            exec(code, vars(module))
        except ImportError as missing:
            if (missing.name or "").partition(".")[0] in _VENDOR:
                raise
            made = {name: inert(f"{module.__name__}.{name}") for name in _bound_by(statement)}
            vars(module).update(made)
            return False
        return True


def _features(tree: ast.Module) -> int:
    """The flags of the module's `from __future__ import` names."""
    imports = [s for s in tree.body if isinstance(s, ast.ImportFrom) and s.module == "__future__"]
    names = [alias.name for statement in imports for alias in statement.names]
    return sum(getattr(__future__, name).compiler_flag for name in names)


def _bound_by(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
    return {name.id for name in names if isinstance(name.ctx, ast.Store)}


class _HostFinder(importlib.abc.MetaPathFinder):
    """Loads what lies below a folder with `_StatementLoader`."""

    def __init__(self, folder: str, parse: Parse) -> None:
        self.folder = Path(folder)
        self.parse = parse

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            return None
        if not Path(spec.loader.path).is_relative_to(self.folder):
            return None
        loader = spec.loader = _StatementLoader(fullname, spec.loader.path)
        loader.parse = self.parse  # type: ignore[method-assign]
        return spec


def install(packages: Sequence[str], folder: str, parse: Parse = ast.parse) -> None:
    """From now on `import` of these packages gives stand-ins, and modules in `folder` load
    without the host code that needs them. `parse` makes the tree that runs of a module's source.
    """
    sys.meta_path[:0] = [_Finder(packages), _HostFinder(folder, parse)]
