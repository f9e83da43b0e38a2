"""Numbers among options."""

from __future__ import annotations

import argparse


def positive(text: str) -> int:
    """A count of at least one. Raises ArgumentTypeError, which is said with the option's name."""
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return number
