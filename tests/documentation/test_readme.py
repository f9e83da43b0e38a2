"""README.md: its kernel migrates as shown, and its journeys run as printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from members import ROOT
from tests.documentation.test_migrating_page import run, says, steps

README = (ROOT / "README.md").read_text(encoding="utf-8")
KERNELS = re.compile(r"^```python \(not run[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
JOURNEYS = re.compile(r"^\*\*([^*]+)\.\*\* .*?^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
MOST_LINES = 8

CASES = """\
schema = "nki-cases/1"
[[case]]
file = "scale.py"
kernel = "scaled_add"
reference = "references.py:scaled_add"
[[case.arg]]
name = "x"
dtype = "float32"
shape = [256, 512]
[[case.arg]]
name = "y"
dtype = "float32"
shape = [256, 512]
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def test_the_kernel_of_the_page_migrates_to_the_kernel_below_it(tmp_path: Path):
    old, new = KERNELS.findall(README)
    (tmp_path / "scale.py").write_text(old)
    (tmp_path / "cases.toml").write_text(CASES)
    (tmp_path / "references.py").write_text("def scaled_add(x, y):\n    return 2.0 * x + y\n")

    printed = run("nki-migrate fix scale.py --verify", tmp_path)

    assert (tmp_path / "scale.py").read_text() == new
    assert "\n".join(printed[-3:]) in README


def test_there_are_five_short_journeys():
    journeys = JOURNEYS.findall(README)

    assert len(journeys) == 5
    assert all(len(text.splitlines()) <= MOST_LINES for _, text in journeys)


@pytest.mark.parametrize(("name", "text"), JOURNEYS.findall(README), ids=lambda value: value[:20])
def test_a_journey_runs_as_printed(tmp_path: Path, name: str, text: str):
    (tmp_path / "examples").symlink_to(ROOT / "examples")

    for command, shown in steps(f"```console\n{text}```\n"):
        printed = run(command, tmp_path)
        assert says(shown, printed), f"{name}: $ {command}\n" + "\n".join(printed)
