"""Python source of users: what cannot be parsed is a SyntaxError in every case."""

from __future__ import annotations

import ast


def parse_python(source: str | bytes, path: str = "<unknown>") -> ast.Module:
    """The tree of a module.

    Raises SyntaxError, also where `ast.parse` raises ValueError (null bytes), RecursionError or
    MemoryError (brackets nested too deeply).
    """
    try:
        return ast.parse(source, path)
    except SyntaxError:
        raise
    except ValueError as wrong:
        raise SyntaxError(str(wrong), (path, 1, 1, "")) from None
    except (RecursionError, MemoryError):
        raise SyntaxError("nested too deeply", (path, 1, 1, "")) from None
