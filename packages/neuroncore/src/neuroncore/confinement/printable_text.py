"""Text of a program on the terminal of its user."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with its control characters, line ends too, as `\\x1b`: it fills one line and
    moves no cursor."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
