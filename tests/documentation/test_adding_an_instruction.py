"""The page's diff is how max8 came in: taken back it is gone, applied it is there and tested."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from members import ROOT

PAGE = ROOT / "docs" / "adding-an-instruction.md"
PACKAGE = Path("packages/neuroncore")
CALLABLE = """
import numpy as np
from neuroncore.calls import make_function
from neuroncore.core import NeuronCore
from neuroncore.engines import Space
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.surface import signature

for version in ("0.2", "0.6"):
    core = NeuronCore()
    src = core.adopt(np.arange(9, dtype=np.float32).reshape(1, 9), Space.sbuf)
    dst = core.allocate((1, 8), "float32", Space.sbuf)
    make_function(INSTRUCTIONS["max8"], signature("max8", version))(dst, src)
    assert dst.array.tolist() == [[8, 7, 6, 5, 4, 3, 2, 1]]
"""
IN_THE_LANGUAGE = """
import numpy as np
import nki_beta2

for version in ("0.2", "0.6"):
    nki, nl, nisa = nki_beta2.language(version)

    @nki.jit
    def largest(x):
        tile, top = nl.ndarray((1, 9), x.dtype), nl.ndarray((1, 8), x.dtype)
        out = nl.ndarray((1, 8), x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(tile, x)
        nisa.max8(top, tile)
        nisa.dma_copy(out, top)
        return out

    given = np.arange(9, dtype=np.float32).reshape(1, 9)
    assert largest(given).tolist() == [[8, 7, 6, 5, 4, 3, 2, 1]]
"""


def diff() -> str:
    return "".join(re.findall(r"^```diff\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package as it stands, somewhere else. (The table's columns may have other widths.)"""
    for part in ("src", "tests"):
        shutil.copytree(
            ROOT / PACKAGE / part,
            tmp_path / PACKAGE / part,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    return tmp_path


def apply(copy: Path, *options: str) -> None:
    command = ("git", "apply", "--unidiff-zero", "--ignore-whitespace", *options, "-")
    done = subprocess.run(command, cwd=copy, input=diff(), capture_output=True, text=True)
    assert done.returncode == 0, (
        f"{PAGE.name} does not show the code as it stands: {done.stderr}\nput the present record, "
        "surface lines and test into its diff blocks"
    )


def run(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python with the copy in front of the installed package."""
    environment = os.environ | {"PYTHONPATH": str(copy / PACKAGE / "src")}
    command = (sys.executable, *arguments)
    return subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)


def test_the_diff_is_one_record_its_surface_lines_and_one_test():
    touched = re.findall(r"^\+\+\+ b/(.*)$", diff(), re.MULTILINE)

    assert touched == [
        f"{PACKAGE}/src/neuroncore/instructions/max8.py",
        f"{PACKAGE}/src/neuroncore/surface/isa.txt",
        f"{PACKAGE}/tests/instructions/test_max8.py",
    ]


def test_taken_back_the_instruction_is_gone_and_applied_it_is_there(copy: Path):
    apply(copy, "--reverse")
    gone = run(copy, "-c", CALLABLE)
    assert "KeyError: 'max8'" in gone.stderr

    apply(copy)
    there = run(copy, "-c", CALLABLE)
    assert there.returncode == 0, there.stderr
    in_beta2 = run(copy, "-c", IN_THE_LANGUAGE)
    assert in_beta2.returncode == 0, in_beta2.stderr


def test_the_new_test_passes_with_the_record_and_not_without(copy: Path):
    new = ("-m", "pytest", "-q", "-c", str(ROOT / "pyproject.toml"), f"--rootdir={copy}")
    test = f"{PACKAGE}/tests/instructions/test_max8.py"
    record = copy / PACKAGE / "src/neuroncore/instructions/max8.py"

    green = run(copy, *new, test)
    assert green.returncode == 0, green.stdout
    record.write_text(record.read_text().replace("[:, ::-1]", ""))  # smallest first
    assert run(copy, *new, test).returncode == 1
