"""The schedule of a search step by step: the latency of the kernel after each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from neuroncore.timeline import latency_ns
from nkigym.tuning.task import TuningTask

MOST_STEPS = 200
"""Steps of a schedule up to which the kernel after each is played."""


def schedule_section(
    task: TuningTask, schedule: Sequence[Any], curve: Sequence[Sequence[float]]
) -> dict[str, Any]:
    """The section of a page about a schedule: `curve` is that of the search's report."""
    return {
        "name": task.root.name, "curve": list(curve), "rootNs": latency_ns(task.root),
        "steps": list(_steps(task, schedule)),
    }  # fmt: skip


def _steps(task: TuningTask, schedule: Sequence[Any]) -> Iterator[dict[str, Any]]:
    is_short = len(schedule) <= MOST_STEPS
    for number, step in enumerate(schedule, 1):
        after = latency_ns(task.kernel(task.replayed(schedule[:number]))) if is_short else None
        yield {"step": json.dumps(step), "ns": after}
