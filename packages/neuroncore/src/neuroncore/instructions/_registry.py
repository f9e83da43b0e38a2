"""Finds every record: each public module of this folder may define some."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from neuroncore.instructions._record import Instruction


def _find() -> dict[str, Instruction]:
    folder = str(Path(__file__).parent)
    names = (m.name for m in iter_modules([folder]) if not m.name.startswith("_"))
    modules = [import_module(f"{__package__}.{name}") for name in sorted(names)]
    records = [v for m in modules for v in vars(m).values() if isinstance(v, Instruction)]
    return {record.name: record for record in sorted(records, key=lambda r: r.name)}


INSTRUCTIONS: dict[str, Instruction] = _find()
