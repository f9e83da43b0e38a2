"""Programs as text, and what checks say of their runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from neuroncore.checks import Finding, watching
from neuroncore.options import Options
from neuroncore.program import execute_program, parse_program


@pytest.fixture
def findings() -> Callable[..., tuple[Finding, ...]]:
    """What `check` finds in a program with one parameter x: float32[128, 512] of ones.

    `body` is the program without its head; it returns `out` (shared HBM) where it has one.
    """

    def find(
        check: str, body: str, x: np.ndarray | None = None, options: Options | None = None
    ) -> tuple[Finding, ...]:
        lines = [f"    {line}" for line in body.strip("\n").splitlines()]
        result = ["    return out"] if "out = buffer" in body else ["    return"]
        head = ['program("trn2", "0.6")', "def p(x: float32[128, 512]):"]
        program = parse_program("\n".join([*head, *lines, *result]) + "\n")
        given = np.ones((128, 512), np.float32) if x is None else x
        with watching(check) as report:
            execute_program(program, [given], options=options)
        return report.findings

    return find
