"""Assumptions about queues and counters: machine.json, every value with its source."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

DMA = "dma"


@dataclass(frozen=True, slots=True)
class Machine:
    """Queues and counters of one NeuronCore."""

    dma_queues: int
    engine_step: int
    dma_step: int
    counters: int
    wait_ns: float

    def step(self, queue: str) -> int:
        """The increment of one completion for the counter of `queue`."""
        return self.dma_step if queue.startswith(DMA) else self.engine_step


@cache
def _facts() -> dict[str, Any]:
    return json.loads(files("tokenplan.neuroncore").joinpath("machine.json").read_text("utf-8"))


@cache
def machine() -> Machine:
    """The values of machine.json; every generation has the same."""
    facts = _facts()["facts"]
    return Machine(**{name: facts[name]["value"] for name in Machine.__slots__})


def facts_table() -> Iterator[str]:
    """Lines of a Markdown table: value, confidence and source of every fact."""
    yield "| fact | value | confidence | source |"
    yield "|---|---|---|---|"
    for name, fact in _facts()["facts"].items():
        value = json.dumps(fact["value"])
        yield f"| `{name}` | {value} | {fact['confidence']} | {fact['source']} |"
