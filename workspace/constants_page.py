"""The tables of the constants of the latency model, for docs/model.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from neuroncore.targets import TARGETS
from neuroncore.timeline.compilation.toolchain import TRANSFORMATIONS
from neuroncore.timeline.results.uncertainty import WIDER
from neuroncore.work import costs

_KIND = "documented", "inferred", "measured", "assumed"


def tables() -> str:
    """Every constant of costs.json with values by generation, source and confidence."""
    found = costs()
    return "\n".join(
        [
            f"Constants of {found['dated']}. {found['about']}",
            "",
            *_counts(found["constants"]),
            *_spreads(),
            *(
                f"- `{t.name}` ({', '.join(t.toolchains)}): {t.does}; {t.evidence}"
                for t in TRANSFORMATIONS.values()
            ),
            "",
            *_table(found["machine"], ""),
            "",
            *_table(found["constants"], "unit"),
        ]
    )


def _counts(rows: Mapping[str, Any]) -> Iterator[str]:
    """Which constants are what."""
    for kind in _KIND:
        names = [f"`{name}`" for name, row in rows.items() if row["confidence"] == kind]
        if names:
            spread = costs()["spread"][kind]
            factor = costs()["plausible"][kind]
            yield (
                f"- {kind} (spread {spread:.0%}, in a file within a factor of {factor}): "
                f"{', '.join(names)}"
            )


def _spreads() -> Iterator[str]:
    """The contributions of an interval to the spread of the constants."""
    for name, error in costs()["model_error"].items():
        yield f"- the model itself, {name}: {error:.0%}"
    for verdict, wider in WIDER.items():
        yield f"- time of instructions that are {verdict}: {wider:.0%} more"


def _table(rows: Mapping[str, Any], unit: str) -> Iterator[str]:
    names = list(TARGETS)
    yield f"| constant | {' | '.join(names)} | {'unit | ' if unit else ''}confidence | source |"
    yield "|---" * (len(names) + 3 + bool(unit)) + "|"
    for name, row in rows.items():
        cells = [f"`{name}`", *(_value(row["value"], target) for target in names)]
        cells += [row[unit]] if unit else []
        said = [row["source"], *([row["note"]] if "note" in row else [])]
        if row.get("published", row["value"]) != row["value"]:
            said.insert(0, f"fitted; its source: {_text(row['published'])}")
        if "otherwise" in row:
            said.append(f"otherwise {_text(row['otherwise'])} ({row['otherwise_source']})")
        yield "| " + " | ".join([*cells, row["confidence"], "; ".join(said)]) + " |"


def _value(value: Any, target: str) -> str:
    return _text(value[target] if isinstance(value, dict) and target in value else value)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {number}" for name, number in value.items())
    return str(value)


if __name__ == "__main__":
    print(tables())
