"""Constants of the time model: the table of costs.json as values for one generation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from numbers import Real
from typing import Any

from neuroncore.errors import AttributeValueError
from neuroncore.targets import resolve_target
from neuroncore.work import costs

ALL = "all"
"""The key of a value that every generation shares."""

DIVIDE = frozenset({"DMA_BANDWIDTH"})
"""What bytes are divided by, in GB/s."""
SLOWEST = 1e-6
"""At which a GB takes eleven days."""
LARGEST = 10**15
"""Eleven days in ns."""


@dataclass(frozen=True, slots=True)
class Constants:
    """Name → generation (or ALL) → value, in the units of costs.json."""

    values: Mapping[str, Mapping[str, float]]

    def at(self, target: str) -> dict[str, float]:
        """Name → value on `target`; raises LaunchError for an unknown one."""
        name = resolve_target(target).name
        return {key: by.get(name, by.get(ALL, 0.0)) for key, by in self.values.items()}

    def but(self, name: str, target: str, value: float) -> Constants:
        """The same constants with one changed on `target`, or on every generation (ALL).

        Raises AttributeValueError for an unknown name, for a value that is not a time (no
        number, negative, NaN, above 10^15) and for a bandwidth below 10^-6; LaunchError for an
        unknown target.
        """
        if name not in self.values:
            raise AttributeValueError(
                f"{name!r} is not a constant of the timeline",
                expected=" or ".join(self.values), operand="name",
            )  # fmt: skip
        least = SLOWEST if name in DIVIDE else 0
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not is_number or not least <= value <= LARGEST:
            raise AttributeValueError(
                f"{name} cannot be {_shown(value)}",
                expected=f"a number from {least:g} to {LARGEST:g}", operand="value",
            )  # fmt: skip
        if target == ALL:
            return replace(self, values={**self.values, name: {ALL: value}})
        changed = {**self.values[name], resolve_target(target).name: value}
        return replace(self, values={**self.values, name: changed})

    def implausible(self) -> dict[tuple[str, str], str]:
        """(name, generation or ALL) → what is wrong with a value that is far from all that is known
        of its constant.
        """
        found = {}
        rows = costs()["constants"]
        for name, by_target in self.values.items():
            known, factor = _known(rows[name]), costs()["plausible"][rows[name]["confidence"]]
            low, high = min(known) / factor, max(known) * factor
            for target, value in by_target.items():
                if not low <= value <= high:
                    where = "" if target == ALL else f" on {target}"
                    shown = ", ".join(f"{each:g}" for each in sorted(set(known)))
                    found[name, target] = (
                        f"{name}{where} is {value:g} {rows[name]['unit']}; the documented values "
                        f"are {shown}, and {low:.3g} to {high:.3g} is plausible"
                    )
        return found

    def shared_by(self, cores: int, target: str) -> Constants:
        """The same constants for one of several cores that use HBM at once."""
        if cores == 1:
            return self
        facts, own = machine(resolve_target(target).name), self.at(target)["DMA_BANDWIDTH"]
        share = facts["hbm_gbps_per_core"] / facts["dma_engines"]
        return self.but("DMA_BANDWIDTH", target, min(own, share))


@cache
def constants() -> Constants:
    """The constants of costs.json."""
    table = costs()["constants"]
    return Constants({name: _by_target(row["value"]) for name, row in table.items()})


def machine(target: str) -> dict[str, Any]:
    """The fixed facts of a generation: clocks, peaks, numbers of engines."""
    rows = costs()["machine"]
    return {name: _of(row["value"], target) for name, row in rows.items()}


def _shown(value: Any) -> str:
    is_long = isinstance(value, int) and abs(value) > LARGEST
    return f"a number of {value.bit_length()} bits" if is_long else repr(value)


def _known(row: Mapping[str, Any]) -> list[float]:
    """All values of a constant, of every source and generation."""
    found = [row[kind] for kind in ("value", "published", "otherwise") if kind in row]
    return [value for each in found for value in _by_target(each).values()]


def _by_target(value: Any) -> Mapping[str, float]:
    return value if isinstance(value, dict) else {ALL: value}


def _of(value: Any, target: str) -> Any:
    return value[target] if isinstance(value, dict) else value
