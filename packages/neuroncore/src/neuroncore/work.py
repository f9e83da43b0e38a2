"""Micro-ops: the work of an instruction, which the timeline plays.

Cycles are cycles of the engine's own clock. `interval` is how long the engine is occupied. What
depends on a generation or on an engine's state (the latency until a result is visible, which
activation table is loaded) is the timeline's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from neuroncore.enums import Engine


@dataclass(frozen=True, slots=True)
class Pass:
    """One trip of data through a vector, scalar or gpsimd engine."""

    engine: Engine
    interval: float
    table: str | None = None
    """The activation table set that must be loaded first."""
    fast: bool = False
    """Whether it runs in one of VectorE's performance modes, over a bus shared with GpSimdE."""


@dataclass(frozen=True, slots=True)
class LoadStationary:
    """Columns of the stationary matrix into the PE array; may overlap the multiply before it."""

    columns: int
    interval: float
    engine: Engine = Engine.tensor


@dataclass(frozen=True, slots=True)
class MultiplyMoving:
    """Columns of the moving matrix streamed through the PE array."""

    columns: int
    interval: float
    flops: int
    engine: Engine = Engine.tensor


@dataclass(frozen=True, slots=True)
class Transfer:
    """One DMA: `descriptors` contiguous runs of `run_bytes` each."""

    bytes: int
    descriptors: int
    run_bytes: int
    partitions: int
    """Of its end on chip; 0 within HBM."""
    indirect: bool = False
    casts: bool = False
    engine: Engine = Engine.dma


MicroOp = Pass | LoadStationary | MultiplyMoving | Transfer


@cache
def costs() -> dict[str, Any]:
    """The cost constants with their sources (data file costs.json)."""
    return json.loads(Path(__file__).with_name("costs.json").read_text("utf-8"))


def constant(name: str) -> float:
    """One fixed cost in cycles, by its name in costs.json or as `charging` says."""
    charged = _CHARGED.get()
    return costs()["constants"][name]["value"] if charged is None else charged[name]


@contextmanager
def charging(values: Mapping[str, float]) -> Iterator[None]:
    """Inside, instructions cost what these constants say instead of costs.json."""
    before = _CHARGED.set(values)
    try:
        yield
    finally:
        _CHARGED.reset(before)


_CHARGED: ContextVar[Mapping[str, float] | None] = ContextVar("_CHARGED", default=None)
