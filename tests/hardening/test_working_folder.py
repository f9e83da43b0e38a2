"""Commands import nothing from the folder that they are started in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from members import ROOT
from tests.hardening.test_confined_commands import FUNCTION, KERNEL
from tests.hardening.test_streams import PROGRAMS, run

from neuroncore.source_location import OUR_PACKAGES


def modules_that_run() -> list[str]:
    """Every module of a package that does something under `python -m`."""
    sources = [*ROOT.glob("packages/*/src"), *ROOT.glob("tools/*/src")]
    return sorted(
        ".".join(file.relative_to(source).with_suffix("").parts).removesuffix(".__main__")
        for source in sources
        for file in source.rglob("*.py")
        if '__name__ == "__main__"' in file.read_text("utf-8")
    )


CASE = """schema = "nki-cases/1"
[[case]]
file = "k.py"
kernel = "copy"
  [[case.arg]]
  name = "x"
  dtype = "float32"
  shape = [4, 4]
"""
STARTED_BY_OTHERS = {"nki_migrate.verify.fork_server", "tokenplan.cli._record"}
"""With `-P`, and as a file of nki-run."""


def test_only_packages_are_commands():
    """Under `python -m package.module`, the package's imports precede what the module does."""
    assert {*modules_that_run()} - STARTED_BY_OTHERS == {*PROGRAMS.values(), "neuroncore"}


@pytest.fixture
def shadows(tmp_path: Path) -> Path:
    """A folder with every module that Python itself does not import for an empty program."""
    (tmp_path / "shadows/empty").mkdir(parents=True)
    (tmp_path / "shadows/empty/__main__.py").write_text("import sys\nprint(*sys.modules)")
    started = subprocess.run(
        [sys.executable, "-m", "empty"],
        cwd=tmp_path / "shadows",
        capture_output=True,
        text=True,
        check=True,
    )
    others = {"numpy", "ml_dtypes", "libcst", *OUR_PACKAGES, *sys.stdlib_module_names}
    for name in others.difference(started.stdout.split(), ("__future__",)):
        (tmp_path / "shadows" / f"{name}.py").write_text(
            f"raise SystemExit('the {name} of the folder')\n"
        )
    return tmp_path / "shadows"


@pytest.mark.parametrize("module", [*PROGRAMS.values(), "neuroncore"])
def test_python_m_imports_nothing_from_the_working_folder(shadows: Path, module: str):
    (shadows / f"{module}.py").unlink()  # Python itself runs that one

    done = subprocess.run(
        [sys.executable, "-m", module, "--version"], cwd=shadows, capture_output=True, text=True
    )

    assert (done.returncode, done.stderr) == (0, "") and " 1." in done.stdout


@pytest.mark.parametrize(
    "line",
    [
        "nkigen ../f.py:double --spec f32[4,4] --run -o ../generated.py",
        "nki-run --compare precise=0 ../k.py:copy f32[4,4]",
        "tokenplan explain ../k.py:copy --spec f32[4,4]",
        "nki-migrate verify ../k.py ../k.py --entry copy --cases ../cases.toml",
        "nkigym tune ../f.py:double --spec f32[128,8] --budget 2 --jobs 2",
    ],
    ids=lambda line: line.partition(" .")[0],
)
def test_children_import_nothing_from_the_working_folder(shadows: Path, line: str):
    (shadows.parent / "k.py").write_text(KERNEL)
    (shadows.parent / "f.py").write_text(FUNCTION)
    (shadows.parent / "cases.toml").write_text(CASE)

    done = run(shadows, line)

    assert "of the folder" not in done.stdout + done.stderr
    assert done.returncode == 0, done.stderr
