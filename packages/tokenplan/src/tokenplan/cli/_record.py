"""Run by nki-run in a process of its own: writes the program of a kernel on specs to a folder as
`program`, in JSON, or what is wrong with the names and specs as `mistake`. For a function that
describes a Tile IR kernel, its arguments as `described`.

Its arguments: the folder, the kernel as FILE.py:FUNCTION, a spec per argument.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

from neuroncore.commands.arrays import argument_spec
from neuroncore.commands.function import find_function, parse_name
from neuroncore.errors import LaunchError
from neuroncore.program.parsing.transport import program_to_json
from nki_dtypes import resolve


def main() -> None:
    program_of = importlib.import_module("nki_runtime").program_of  # the child's, not ours
    folder, name, *specs = sys.argv[1:]
    try:
        kernel = find_function(parse_name(name))
        arguments, named = _arguments(specs)
        _check_names(kernel, arguments, named)
    except LaunchError as wrong:
        wrong.place = None
        (Path(folder) / "mistake").write_text(str(wrong), "utf-8")
        return
    program = program_of(kernel, *arguments, **named)
    if not program.body and _is_description(kernel, arguments, named):
        (Path(folder) / "described").write_text(repr((arguments, named)), "utf-8")
        return
    (Path(folder) / "program").write_text(program_to_json(program), "utf-8")


def _is_description(kernel: Any, arguments: list[Any], named: dict[str, Any]) -> bool:
    """Whether the function, which has no NKI instruction, returns a Tile IR kernel."""
    described = sys.modules.get("tokenplan.tile_ir")
    return described is not None and isinstance(kernel(*arguments, **named), described.TileKernel)


def _arguments(specs: list[str]) -> tuple[list[Any], dict[str, Any]]:
    """Positional specs and named ones."""
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
        names = ", ".join(signature.parameters) or "no argument"
        raise LaunchError(
            f"--spec does not fit the kernel: {wrong}",
            expected=f"{names}; such as --spec x=f32[128,512] for a tensor, --spec scale=0.125",
        ) from None


def _argument(text: str) -> Any:
    """f32[2048, 512] as (shape, dtype); anything else as Python reads it."""
    found = argument_spec(text)
    if found is not None:
        try:
            return found[1], resolve(found[0]).name
        except (TypeError, ValueError) as unknown:
            raise LaunchError(f"--spec {text.strip()!r}: {unknown}") from None
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise LaunchError(
            f"--spec {text!r} is neither a tensor nor a Python value",
            expected="such as x=f32[128,512] or scale=0.125",
        ) from None


if __name__ == "__main__":
    main()
