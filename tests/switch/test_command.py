"""`nki-run` over the real languages, as a user at a terminal has it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

KERNELS = Path(__file__).with_name("new_kernels.py")
PROGRAM = """\
import numpy as np
from new_kernels import {kernel}

x = np.ones((128, {columns}), np.float32)
print({kernel}(x).sum())
"""


@pytest.fixture
def nki_run(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs PROGRAM on a kernel, in a folder that holds both and nothing else."""
    shutil.copy(KERNELS, tmp_path)

    def run(*options: str, kernel: str, columns: int = 4) -> subprocess.CompletedProcess[str]:
        (tmp_path / "program.py").write_text(PROGRAM.format(kernel=kernel, columns=columns))
        return subprocess.run(
            [sys.executable, "-m", "nki_runtime", *options, "program.py"],
            cwd=tmp_path,
            env={k: v for k, v in os.environ.items() if not k.startswith(("NKI", "NEURON"))},
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


def test_a_program_with_kernels_runs(nki_run):
    done = nki_run(kernel="double")

    assert (done.returncode, done.stdout, done.stderr) == (0, "1024.0\n", "")


def test_an_option_reaches_the_machine(nki_run):
    assert nki_run(kernel="unwritten").stdout == "nan\n"
    assert nki_run("--option", "uninitialized=zero", kernel="unwritten").stdout == "0.0\n"


def test_a_kernel_that_does_not_fit_says_so_in_the_users_own_lines(nki_run, tmp_path):
    done = nki_run("--target", "trn1", kernel="needs_200_kb")

    lines = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert [line for line in lines if line.startswith("  File")] == [
        f'  File "{tmp_path / "program.py"}", line 5, in <module>',
        f'  File "{tmp_path / "new_kernels.py"}", line 38, in needs_200_kb',
    ]
    error = lines.index(
        f"CapacityError: {tmp_path / 'new_kernels.py'}:38:5: "
        "200000 bytes per partition do not fit SBUF"
    )
    line, caret = lines[error + 1 : error + 3]
    assert line == "    nl.ndarray((128, 50_000), dtype=nl.float32, buffer=nl.sbuf)"
    assert set(caret.strip()) == {"^"}


def test_another_version_rejects_what_the_newest_takes(nki_run):
    assert nki_run(kernel="last_row").stdout == "4.0\n"

    done = nki_run("--nki", "0.2", kernel="last_row")
    assert done.returncode == 1
    assert "AccessError" in done.stderr


UNWRITTEN = """
import numpy as np
import nki, nki.isa as nisa, nki.language as nl

@nki.jit
def copied(x, factor=1.0):
    tile = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.sbuf)
    if factor:
        nisa.dma_copy(dst=tile, src=x)
    out = nl.ndarray((4, 4), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out

"""


@pytest.mark.parametrize(
    ("calls", "is_hinted"),
    [
        ("copied(np.ones((4, 4), np.float32), 0)\n" * 2, True),
        ("copied(np.ones((4, 4), np.float32))\n", False),
        ("copied(np.full((4, 4), np.nan, np.float32))\n", False),
    ],
    ids=["unwritten memory", "numbers", "NaN among the arguments"],
)
def test_nan_that_no_argument_has_hints_at_the_check_that_finds_it(tmp_path, calls, is_hinted):
    (tmp_path / "program.py").write_text(UNWRITTEN + calls)

    done = subprocess.run(
        [sys.executable, "-m", "nki_runtime", "program.py"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert done.stderr.count("--check memory names the reads") == is_hinted
