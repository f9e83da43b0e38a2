"""Outcomes of runs, kept by what they depend on: sources, cases, references.

Not by the interpreters' own source: after a change to those, `--fresh` runs everything again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from nki_migrate.verify.arrays import save_array
from nki_migrate.verify.job import Outcome, read_result, write_result

FACTS = "facts.json"


def default_folder() -> Path:
    """`nki-bridge/migration` in the user's folder for caches."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "nki-bridge" / "migration"


def key_of(parts: Iterable[object]) -> str:
    """A name for what the parts say."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part if isinstance(part, bytes) else str(part).encode()
        digest.update(len(raw).to_bytes(8, "big") + raw)
    return digest.hexdigest()[:32]


class Cache:
    """A folder of outcomes; `fresh` never reads and always writes."""

    def __init__(self, folder: Path, *, fresh: bool = False) -> None:
        self.folder = folder
        self.fresh = fresh

    def outcome(self, key: str) -> Outcome | None:
        """What was kept under the key."""
        if self.fresh or not (self.folder / key / "result.json").is_file():
            return None
        return read_result(self.folder / key)

    def facts(self, key: str) -> Path | None:
        """The facts that were kept with the outcome."""
        path = self.folder / key / FACTS
        return path if path.is_file() else None

    def keep(self, key: str, outcome: Outcome) -> None:
        """Keep an outcome whole, with its facts: written aside and renamed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix="aside-", dir=self.folder))
        done = [
            {
                "arrays": [
                    save_array(array, aside / f"out_{number}_{i}.bin")
                    for i, array in enumerate(results)
                ],
                "returned": outcome.returned[number],
            }
            for number, results in enumerate(outcome.results)
        ]
        write_result(aside, done, outcome.findings, outcome.error)
        for facts in outcome.facts[:1]:
            (aside / FACTS).write_text(json.dumps(facts), encoding="utf-8")
        shutil.rmtree(self.folder / key, ignore_errors=True)
        aside.replace(self.folder / key)
