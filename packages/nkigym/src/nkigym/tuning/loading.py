"""Functions and specs that a command line or a sweep file names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from neuroncore.commands.folders import same_folder
from neuroncore.commands.function import find_function, parse_name
from neuroncore.errors import KernelError, OptionError
from neuroncore.program import Program, parse_program
from nkigym.tiles import TileProgram, parse_tiles


def load_kernel(
    name: str, specs: Sequence[str], target: str | None = None, nki: str | None = None
) -> tuple[Program | TileProgram | Callable[..., Any], list[Any]]:
    """The function, kernel or program that `name` refers to, and its specs in order.

    Raises OptionError where the function or file is absent.
    """
    if ":" not in name and not name.endswith(".py"):
        text = _text(Path(name))
        parse = parse_tiles if text.startswith("def ") else parse_program
        return parse(text, name), [*specs]
    from nkigen_lite.cli.function import match_specs

    with same_folder(), _language(target, nki):
        function = find_function(parse_name(name))
    return function, list(match_specs(function, specs))


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except OSError as wrong:
        raise OptionError(
            f"can't open {str(file)!r}: {wrong.strerror}",
            expected="a file with a program, MODULE:FUNCTION or FILE.py:FUNCTION",
        ) from None
    except UnicodeDecodeError:
        raise OptionError(f"{file} contains no text") from None


def _language(target: str | None, nki: str | None) -> AbstractContextManager[Any]:
    """For files that import nki: NumPy arrays are given to their functions here, which a vendor's
    package does not take.
    """
    from nki_runtime import use

    try:
        return use(nki=nki, target=target, shadow=True)
    except KernelError as unknown:
        raise OptionError(
            unknown.what, expected=unknown.expected, got=unknown.got, hint=unknown.hint
        ) from None
