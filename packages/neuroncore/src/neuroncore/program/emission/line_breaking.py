"""Long lines of source on several, broken where brackets allow it."""

from __future__ import annotations

from collections.abc import Iterator

INDENT = "    "
_CLOSES = {"(": ")", "[": "]", "{": "}"}


def folded(text: str, room: int) -> list[str]:
    """`text` as lines of at most `room` characters: the content of its longest brackets goes on
    lines of its own, as many items on each as fit; a longer item is broken in the same way.

    A name or number that is longer than the room stays whole.

    >>> folded("x = f(first, second, third)", 16)
    ['x = f(', '    first,', '    second,', '    third', ')']
    """
    if len(text) <= room:
        return [text]
    span = _longest_brackets(text)
    if span is None:
        return _at_signs(text, room)
    start, end = span
    inside = _filled(_items(text[start + 1 : end]), room - len(INDENT))
    return [text[: start + 1], *(INDENT + line for line in inside), text[end:]]


def _longest_brackets(text: str) -> tuple[int, int] | None:
    """Where the outermost brackets with the most in them open and close; none that hold nothing."""
    spans = list(_outermost(text))
    best = max(spans, key=lambda s: s[1] - s[0], default=None)
    return best if best is not None and best[1] - best[0] > 1 else None


def _outermost(text: str) -> Iterator[tuple[int, int]]:
    open_at, waiting = 0, list[str]()
    for at, sign in _code(text):
        if sign in _CLOSES:
            open_at = at if not waiting else open_at
            waiting.append(_CLOSES[sign])
        elif waiting and sign == waiting[-1]:
            waiting.pop()
            if not waiting:
                yield open_at, at


def _code(text: str) -> Iterator[tuple[int, str]]:
    """The signs that are in no string."""
    quote = ""
    for at, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote and text[at - 1] != "\\" else quote
        elif sign in "\"'":
            quote = sign
        else:
            yield at, sign


def _items(text: str) -> list[str]:
    """The parts of a text between commas outside of brackets."""
    depth, cuts = 0, [-1]
    for at, sign in _code(text):
        depth += (sign in _CLOSES) - (sign in _CLOSES.values())
        if sign == "," and not depth:
            cuts.append(at)
    return [text[a + 1 : b].strip() for a, b in zip(cuts, [*cuts[1:], len(text)], strict=True)]


def _filled(items: list[str], room: int) -> list[str]:
    """As many items on a line as fit, with the commas between them."""
    lines: list[str] = []
    for number, item in enumerate(items):
        piece = item if number == len(items) - 1 else f"{item},"
        if lines and len(lines[-1]) + 1 + len(piece) <= room and piece:
            lines[-1] += f" {piece}"
        elif piece:
            lines += folded(piece, room)
    return lines


def _at_signs(text: str, room: int) -> list[str]:
    """A sum, inside brackets, before its signs."""
    lines: list[str] = []
    for term in text.replace(" + ", "\n+ ").replace(" - ", "\n- ").split("\n"):
        if lines and len(lines[-1]) + 1 + len(term) <= room:
            lines[-1] += f" {term}"
        else:
            lines.append(term)
    return lines
