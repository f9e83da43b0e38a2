"""The diff of the page is the transform as it is: reversed it is gone, applied it is tested."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from members import ROOT

PAGE = ROOT / "docs" / "adding-a-transform.md"
PACKAGE = Path("packages/nkigym")
MODULE = f"{PACKAGE}/src/nkigym/transforms/swap.py"
TEST = f"{PACKAGE}/tests/transforms/test_swap.py"
OFFERED = "from nkigym.transforms import TRANSFORMS; print('swap' in TRANSFORMS)"


def diff() -> str:
    return "".join(re.findall(r"^```diff\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package in another folder."""
    for part in ("src", "tests"):
        source, ignored = ROOT / PACKAGE / part, shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, tmp_path / PACKAGE / part, ignore=ignored)
    return tmp_path


def apply(copy: Path, *options: str) -> None:
    command = ("git", "apply", "--unidiff-zero", *options, "-")
    done = subprocess.run(command, cwd=copy, input=diff(), capture_output=True, text=True)
    assert done.returncode == 0, f"{PAGE.name} does not show the code as it is: {done.stderr}"


def run(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python with the copy in front of the installed package."""
    environment = os.environ | {"PYTHONPATH": str(copy / PACKAGE / "src")}
    command = (sys.executable, *arguments)
    return subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)


def test_the_diff_is_one_module_and_one_test():
    assert re.findall(r"^\+\+\+ b/(.*)$", diff(), re.MULTILINE) == [MODULE, TEST]


def test_reversed_the_transform_is_gone_and_applied_it_is_offered(copy: Path):
    apply(copy, "--reverse")
    assert run(copy, "-c", OFFERED).stdout == "False\n"

    apply(copy)
    assert run(copy, "-c", OFFERED).stdout == "True\n"


def test_the_new_test_passes_with_the_module_and_fails_on_a_fault(copy: Path):
    new = ("-m", "pytest", "-q", "-c", str(ROOT / "pyproject.toml"), f"--rootdir={copy}", TEST)

    green = run(copy, *new)
    assert green.returncode == 0, green.stdout
    module = copy / MODULE
    module.write_text(module.read_text().replace("block[m], first,", "first, block[m],"))
    assert run(copy, *new).returncode == 1
