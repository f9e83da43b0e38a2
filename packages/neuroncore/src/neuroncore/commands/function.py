"""A function that a command line names: `FILE.py:FUNCTION` or `MODULE:FUNCTION`."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from neuroncore.commands.suggestions import suggestion
from neuroncore.commands.user_folder import user_folder, user_modules
from neuroncore.errors import OptionError
from neuroncore.python_source import UNPARSABLE, check_source

_FORM = "MODULE:FUNCTION or FILE.py:FUNCTION, such as kernels.mlp:mlp or kernels/mlp.py:mlp"


class NoFunctionError(OptionError):
    """A module, file or function that is not there."""


@dataclass(frozen=True, slots=True)
class Named:
    """A function by name. `source` is the file or module as it is shown to readers."""

    where: str
    function: str

    @property
    def is_file(self) -> bool:
        return self.where.endswith(".py")

    @property
    def source(self) -> str:
        return Path(self.where).name if self.is_file else self.where

    def __str__(self) -> str:
        return f"{self.source}:{self.function}"


def parse_name(text: str, expected: str = _FORM) -> Named:
    """The parts of `FILE.py:FUNCTION`. Raises NoFunctionError, also without such a file."""
    where, colon, function = text.rpartition(":")
    if not colon or not where or not function:
        raise NoFunctionError(f"{text!r} names no function", expected=expected)
    if where.endswith(".py") and not os.path.isfile(where):  # noqa: PTH113  # no name is too long
        raise NoFunctionError(f"can't open {where!r}: no such file")
    return Named(where, function)


def find_function(named: Named) -> Callable[..., Any]:
    """The function, its module imported as Python would from here (a file: from its folder).

    Raises NoFunctionError, SourceError; what the module itself raises comes as it is.
    """
    load = _load_file if named.is_file else _load_module
    try:
        module = load(named.where)
    except UNPARSABLE:
        check_source(_file_of(named))
        raise
    return function_in(module, named)


def _file_of(named: Named) -> Path:
    spec = None if named.is_file else importlib.util.find_spec(named.where)
    return Path(spec.origin if spec is not None and spec.origin else named.where)


def function_in(module: ModuleType, named: Named) -> Callable[..., Any]:
    """The function of the module. Raises NoFunctionError."""
    found: Any = module
    for part in named.function.split("."):
        if not hasattr(found, part):
            functions = _functions(found)
            raise NoFunctionError(
                f"{named.where} has no function {named.function}",
                expected=f"one of its functions: {', '.join(functions) or 'it has none'}",
                hint=suggestion(part, functions),
            )
        found = getattr(found, part)
    if not callable(found):
        raise NoFunctionError(
            f"{named.where}:{named.function} is not a function", got=type(found).__name__
        )  # fmt: skip
    return found


def _functions(where: Any) -> list[str]:
    """The functions and kernels that a module defines."""
    return [
        name for name, value in vars(where).items()
        if getattr(value, "__module__", None) == where.__name__
        and callable(value) and not (name.startswith("_") or inspect.isclass(value))
    ]  # fmt: skip


def _load_file(where: str) -> ModuleType:
    path = Path(where).resolve()
    with user_folder(str(path.parent)):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules.setdefault(path.stem, module)
        spec.loader.exec_module(module)
    return module


def _load_module(name: str) -> ModuleType:
    if name in sys.modules.keys() - {*user_modules()}:
        return sys.modules[name]
    try:
        with user_folder(str(Path.cwd())):
            return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is None or not f"{name}.".startswith(f"{missing.name}."):
            raise
        raise NoFunctionError(f"no module is called {name!r}", expected=_FORM) from None
