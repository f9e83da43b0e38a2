"""New statements over several lines where one line is too long for the file."""

from __future__ import annotations

import re
from collections.abc import Iterator

WIDTH = 96  # columns of a new line
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def call_text(name: str, arguments: list[tuple[str, str]], width: int) -> str:
    """`name(a=x, b=y)`, one argument per line if it does not fit."""
    parts = [f"{k}={_joined(v)}" if k else _joined(v) for k, v in arguments]
    line = f"{name}({', '.join(parts)})"
    if len(line) <= width and "\n" not in line:
        return line
    inner = "".join(f"    {p},\n" for p in parts)
    return f"{name}(\n{inner})"


_BREAK = re.compile(r"(?<=[(\[{])\s*\n\s*|\s*\n\s*(?=[)\]}])|(\s*\\?\n\s*)")


def _joined(text: str) -> str:
    """An expression on one line: its lines fitted where it was."""
    if "\n" not in text or set("\"'#") & set(text):
        return text
    return _BREAK.sub(lambda found: " " if found[1] else "", text)


def fitted(text: str, width: int) -> str:
    """The statement with each line that is too long broken inside its largest brackets."""
    return "\n".join(piece for line in text.split("\n") for piece in _pieces(line, width))


def _pieces(line: str, width: int) -> Iterator[str]:
    is_long = len(line) > width and not set("\"'#") & set(line)
    if is_long and (terms := _sum(line)) is not None:
        yield from terms
        return
    spans = list(_brackets(line)) if is_long else []
    if not spans:
        yield line
        return
    first, last = max(spans, key=lambda span: span[1] - span[0])
    indent = line[: len(line) - len(line.lstrip(" "))]
    parts = list(_parts(line[first + 1 : last]))
    yield line[: first + 1]
    for k, part in enumerate(parts):
        comma = "," if k < len(parts) - 1 or _takes_comma(line, first, parts) else ""
        yield from _pieces(f"{indent}    {part}{comma}", width)
    yield from _pieces(indent + line[last:], width)


_ARGUMENT = re.compile(r"( *)(\w+=)(?![\[({=])(.*[^,])(,?)")


def _sum(line: str) -> Iterator[str] | None:
    """The terms of an argument that is a sum, one a line in parentheses; None for another line."""
    found = _ARGUMENT.fullmatch(line)
    places = [0, *_signs(found[3])] if found else []
    if found is None or len(places) < 2:
        return None
    indent, name, value, comma = found.groups()
    terms = [value[i:j].strip() for i, j in zip(places, [*places[1:], None], strict=True)]
    return iter([f"{indent}{name}(", *(f"{indent}    {t}" for t in terms), f"{indent}){comma}"])


def _signs(value: str) -> Iterator[int]:
    """The places of `+` and `-` between spaces, outside of brackets."""
    depth = 0
    for place, character in enumerate(value):
        depth += (character in _CLOSING) - (character in _CLOSING.values())
        if depth == 0 and value[place - 1 : place + 2] in (" + ", " - "):
            yield place


def _takes_comma(line: str, opening: int, parts: list[str]) -> bool:
    """Whether a comma behind the last part changes nothing."""
    is_call = line[opening] == "(" and (line[:opening][-1:].isalnum() or line[opening - 1] in "_])")
    return len(parts) > 1 or (is_call and " for " not in parts[0])


def _brackets(line: str) -> Iterator[tuple[int, int]]:
    """First and last place of each outermost pair of brackets that has something inside."""
    depth, opened = 0, 0
    for place, character in enumerate(line):
        if character in _CLOSING:
            opened = opened if depth else place
            depth += 1
        elif character in _CLOSING.values():
            depth -= 1
            if depth == 0 and place > opened + 1:
                yield opened, place


def _parts(inside: str) -> Iterator[str]:
    """The text between brackets, split at its own commas."""
    depth, start = 0, 0
    for place, character in enumerate(inside):
        depth += (character in _CLOSING) - (character in _CLOSING.values())
        if character == "," and depth == 0:
            yield inside[start:place].strip()
            start = place + 1
    if inside[start:].strip():
        yield inside[start:].strip()
