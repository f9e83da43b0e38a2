"""A command whose output cannot be written ends with an exit code and without a traceback."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.documentation.test_schemas import every_command
from tests.hardening.test_confined_commands import FUNCTION, KERNEL
from tests.hardening.test_malformed_inputs import KINDS
from tests.programs.texts import COPY

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")

BIN = Path(sys.executable).parent
FULL, CLOSED = 2, 141
PROGRAMS = {
    "nki-run": "nki_runtime", "nkigen": "nkigen_lite", "nkigym": "nkigym",
    "tokenplan": "tokenplan", "nki-scope": "nki_scope", "nki-migrate": "nki_migrate",
}  # fmt: skip
"""Each command and its module, which is the same command under `python -m`."""
LINES = (
    "nki-run k.py:copy f32[4,4]", "nki-run prints.py", "nkigen f.py:double --spec f32[4,4]",
    "nkigen f.py:double --spec f32[4,4] --output-format json",
    "nkigym enumerate --tiles 1,1,2", "nkigym tune f.py:double --spec f32[128,8] --budget 2",
    "nkigym sweep s.toml --jobs 1", "nkigym check c.json", "nkigym show s.db", "nkigym best s.db",
    "nkigym measure s.db", "nkigym replay s.db", "nkigym export s.db",
    "tokenplan explain p.txt", "tokenplan check plan.json --random 3",
    "tokenplan sweep none.py:gemm --set tile=64 --target sm_90", "tokenplan explain-code W2",
    "nki-scope open none.html", "nki-scope show r.html", "nki-scope compare r.html r.html",
    "nki-scope png none.html Memory -o m.png", "nki-scope svg none.html Memory -o m.svg",
    "nki-migrate check k.py --output-format json", "nki-migrate diff old.py",
    "nki-migrate fix old.py --diff", "nki-migrate pr . --check", "nki-migrate detect k.py",
    "nki-migrate rules", "nki-migrate explain NKI1131", "nki-migrate draft-rules a@1 b@2 "
    "--output-dir drafts", "nki-migrate verify k.py k.py --entry copy",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inputs of every command."""
    made = tmp_path_factory.mktemp("streams")
    texts = {
        "k.py": KERNEL, "f.py": FUNCTION, "p.txt": COPY, "prints.py": "print('x' * 100_000)\n",
        "old.py": KERNEL.replace("import nki, nki.isa as nisa, nki.language as nl",
                                 "import neuronxcc.nki as nki, neuronxcc.nki.language as nl, "
                                 "neuronxcc.nki.isa as nisa"),
    }  # fmt: skip
    texts |= {kind.file: kind.text for kind in KINDS.values() if kind.file.endswith(".json")}
    for name, text in texts.items():
        (made / name).write_text(text)
    tune = "nkigym tune f.py:double --spec f32[128,8] --budget 2 --store s.db -o out.py"
    for line in (tune, "nki-run --report r.html k.py:copy f32[4,4]"):
        run(made, line)
    return made


def run(
    folder: Path, line: str, stdout: Any = subprocess.PIPE, stderr: Any = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    program, *words = line.split()
    shutil.rmtree(folder / "nki_migration", ignore_errors=True)  # `pr` writes it once
    return subprocess.run(
        [BIN / program, *words], cwd=folder, stdin=subprocess.DEVNULL, stdout=stdout,
        stderr=stderr, text=True,
    )  # fmt: skip


def is_ended(done: subprocess.CompletedProcess[str], normal: int, code: int, printed: str) -> None:
    """Without a traceback, and with `code` where the command prints anything on stdout."""
    assert "Traceback" not in done.stderr, done.stderr
    assert "Exception ignored" not in done.stderr, done.stderr
    assert done.returncode == (code if printed else normal), done.stderr


OF_ALL = tuple(f"{program} {option}" for program in PROGRAMS for option in ("--help", "--version"))


@pytest.mark.parametrize("line", (*LINES, *OF_ALL))
def test_a_full_disk_and_a_reader_that_has_left_end_every_command(folder: Path, line: str):
    as_usual = run(folder, line)
    with Path("/dev/full").open("w") as full:
        on_a_full_disk = run(folder, line, stdout=full)
    with subprocess.Popen(["true"], stdin=subprocess.PIPE) as reader:
        reader.wait()
        without_a_reader = run(folder, line, stdout=reader.stdin)
        assert reader.stdin is not None
        reader.stdin.close()

    is_ended(on_a_full_disk, as_usual.returncode, FULL, as_usual.stdout)
    is_ended(without_a_reader, as_usual.returncode, CLOSED, as_usual.stdout)
    said = f"{line.split()[0]}: stdout: No space left on device\n"
    assert on_a_full_disk.stderr.endswith(said) or not as_usual.stdout
    assert "stdout" not in without_a_reader.stderr


def test_every_command_is_among_them():
    for command, _ in every_command():
        assert any(f"{line} ".startswith(f"{command} ") for line in LINES), command


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_closed_stdout_is_as_one_that_is_not_read(folder: Path, program: str):
    line = f"{BIN / program} --version >&- 2>&- <&-"

    assert subprocess.run(["sh", "-c", line], cwd=folder).returncode == 0


def test_an_error_that_cannot_be_shown_changes_no_exit_code(folder: Path):
    with Path("/dev/full").open("w") as full:
        done = run(folder, "nki-migrate chek", stderr=full)
        noted = run(folder, "nkigen f.py:double --spec f32[4,4] -o written.py", stderr=full)

    assert (done.returncode, noted.returncode) == (2, 0)
