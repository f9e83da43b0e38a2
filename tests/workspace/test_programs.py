"""The programs behind the nox sessions do what the sessions claim."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import compiled
import pytest
import pythons
from changelogs import draft
from members import ROOT, Member
from replay import differences
from wheels import closure

HERE = "{}.{}".format(*sys.version_info)


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def test_a_shim_that_does_not_run_is_no_python(tmp_path: Path):
    shim = script(tmp_path / "python3.12", "#!/bin/sh\necho 3.12\nexit 127\n")

    assert not pythons.runs(shim, "3.12")


def test_a_python_of_another_version_is_not_the_one_asked_for():
    assert pythons.runs(Path(sys.executable), HERE)
    assert not pythons.runs(Path(sys.executable), "3.9")


def test_a_python_behind_a_broken_shim_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    script(tmp_path / "shims" / "python3.12", "#!/bin/sh\nexit 127\n")
    real = script(tmp_path / "bin" / "python3.12", "#!/bin/sh\necho 3.12\n")
    monkeypatch.setenv("PATH", os.pathsep.join((f"{tmp_path}/shims", f"{tmp_path}/bin")))
    monkeypatch.setattr(sys, "executable", "/nowhere/python")

    assert pythons.find("3.12") == real


def test_a_python_that_is_nowhere_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "/nowhere/python")

    assert pythons.find("3.13") is None


def wheel(folder: Path, name: str, *requires: str) -> Path:
    path = folder / f"{name}-1-py3-none-any.whl"
    lines = ["Metadata-Version: 2.3", f"Name: {name}", *(f"Requires-Dist: {r}" for r in requires)]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}-1.dist-info/METADATA", "\n".join(lines) + "\n\n")
    return path


def test_a_wheel_is_installed_with_those_of_ours_that_it_needs_and_no_other(tmp_path: Path):
    wheels = {
        "low": wheel(tmp_path, "low", "numpy>=2.0"),
        "middle": wheel(tmp_path, "middle", "low", "top ; extra == 'all'"),
        "top": wheel(tmp_path, "top", "Middle>=1"),
    }

    assert closure("top", wheels) == {"top", "middle", "low"}
    assert closure("middle", wheels) == {"middle", "low"}


@pytest.mark.parametrize("name", ["2.news.md", "notes.md"])
def test_a_misnamed_changelog_fragment_is_reported(tmp_path: Path, name: str):
    (tmp_path / "changelog.d").mkdir()
    (tmp_path / "changelog.d" / name).write_text("Something.\n", encoding="utf-8")

    assert name in (draft(Member("thing", "1.0", "thing", tmp_path)) or "accepted")


def test_replay_shows_changed_missing_and_new_files_and_nothing_else(tmp_path: Path):
    for name, text in {"base/a": "1\n", "base/same": "x\n", "base/gone": "g\n"}.items():
        script(tmp_path / name, text)
    for name, text in {"here/a": "2\n", "here/same": "x\n", "here/new": ""}.items():
        script(tmp_path / name, text)

    found = "".join(differences(tmp_path / "base", tmp_path / "here"))

    assert "-1\n+2\n" in found and "-g\n" in found and "new: an empty file on one side" in found
    assert "same" not in found


def pytest_with_nki_absent(folder: Path, test: str) -> subprocess.CompletedProcess[str]:
    script(folder / "nki.py", "")
    script(folder / "test_it.py", test)
    path = os.pathsep.join((str(ROOT / "workspace"), str(folder)))
    command = (sys.executable, "-m", "pytest", "-q", "-p", "nki_absent", "test_it.py")
    environment = os.environ | {"PYTHONPATH": path}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize(
    "test",
    ["import nki\ndef test(): pass\n", "def test():\n    import nki\n"],
    ids=["at collection", "in a test"],
)
def test_stage_2_fails_when_nki_is_imported(tmp_path: Path, test: str):
    done = pytest_with_nki_absent(tmp_path, test)

    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "nki in sys.modules" in done.stdout


def test_stage_2_passes_when_nki_is_not_imported(tmp_path: Path):
    done = pytest_with_nki_absent(tmp_path, "def test(): pass\n")

    assert done.returncode == pytest.ExitCode.OK, done.stdout


def test_a_stage_without_a_test_fails(tmp_path: Path):
    shutil.copy(ROOT / "noxfile.py", tmp_path)

    done = subprocess.run(
        (sys.executable, "-m", "nox", "-s", "stage4"), cwd=tmp_path, capture_output=True, text=True
    )

    assert done.returncode != 0
    assert "proves nothing" in done.stderr


def test_what_plays_programs_is_compiled_where_there_is_a_compiler(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    assert [path for path in compiled.SOURCES if not (compiled.CORE / path).is_file()] == []

    monkeypatch.setenv("PATH", str(tmp_path))
    assert compiled.main([str(tmp_path / "dist")]) == 2
    assert "a C compiler is needed" in capsys.readouterr().err
    assert not (tmp_path / "dist").exists()
