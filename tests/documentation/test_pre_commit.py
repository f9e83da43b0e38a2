""".pre-commit-hooks.yaml: the hook installs, and fails a commit with an old kernel."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from members import ROOT, members

HOOKS = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
OLD = "import neuronxcc.nki as nki\n\n\n@nki.jit\ndef k(x):\n    return x\n"
CONFIG = "repos:\n  - {{repo: {clone}, rev: {commit}, hooks: [{{id: nki-migrate}}]}}\n"


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    return subprocess.check_output(("git", "-C", str(folder), *identity, *words), text=True)


def test_the_environment_of_the_hook_gets_every_package_from_the_same_checkout():
    listed = re.findall(r"\./([\w/]+)", HOOKS)

    assert {*listed} == {m.directory.relative_to(ROOT).as_posix() for m in members()}


@pytest.mark.thorough
def test_pre_commit_installs_the_hook_and_fails_an_old_kernel(tmp_path: Path):
    """Needs an index with pre-commit, libcst, numpy, ml_dtypes and uv_build."""
    clone, repository = tmp_path / "clone", tmp_path / "user"
    git(ROOT, "clone", "--quiet", "--depth", "1", ROOT.as_uri(), str(clone))
    git(tmp_path, "init", "--quiet", str(repository))
    (repository / "old.py").write_text(OLD)
    commit = git(clone, "rev-parse", "HEAD").strip()
    (repository / ".pre-commit-config.yaml").write_text(CONFIG.format(clone=clone, commit=commit))
    git(repository, "add", "--all")

    words = (
        Path(sys.executable).with_name("uv"),
        "tool",
        "run",
        "pre-commit",
        "run",
        "--all-files",
    )
    environment = {**os.environ, "PRE_COMMIT_HOME": str(tmp_path / "home")}

    done = subprocess.run(words, cwd=repository, env=environment, capture_output=True, text=True)

    assert done.returncode == 1, done.stdout + done.stderr
    assert "old.py:1:" in done.stdout
