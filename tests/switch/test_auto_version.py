"""`nki-run --nki auto` runs a program in the version that its kernels are written for."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

HEAD = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\nimport numpy as np\n\n"
SHOW = "import nki_runtime\nprint(nki_runtime.current().nki)\n"
BODIES = {
    "0.3": "n = nl.tile_size.total_available_sbuf_size",
    "0.6": "for i in nl.dynamic_range(1):\n    nisa.memset(x, 1.0)",
    "0.7": "nl.fori_loop(0, 1, lambda i: None)",
    "mixed": "n = nl.tile_size.total_available_sbuf_size\nnl.fori_loop(0, 1, lambda i: None)",
}


def kernel(version: str, name: str = "kernel") -> str:
    body = textwrap.indent(BODIES[version], "    ")
    return f"\n@nki.jit\ndef {name}(x):\n{body}\n    return x\n\n"


def run(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "nki_runtime", *options, str(path))
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("version", ["0.3", "0.6", "0.7"])
def test_the_version_of_the_kernels_is_used_and_named(tmp_path, version):
    path = tmp_path / "program.py"
    path.write_text(f"{HEAD}{kernel(version)}{SHOW}")

    done = run(path, "--nki", "auto")

    assert done.stdout.strip() == version, done.stderr
    assert f"nki-run: NKI {version}: {path}:8: kernel: " in done.stderr


def test_kernels_of_imported_files_count(tmp_path):
    (tmp_path / "kernels.py").write_text(HEAD + kernel("0.3"))
    path = tmp_path / "program.py"
    path.write_text(f"import kernels\n{SHOW}")

    assert run(path, "--nki", "auto").stdout.strip() == "0.3"


@pytest.mark.parametrize("kernels", [("0.3", "0.7"), ("mixed",)])
def test_kernels_without_a_common_version_are_an_error(tmp_path, kernels):
    path = tmp_path / "program.py"
    names = {name: f"kernel_{n}" for n, name in enumerate(kernels)}
    path.write_text(HEAD + "".join(kernel(version, name) for version, name in names.items()))

    done = run(path, "--nki", "auto")

    assert done.returncode == 2
    assert "no version of NKI has everything that the kernels use" in done.stderr


def test_a_program_without_kernels_runs_in_the_default_version(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("import nki\n")

    assert "no kernel is found" in run(path, "--nki", "auto").stderr
