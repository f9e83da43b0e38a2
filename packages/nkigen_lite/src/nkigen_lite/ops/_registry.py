"""Finds every record: each public module of this folder may define some."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from nkigen_lite.ops._record import Op


def _records() -> Iterator[Op]:
    folder = str(Path(__file__).parent)
    for module in sorted(m.name for m in iter_modules([folder]) if m.name[0] != "_"):
        for value in vars(import_module(f"{__package__}.{module}")).values():
            yield from (
                r for r in (value if isinstance(value, tuple) else (value,)) if isinstance(r, Op)
            )


OPS: dict[str, Op] = {record.name: record for record in _records()}
