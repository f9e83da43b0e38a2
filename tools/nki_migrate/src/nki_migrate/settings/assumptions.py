"""`--assume 'kernel.arg: shape=(S, 128), dtype=bf16'`: facts that the user vouches for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

from nki_migrate.settings.request import Assumption, ConfigError

_EXPECTED = "expected 'kernel.arg: shape=(S, 128), dtype=bf16, buffer=sbuf'"
_TARGET = re.compile(r"(?P<kernel>\*|[A-Za-z_]\w*)\.(?P<argument>[A-Za-z_]\w*)")


def parse_assumption(text: str) -> Assumption:
    """One assumption; `*.x` speaks about the argument x of every kernel.

    Raises ConfigError with what was expected.
    """
    target, colon, facts = text.partition(":")
    match = _TARGET.fullmatch(target.strip())
    if not colon or match is None:
        raise ConfigError(f"--assume {text!r}: {_EXPECTED}")
    given = _keywords(text, facts)
    if unknown := set(given) - {"shape", "dtype", "buffer"} or not given:
        named = ", ".join(sorted(unknown)) if isinstance(unknown, set) else "no fact"
        raise ConfigError(f"--assume {text!r}: {named}; {_EXPECTED}")
    return Assumption(
        match["kernel"],
        match["argument"],
        shape=_shape(text, given["shape"]) if "shape" in given else None,
        dtype=_name(given.get("dtype")),
        buffer=_name(given.get("buffer")),
        text=text.strip(),
    )


def read_assumptions(path: Path) -> tuple[Assumption, ...]:
    """The assumptions of a file: one per line, blank lines and `#` comments aside."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--assume-file {path}: cannot be read: {error}") from None
    return parse_assumptions(
        line for line in lines if line.strip() and not line.strip().startswith("#")
    )


def parse_assumptions(texts: Iterable[str]) -> tuple[Assumption, ...]:
    """Several assumptions."""
    return tuple(parse_assumption(text) for text in texts)


def _keywords(text: str, facts: str) -> dict[str, ast.expr]:
    try:
        call = ast.parse(f"_({facts.strip()})", mode="eval").body
    except SyntaxError:
        raise ConfigError(f"--assume {text!r}: {_EXPECTED}") from None
    if not isinstance(call, ast.Call) or call.args:
        raise ConfigError(f"--assume {text!r}: {_EXPECTED}")
    return {keyword.arg or "**": keyword.value for keyword in call.keywords}


def _shape(text: str, value: ast.expr) -> tuple[str, ...]:
    if not isinstance(value, ast.Tuple | ast.List):
        raise ConfigError(f"--assume {text!r}: shape is a tuple; {_EXPECTED}")
    return tuple(ast.unparse(size) for size in value.elts)


def _name(value: ast.expr | None) -> str | None:
    """`bf16`, `"bf16"` and `nl.bfloat16` all name a thing by its last word."""
    if value is None:
        return None
    plain = str(value.value) if isinstance(value, ast.Constant) else ast.unparse(value)
    return plain.rpartition(".")[2]
