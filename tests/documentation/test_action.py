"""action.yml: its steps run in order and annotate what there is to migrate."""

from __future__ import annotations

import os
import re
import subprocess
import textwrap
from pathlib import Path

import pytest
from members import ROOT

ACTION = (ROOT / "action.yml").read_text(encoding="utf-8")
STEP = re.compile(r"^      run: \|\n((?:        .*\n)+)", re.MULTILINE)
OLD = "import neuronxcc.nki as nki\n\n\n@nki.jit\ndef k(x):\n    return x\n"


def steps() -> list[str]:
    """The shell text of every step."""
    return [textwrap.dedent(text) for text in STEP.findall(ACTION)]


def test_every_step_of_the_action_is_a_script():
    assert len(steps()) == ACTION.count("- shell: bash") == 2
    assert "${{" not in "".join(steps())  # inputs come by environment: they are not code


@pytest.mark.thorough
def test_the_steps_of_the_action_install_the_tool_and_annotate_an_old_kernel(tmp_path: Path):
    """Needs an index with libcst, numpy, ml_dtypes and uv_build."""
    (tmp_path / "old.py").write_text(OLD)
    values = {"RUNNER_TEMP": str(tmp_path), "SOURCE": str(ROOT), "PATHS": "old.py", "ARGUMENTS": ""}
    done = [
        subprocess.run(
            ["bash", "-e", "-c", step], cwd=tmp_path, env={**os.environ, **values},
            capture_output=True, text=True,
        )
        for step in steps()
    ]  # fmt: skip

    assert (done[0].returncode, done[1].returncode) == (0, 1), done[0].stderr
    assert "::error file=old.py,line=1," in done[1].stdout
