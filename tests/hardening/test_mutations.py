"""Tests notice when the code is wrong: each chosen place is broken once and a test must fail."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree

import pytest
from members import ROOT

PYTEST = (sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider")


@dataclass(frozen=True, slots=True)
class Mutation:
    """In `file`, `was` (which occurs once) becomes `becomes`; `noticed_by` must then fail."""

    name: str
    file: str
    was: str
    becomes: str
    noticed_by: str

    def applied_to_copy(self, folder: Path) -> Path:
        """Copy the package's sources into `folder`, break them there, return the import root."""
        source = next(p for p in (ROOT / self.file).parents if p.name == "src")
        copy = copytree(source, folder / "src")
        broken = copy / (ROOT / self.file).relative_to(source)
        text = broken.read_text(encoding="utf-8")
        assert text.count(self.was) == 1, f"{self.file} holds {self.was!r} not exactly once"
        broken.write_text(text.replace(self.was, self.becomes), encoding="utf-8")
        return copy


def mutations() -> list[Mutation]:
    table = tomllib.loads(Path(__file__).with_name("mutations.toml").read_text(encoding="utf-8"))
    return [Mutation(**entry) for entry in table["mutation"]]


@pytest.mark.parametrize("mutation", mutations(), ids=lambda mutation: mutation.name)
def test_a_test_fails_when_the_code_is_wrong(mutation: Mutation, tmp_path: Path):
    """The copy comes before the installed package on the path; exit 1 is "tests failed"."""
    broken = mutation.applied_to_copy(tmp_path)
    command = (*PYTEST, *mutation.noticed_by.split())

    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(broken)},
        capture_output=True,
        text=True,
    )

    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout[-2000:] + done.stderr
