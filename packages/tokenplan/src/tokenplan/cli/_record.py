"""Run by nki-run in a process of its own: writes the program of a kernel on specs to a file.

Its arguments: the file to write, the kernel's module or file, the function, a spec per argument.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
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
    kernel = _module(where)
    for part in function.split("."):
        if not hasattr(kernel, part):
            raise LaunchError(f"{where} has no {function}")
        kernel = getattr(kernel, part)
    arguments, named = [], {}
    for text in specs:
        name, equals, value = text.partition("=")
        if equals:
            named[name.strip()] = _argument(value)
        else:
            arguments.append(_argument(text))
    Path(file).write_bytes(pickle.dumps(program_of(kernel, *arguments, **named)))


def _module(where: str) -> Any:
    if not where.endswith(".py"):
        sys.path.insert(0, str(Path.cwd()))
        return importlib.import_module(where)
    path = Path(where)
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module


def _argument(text: str) -> Any:
    """f32[2048, 512] as (shape, dtype); anything else as Python reads it."""
    found = _SPEC.fullmatch(text)
    if found is not None:
        shape = tuple(int(n) for n in found[2].split(",") if n.strip())
        return shape, resolve(found[1]).name
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        raise LaunchError(
            f"--spec {text!r} is neither a tensor nor a Python value",
            expected="such as x=f32[128,512] or scale=0.125",
        ) from None


if __name__ == "__main__":
    main()
