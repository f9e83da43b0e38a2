"""Timelines of programs that were played before, by what their time depends on."""

from __future__ import annotations

from typing import Any

from neuroncore.program import Program
from neuroncore.timeline.form import form_of
from neuroncore.timeline.result import Timeline

MOST_PROGRAMS = 256
MOST_BARS = 1 << 17
"""Of all programs that are kept; those that were not asked for longest go first."""

MOST_PRICES = 1 << 14

Key = tuple[Any, ...]

_known: dict[Key, Timeline] = {}
_prices: dict[Key, float] = {}


def key_of(program: Program, values: dict[str, float], skip_periods: bool) -> Key | None:
    """What the time of a program played as it is written depends on; None where it is unknown."""
    form = form_of(program)
    if form is None:
        return None
    return form, program.target, program.nki, skip_periods, *values.items()


def remembered(key: Key, program: Program) -> Timeline | None:
    """The timeline of a program with this key, if one was played."""
    found = _known.pop(key, None)
    if found is None:
        return None
    _known[key] = found  # the last that was asked for
    return found.of(program)


def remember(key: Key, timeline: Timeline) -> None:
    """Keep a timeline that was played, and fewer others."""
    _known[key] = timeline
    left = sum(known.num_bars for known in _known.values())
    while len(_known) > MOST_PROGRAMS or left > MOST_BARS:
        left -= _known.pop(next(iter(_known))).num_bars


def known_price(key: Key | None) -> float | None:
    """The total (ns) of a program with this key, if it was played."""
    if key is None:
        return None
    timeline = _known.get(key)
    return timeline.total_ns if timeline is not None else _prices.get(key)


def remember_price(key: Key | None, total_ns: float) -> None:
    """Keep a total."""
    if len(_prices) >= MOST_PRICES:
        _prices.clear()
    if key is not None:
        _prices[key] = total_ns


def forget() -> None:
    """Every program that was played is new again."""
    _known.clear()
    _prices.clear()
