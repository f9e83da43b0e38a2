"""The catalogue of traps: one record each, read from `data/`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from neuroncore.findings import Certainty

_DATA = Path(__file__).parent / "data"

HEAD = """\
import numpy as np

import nki
import nki.isa as nisa
import nki.language as nl


def load(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    return tile


def store(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out
"""
"""What the examples of 0.2 and later begin with."""


class Handling(StrEnum):
    """How the machine or its checks handle a trap."""

    DETECTED = "detected"  # `traps` reports it
    CHECKED = "checked"  # another check reports it
    REJECTED = "rejected"  # the call raises an error
    MODELLED = "modelled"  # the machine gives the values that a device gives
    UNDECIDABLE = "undecidable"  # nothing that runs here can decide it


@dataclass(frozen=True, slots=True)
class Example:
    """A program behind `HEAD`, and the NKI version and target that it runs under."""

    text: str
    nki: str = "0.6"
    target: str = "trn2"


@dataclass(frozen=True, slots=True)
class Trap:
    """One pattern that a simulator runs without complaint and a device does not.

    `device` is what a device does. `decided` is what a checker needs: the static call, a trace of
    values, or the machine itself. `by` names the check and code that reports it, the error that
    rejects it, or the reason for which it is undecidable. `bad` contains the pattern, and asserts
    the values that it gives here; `good` is the cure.
    """

    id: str
    title: str
    device: str
    source: str
    chips: str
    versions: str
    certainty: Certainty
    decided: str
    handling: Handling
    cure: str
    by: str = ""
    undefined: str = ""
    bad: Example | None = None
    good: Example | None = None


@cache
def traps() -> dict[str, Trap]:
    """Every trap by its id, in order."""
    entries = [e for file in _DATA.glob("*.toml") for e in _entries(file)]
    return {trap.id: trap for trap in sorted(map(_trap, entries), key=lambda trap: trap.id)}


@dataclass(frozen=True, slots=True)
class KnownFinding:
    """A finding on a kernel that was examined, and why the code is at fault."""

    trap: str
    where: str
    reason: str


def known_findings() -> list[KnownFinding]:
    """The findings on public and on our own kernels that were examined."""
    entries = tomllib.loads((_DATA / "known.toml").read_text(encoding="utf-8"))["known"]
    return [KnownFinding(**entry) for entry in entries]


def _entries(file: Path) -> list[dict[str, Any]]:
    return tomllib.loads(file.read_text(encoding="utf-8")).get("trap", [])


def _trap(entry: dict[str, Any]) -> Trap:
    given = {key: entry.pop(key) for key in ("nki", "target") if key in entry}
    later = {"nki": entry.pop("good_nki")} if "good_nki" in entry else {}
    fix = entry.pop("fix", {})
    if fix:
        entry["good"] = entry["bad"]
        for old, new in fix.items():
            assert old in entry["good"], f"{entry['id']}: {old}"
            entry["good"] = entry["good"].replace(old, new)
    for key, changed in (("bad", {}), ("good", later)):
        if key in entry:
            entry[key] = Example(entry[key].strip() + "\n", **given | changed)
    entry["certainty"] = Certainty(entry["certainty"])
    entry["handling"] = Handling(entry["handling"])
    return Trap(**entry)


def head_of(example: Example) -> str:
    """The code before the text of an example."""
    return "" if example.nki == "0.1" else HEAD
