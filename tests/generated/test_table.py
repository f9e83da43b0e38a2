"""The table of workloads in the documentation is what the generator makes today."""

from __future__ import annotations

import math
import runpy
from pathlib import Path

import pytest

import nkigen_lite

ROOT = Path(__file__).parents[2]
WORKLOADS = runpy.run_path(str(ROOT / "benchmarks" / "generator_workloads.py"))["WORKLOADS"]
PAGE = (ROOT / "docs" / "generator.md").read_text(encoding="utf-8")


def number(cell: str) -> float:
    """Of a cell; without a bound there is a dash."""
    return math.inf if cell == "–" else float(cell.replace(",", ""))


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.name)
def test_a_row_is_what_the_kernel_executes_and_moves(workload):
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| {workload.name} |")]
    instructions, most, _, _, mib, most_mib = (cell.strip() for cell in row.split("|")[2:8])

    stats = nkigen_lite.compile(
        workload.function, *workload.specs, in_place=workload.in_place
    ).stats

    assert number(instructions) == stats.instructions <= workload.at_most[0]
    assert number(mib) == round(stats.hbm_bytes / 2**20, 3) <= workload.at_most[1]
    assert (number(most), number(most_mib)) == workload.at_most


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda w: w.name)
def test_a_row_above_its_bound_has_the_critical_path(workload):
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| {workload.name} |")]
    predicted, _, _, times, path = (cell.strip() for cell in row.split("|")[10:15])
    spent = sum(float(part.split()[1]) for part in path.split(", ")) if path != "–" else None

    if number(times) > 1.15:
        assert spent is not None
    if spent is not None:
        assert spent == pytest.approx(number(predicted), abs=0.05 * len(path.split(", ")) + 0.05)
