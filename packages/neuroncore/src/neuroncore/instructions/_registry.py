"""Finds every record: each public module of this folder may define some."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import neuroncore.instructions as package
from neuroncore.instructions._record import Instruction


def _find() -> dict[str, Instruction]:
    names = (m.name for m in iter_modules(package.__path__) if not m.name.startswith("_"))
    modules = [import_module(f"{package.__name__}.{name}") for name in sorted(names)]
    records = [v for m in modules for v in vars(m).values() if isinstance(v, Instruction)]
    return {record.name: record for record in sorted(records, key=lambda r: r.name)}


INSTRUCTIONS: dict[str, Instruction] = _find()
