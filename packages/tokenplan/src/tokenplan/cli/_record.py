"""Run by nki-run in a process of its own: writes the program of a kernel on specs to a file,
or what is wrong with the names and specs.

Its arguments: the file to write, the kernel's module or file, the function, a spec per argument.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import pickle
import re
import sys
from pathlib import Path
from typing import Any

from neuroncore.errors import LaunchError
from nki_dtypes import resolve

_SPEC = re.compile(r"\s*([\w.]+)\s*\[([\d\s,]*)\]\s*")


def main() -> None:
    program_of = importlib.import_module("nki_runtime").program_of  # the child's, not ours
    file, where, function, *specs = sys.argv[1:]
    try:
        kernel = _kernel(where, function)
        arguments, named = _arguments(specs)
        _check_names(kernel, arguments, named)
    except LaunchError as wrong:
        wrong.place = None
        Path(file).write_bytes(pickle.dumps(str(wrong)))
        return
    Path(file).write_bytes(pickle.dumps(program_of(kernel, *arguments, **named)))


def _kernel(where: str, function: str) -> Any:
    kernel = _module(where)
    for part in function.split("."):
        if not hasattr(kernel, part):
            raise LaunchError(f"{where} has no {function}")
        kernel = getattr(kernel, part)
    if not callable(kernel):
        raise LaunchError(f"{function} of {where} is not a kernel but {type(kernel).__name__}")
    return kernel


def _arguments(specs: list[str]) -> tuple[list[Any], dict[str, Any]]:
    """Those in order and those by name."""
    arguments, named = [], {}
    for text in specs:
        name, equals, value = text.partition("=")
        if equals:
            named[name.strip()] = _argument(value)
        else:
            arguments.append(_argument(text))
    return arguments, named


def _check_names(kernel: Any, arguments: list[Any], named: dict[str, Any]) -> None:
    try:
        signature = inspect.signature(kernel)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*arguments, **named)
    except TypeError as wrong:
        raise LaunchError(f"--spec does not fit the kernel: {wrong}") from None


def _module(where: str) -> Any:
    if not where.endswith(".py"):
        sys.path.insert(0, str(Path.cwd()))
        if not _exists(where):
            raise LaunchError(f"no module {where}")
        return importlib.import_module(where)
    path = Path(where)
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ModuleNotFoundError, ValueError):
        return False


def _argument(text: str) -> Any:
    """f32[2048, 512] as (shape, dtype); anything else as Python reads it."""
    found = _SPEC.fullmatch(text)
    if found is not None:
        shape = tuple(int(n) for n in found[2].split(",") if n.strip())
        try:
            return shape, resolve(found[1]).name
        except (TypeError, ValueError) as unknown:
            raise LaunchError(f"--spec {text.strip()!r}: {unknown}") from None
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        raise LaunchError(
            f"--spec {text!r} is neither a tensor nor a Python value",
            expected="such as x=f32[128,512] or scale=0.125",
        ) from None


if __name__ == "__main__":
    main()
