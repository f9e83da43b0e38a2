"""New statements over several lines where one line is too long for the file."""

from __future__ import annotations

from collections.abc import Iterator

WIDTH = 96  # columns of a new line
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def call_text(name: str, arguments: list[tuple[str, str]], width: int) -> str:
    """`name(a=x, b=y)`, one argument per line if it does not fit."""
    parts = [f"{k}={v}" if k else v for k, v in arguments]
    line = f"{name}({', '.join(parts)})"
    if len(line) <= width and "\n" not in line:
        return line
    inner = "".join(f"    {p},\n" for p in parts)
    return f"{name}(\n{inner})"


def fitted(text: str, width: int) -> str:
    """The statement with each line that is too long broken inside its largest brackets."""
    return "\n".join(piece for line in text.split("\n") for piece in _pieces(line, width))


def _pieces(line: str, width: int) -> Iterator[str]:
    spans = [] if len(line) <= width or set("\"'#") & set(line) else list(_brackets(line))
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
