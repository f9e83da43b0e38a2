"""What time is made of: the table of costs.json as values for one generation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from neuroncore.targets import resolve_target
from neuroncore.work import costs

ALL = "all"
"""The key of a value that every generation shares."""


@dataclass(frozen=True, slots=True)
class Constants:
    """Name → generation (or ALL) → value, in the units of costs.json."""

    values: Mapping[str, Mapping[str, float]]
    free: tuple[tuple[str, str], ...]
    """(name, generation) of those that documents leave open: fitted on published measurements."""

    def at(self, target: str) -> dict[str, float]:
        """Name → value on `target`; raises LaunchError for an unknown one."""
        name = resolve_target(target).name
        return {key: by.get(name, by.get(ALL, 0.0)) for key, by in self.values.items()}

    def but(self, name: str, target: str, value: float) -> Constants:
        """The same constants with one changed; `target` is ALL for a value that is shared."""
        changed = {**self.values[name], target: value}
        return replace(self, values={**self.values, name: changed})


@cache
def constants() -> Constants:
    """The constants of costs.json."""
    table = costs()["constants"]
    values = {name: _by_target(row["value"]) for name, row in table.items()}
    free = [
        (name, target)
        for name, row in table.items()
        if row.get("fitted")
        for target in values[name]
        if target in row.get("fitted_for", values[name])
    ]
    return Constants(values, tuple(free))


def machine(target: str) -> dict[str, Any]:
    """The facts of a generation that are no free choice: clocks, peaks, numbers of engines."""
    rows = costs()["machine"]
    return {name: _of(row["value"], target) for name, row in rows.items()}


def _by_target(value: Any) -> Mapping[str, float]:
    return value if isinstance(value, dict) else {ALL: value}


def _of(value: Any, target: str) -> Any:
    return value[target] if isinstance(value, dict) else value
