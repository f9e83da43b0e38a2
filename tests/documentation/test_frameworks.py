"""The examples of docs/running.md that need torch or JAX, where those are installed."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec

import pytest
from members import ROOT

BLOCK = re.compile(r"```python \(not run: needs (torch|JAX);[^\n]*\n(.*?)```", re.DOTALL)
EXAMPLES = dict(BLOCK.findall((ROOT / "docs/running.md").read_text(encoding="utf-8")))


def test_each_framework_has_an_example():
    assert {*EXAMPLES} == {"torch", "JAX"}


@pytest.mark.parametrize("framework", ["torch", "JAX"])
def test_the_example_of_a_framework_runs(framework, tmp_path):
    if find_spec(framework.lower()) is None:
        pytest.skip(f"{framework} is not installed")
    script = tmp_path / "example.py"
    script.write_text(EXAMPLES[framework])

    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
