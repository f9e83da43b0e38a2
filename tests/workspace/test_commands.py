"""The commands that the README promises, CI's command, and the table of stages agree."""

from __future__ import annotations

import importlib.util
import re
import sys
from types import ModuleType

import pytest
from members import ROOT

SHELL_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def noxfile() -> ModuleType:
    spec = importlib.util.spec_from_file_location("noxfile", ROOT / "noxfile.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


def readme_commands() -> list[str]:
    blocks = SHELL_BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    return [block.strip() for block in blocks]


def test_ci_ends_with_the_readmes_test_command():
    last = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()[-1]

    assert last == readme_commands()[1]


def test_the_readmes_first_command_migrates_and_verifies_the_examples():
    assert "nki-migrate fix examples/beta1 --to 0.7 --verify" in readme_commands()[0]


def stage_paths(noxfile: ModuleType) -> set[str]:
    stages = noxfile.STAGES.values()
    return {path for s in stages for path in (*s.paths, *((s.alone or ())[1:]))}


def test_stages_name_paths_that_hold_tests(noxfile: ModuleType):
    paths = stage_paths(noxfile)

    assert paths == set(noxfile.built(tuple(paths)))


def test_every_folder_of_tests_belongs_to_a_stage(noxfile: ModuleType):
    files = [*ROOT.glob("packages/*/tests"), *ROOT.glob("tools/*/tests"), *ROOT.glob("tests/*/")]
    folders = {str(path.relative_to(ROOT)) for path in files if any(path.rglob("test_*.py"))}

    assert folders <= stage_paths(noxfile)


def test_ci_runs_every_stage_and_lint_and_wheels(noxfile: ModuleType):
    stages = {f"stage{number}" for number in noxfile.STAGES}

    assert set(noxfile.nox.options.sessions) == stages | {"lint", "wheels"}
