"""Kernels of other projects: every public 0.1 file goes through, and what must migrate does.

Needs a clone: NKI_CORPUS/aws-neuron/nki-samples, read at the commit below.
"""

import ast
import os
import subprocess
from functools import cache
from pathlib import Path

import pytest

from nki_migrate.engine.migration import migrate_source
from nki_migrate.settings.request import Request

COMMIT = "c9c0ab0"
CORPUS = os.environ.get("NKI_CORPUS")
CLONE = Path(CORPUS or ".") / "aws-neuron" / "nki-samples"
TUTORIALS = "src/nki_samples/tutorials"

pytestmark = pytest.mark.skipif(
    CORPUS is None or not CLONE.is_dir(),
    reason="NKI_CORPUS names no folder with a clone of aws-neuron/nki-samples",
)


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(CLONE), *arguments], check=True, capture_output=True, text=True
    ).stdout


@cache
def kernel_files() -> dict[str, str]:
    names = _git("ls-tree", "-r", "--name-only", COMMIT).splitlines()
    texts = {n: _git("show", f"{COMMIT}:{n}") for n in names if n.endswith(".py")}
    return {n: t for n, t in texts.items() if "nki" in t}


def test_every_file_goes_through_twice_and_parses():
    unstable = []
    for name, text in kernel_files().items():
        once = migrate_source(text, name, Request()).after
        ast.parse(once)
        if migrate_source(once, name, Request()).after != once:
            unstable.append(name)

    assert unstable == []


@pytest.mark.parametrize(
    "name",
    [
        f"{TUTORIALS}/tensor_addition/tensor_addition_nki_kernels.py",
        f"{TUTORIALS}/tensor_addition/spmd_tensor_addition_nki_kernels.py",
        f"{TUTORIALS}/transpose2d/transpose2d_nki_kernels.py",
        f"{TUTORIALS}/average_pool2d/average_pool2d_nki_kernels.py",
        "contributed/maxpooling.py",
    ],
)
def test_public_kernel_migrates_completely(name):
    result = migrate_source(kernel_files()[name], name, Request())

    assert [k for k in result.kernels if not k.complete] == []
