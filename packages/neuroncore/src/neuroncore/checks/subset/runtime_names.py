"""Values of a file's names in a running program, where its text does not determine them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any

from neuroncore.enums import MemorySpace


def names_seen_by(function: Callable[..., Any]) -> dict[str, Any]:
    """The globals of a function, and what it has of the functions around it."""
    code, cells = function.__code__, function.__closure__ or ()
    around = {n: cell for n, cell in zip(code.co_freevars, cells, strict=True) if _is_bound(cell)}
    return {**function.__globals__, **{n: cell.cell_contents for n, cell in around.items()}}


def _is_bound(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # a name that is assigned later
        return False


def names_of_file(file: str) -> Mapping[str, Any]:
    """The globals of the module that was imported from a file; none if there is none."""
    modules = (m for m in list(sys.modules.values()) if isinstance(m, ModuleType))
    return next((vars(m) for m in modules if vars(m).get("__file__") == file), {})


def path_of(node: ast.AST | None, names: Mapping[str, Any]) -> str | None:
    """The dotted name of the function, module or memory that an expression is.

    Followed are names, and attributes of modules; None for everything else.
    """
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in names:
        return None
    value = names[node.id]
    while parts and isinstance(value, ModuleType):
        name = parts.pop()
        if name not in vars(value):
            return ".".join([value.__name__, name, *reversed(parts)])
        value = vars(value)[name]
    return None if parts else _own_name(value)


def _own_name(value: Any) -> str | None:
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, MemorySpace):
        return f"nki.language.{value.name}"
    if isinstance(value, FunctionType):
        return f"{value.__module__.partition('.')[0]}.{value.__qualname__}"
    return None
