"""The published numbers as records, and their programs.

points.toml says what each field means. A point inherits what its source says for all of its points.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

from neuroncore.program import Program, parse_program

HERE = Path(__file__).parent

NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "1": 1.0, "GB/s": 1.0, "TFLOPS": 1.0}
"""What a unit is in the timeline's; fractions and rates stay as they are."""

EXPLICIT = (1, 2, 4, 5)
"""Sections whose instructions are known one by one; the others passed through a closed compiler."""


@dataclass(frozen=True, slots=True)
class Point:
    """One published number and how to predict it."""

    id: str
    section: int
    family: str
    device: str
    cite: str
    value: float
    unit: str
    read: str
    of: str | None = None
    kind: str | None = None
    to: str | None = None
    uncertainty: float = 0.0
    program: str = ""
    sizes: Mapping[str, int | str] = field(default_factory=dict)
    ladder: str | None = None
    bottleneck: tuple[str, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    reference: bool = False
    gives: tuple[str, ...] = ()
    readings: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    flags: tuple[str, ...] = ()
    """Transformations of the toolchain that the source says were switched off."""
    confidence: str = "A"

    @property
    def measured(self) -> float:
        """The published number in nanoseconds, or as a fraction."""
        return self.value * NANOSECONDS[self.unit]

    @property
    def publication(self) -> str:
        """Who published it, and in which document."""
        return ", ".join(self.cite.split(", ")[:2])

    @property
    def is_explicit(self) -> bool:
        return self.section in EXPLICIT

    @property
    def is_independent(self) -> bool:
        """Whether no constant was read off it."""
        return not self.gives and not self.reference

    @property
    def key(self) -> tuple[str, tuple[tuple[str, int | str], ...]]:
        """Which program it is of: points of one program share a timeline."""
        return self.program or self.id, tuple(sorted(self.sizes.items()))

    def build(self) -> Program:
        """Its program; statements know their lines in the text."""
        return _program(*self.key)


@cache
def _program(name: str, sizes: tuple[tuple[str, int | str], ...]) -> Program:
    path = HERE / "programs" / f"{name}.txt"
    text = Template(path.read_text()).substitute(dict(sizes))
    return parse_program(text, str(path))


@cache
def all_points() -> tuple[Point, ...]:
    """Every point of points.toml, in its order. Raises TypeError for an unknown field."""
    sources = tomllib.loads((HERE / "points.toml").read_text())["source"]
    return tuple(_point(source, given) for source in sources for given in source["point"])


@cache
def unmodelled() -> tuple[dict[str, Any], ...]:
    """Published numbers without a program: id, what, value, unit, cite, and why."""
    return tuple(tomllib.loads((HERE / "unmodelled.toml").read_text(encoding="utf-8"))["row"])


def _point(source: Mapping[str, Any], given: Mapping[str, Any]) -> Point:
    shared = {name: value for name, value in source.items() if name != "point"}
    fields: dict[str, Any] = {**shared, **given}
    for name in ("bottleneck", "gives", "flags"):
        fields[name] = tuple(fields.get(name, ()))
    return Point(**fields)
