"""Reads isa.txt and changes.toml."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from neuroncore.enums import DgeMode, DmaEngine, Engine, MatmulPerfMode, OobMode, ReduceCmd

VERSIONS = ("0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7")

DEFAULT_VERSION = "0.7"
"""The version of kernels that name none: what languages answer, what emitters write."""

REQUIRED: Any = type("Required", (), {"__repr__": lambda self: "<required>"})()

_ENUMS = {
    "engine": Engine,
    "dge_mode": DgeMode,
    "oob_mode": OobMode,
    "reduce_cmd": ReduceCmd,
    "matmul_perf_mode": MatmulPerfMode,
    "dma_engine": DmaEngine,
}

_LINE = re.compile(r"(\w+)\s+(\d\.\d)(?:-(\d\.\d))?\s+\((.*)\)$")
_PARAM = re.compile(r"(\*{0,2}\w*)(?::(\w+)(?:\.\.(\d+))?)?(?:=(.*))?$")


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter: its name in this version and the record field it fills."""

    name: str
    field: str
    default: Any = REQUIRED
    keyword_only: bool = False
    text: str = ""
    """The default as the stubs print it."""
    more: tuple[str, ...] = ()
    """Of a parameter that takes a list: the fields behind `field` that its elements fill."""

    @property
    def fields(self) -> tuple[str, ...]:
        """All record fields that it fills."""
        return (self.field, *self.more)

    @property
    def required(self) -> bool:
        return self.default is REQUIRED


@dataclass(frozen=True, slots=True)
class Signature:
    """One function in one version."""

    name: str
    version: str
    params: tuple[Param, ...]
    swallows: bool = False
    """0.1 functions end in **kwargs for compiler-internal options."""

    def __str__(self) -> str:
        named = [p.name for p in self.params if p.keyword_only]
        shown = [p.name for p in self.params if not p.keyword_only]
        return f"{self.name}({', '.join([*shown, *(['*'] if named else []), *named])})"


def version_tuple(version: str) -> tuple[int, int]:
    """ "0.6" → (0, 6)."""
    major, minor = version.split(".")
    return int(major), int(minor)


def span(versions: Sequence[str]) -> str:
    """Consecutive versions in words: "0.3", "0.3 and 0.4", "0.3 to 0.6"."""
    return " and ".join(versions) if len(versions) < 3 else f"{versions[0]} to {versions[-1]}"


@cache
def signature(name: str, version: str) -> Signature | None:
    """The signature of nki.isa's `name` in `version`; None where that version lacks it."""
    return next(
        (s for line in _lines().get(name, ()) for s in _parse(line) if s.version == version), None
    )


@cache
def instruction_names(version: str) -> tuple[str, ...]:
    """The instructions of a version, in the order of the table."""
    return tuple(
        name
        for name, lines in _lines().items()
        if any(version in _versions(*_matched(line)[1:3]) for line in lines)
    )


@cache
def _lines() -> dict[str, list[str]]:
    """The lines of the table by name."""
    found: dict[str, list[str]] = {}
    for line in Path(__file__).with_name("isa.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            found.setdefault(line.split(maxsplit=1)[0], []).append(line)
    return found


@cache
def _parse(line: str) -> list[Signature]:
    name, first, last, inside = _matched(line)
    params, swallows, keyword_only = [], False, False
    for text in _split(inside):
        if text.startswith("**"):
            swallows = True
        elif text == "*":
            keyword_only = True
        else:
            params.append(_param(text, keyword_only))
    made = tuple(params)
    return [Signature(name, version, made, swallows) for version in _versions(first, last)]


def _matched(line: str) -> Sequence[str]:
    """Name, first and last version, and parameters of a line."""
    match = _LINE.match(line)
    assert match, f"isa.txt: cannot read {line!r}"
    return match.groups()


def _versions(first: str, last: str | None) -> Sequence[str]:
    return VERSIONS[VERSIONS.index(first) : VERSIONS.index(last or first) + 1]


def _split(inside: str) -> list[str]:
    """At commas outside brackets."""
    parts = re.split(r",\s*(?![^()]*\))", inside)
    return [p.strip() for p in parts if p.strip()]


def _param(text: str, keyword_only: bool) -> Param:
    match = _PARAM.match(text)
    assert match, f"isa.txt: cannot read parameter {text!r}"
    name, field, last, default = match.groups()
    value = REQUIRED if default is None else _default(default)
    more = _numbered(field, int(last)) if last else ()
    return Param(name, field or name, value, keyword_only, default or "", more)


def _numbered(first: str, last: int) -> tuple[str, ...]:
    """Names from src0 up to src15."""
    stem = first.rstrip("0123456789")
    return tuple(f"{stem}{n}" for n in range(int(first[len(stem) :]) + 1, last + 1))


def _default(text: str) -> Any:
    owner, _, member = text.partition(".")
    if owner in _ENUMS:
        return _ENUMS[owner][member]
    if owner in ("nl", "np"):
        return member
    return ast.literal_eval(text)


# -- changes of meaning ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MeaningChange:
    """A call or construct that two versions accept and that means something else in each."""

    id: str
    functions: tuple[str, ...]
    """Canonical names: "nisa.topk", "nl.copy"."""
    construct: str
    """What it is about where it is not a function."""
    first: str
    """The first version with the old meaning."""
    since: str
    """The first version with the new one."""
    before: str
    after: str
    matters: str
    """What has to hold for results to differ."""
    inputs: tuple[str, ...]
    """Fills of arguments that show the difference."""
    cure: str
    source: str

    def has_old_meaning(self, version: str) -> bool:
        """Whether `version` gives it the old meaning."""
        place = VERSIONS.index
        return place(self.first) <= place(version) < place(self.since)

    def separates(self, one: str, other: str) -> bool:
        """Whether it means something else in two versions."""
        return self.has_old_meaning(one) is not self.has_old_meaning(other)

    @property
    def subject(self) -> str:
        """The subject, in words."""
        return self.construct or " and ".join(self.functions)


@cache
def meaning_changes() -> tuple[MeaningChange, ...]:
    """All of them, in the order of their versions."""
    text = Path(__file__).with_name("changes.toml").read_text(encoding="utf-8")
    return tuple(
        MeaningChange(
            row["id"],
            tuple(row.get("functions", ())),
            row.get("construct", ""),
            row["from"],
            row["since"],
            row["before"],
            row["after"],
            row["matters"],
            tuple(row["inputs"]),
            row["cure"],
            row["source"],
        )
        for row in tomllib.loads(text)["change"]
    )
