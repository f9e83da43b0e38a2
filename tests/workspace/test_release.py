"""A release is complete and repeatable, and rejected where it could not be undone."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import release
from archives import archive_faults, build_twice
from members import Member, members
from release_trials import lower_bounds, patch

DTYPES = next(member for member in members() if member.name == "nki-dtypes")


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(("git", *identity, *arguments), cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A workspace of one package, committed."""
    folder = tmp_path / "packages" / "one"
    folder.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[tool.uv.workspace]\nmembers = ["packages/*"]\n')
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "one"\nversion = "1.0.0"\n[tool.uv.build-backend]\nmodule-name = "one"\n'
    )
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "one")
    return tmp_path


def test_a_clean_tree_and_a_new_version_can_be_released(repository: Path):
    assert release.obstacles(repository, ["one"]) == []


def test_uncommitted_changes_stop_a_release(repository: Path):
    (repository / "new").touch()

    assert release.obstacles(repository, ["one"]) == ["the working tree is not clean"]


def test_a_version_is_released_once(repository: Path):
    git(repository, "tag", "one-1.0.0")

    (obstacle,) = release.obstacles(repository, ["one"])

    assert obstacle == "the tag one-1.0.0 exists: raise the version first"


def test_an_unknown_package_is_a_usage_error(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit, match="2"):
        release.main(["--dry-run", "nki-types"])

    assert "no package nki-types; the packages: " in capsys.readouterr().err


def test_a_release_names_its_packages(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit, match="2"):
        release.main([])

    assert "name the packages to release, or --dry-run" in capsys.readouterr().err


def test_two_builds_of_a_package_are_equal_to_the_byte(tmp_path: Path):
    assert build_twice([DTYPES], tmp_path) == []
    assert len([*tmp_path.glob("nki_dtypes-*")]) == 2


def test_a_release_without_a_wheel_is_a_fault(tmp_path: Path):
    (fault,) = archive_faults(DTYPES, tmp_path)

    assert fault == "nki-dtypes: a wheel and a source distribution expected, got []"


def test_the_lowest_bound_of_several_wheels_is_the_highest_of_theirs(tmp_path: Path):
    from tests.workspace.test_programs import wheel

    made = [wheel(tmp_path, "a", "numpy>=2.0", "b>=1"), wheel(tmp_path, "b", "numpy>=2.1,<3")]

    assert lower_bounds(made, "3.11") == ["numpy==2.1"]


def test_a_bound_for_a_version_of_python_counts_there(tmp_path: Path):
    from tests.workspace.test_programs import wheel

    newer = "numpy>=2.1; python_full_version >= '3.13'"
    made = [wheel(tmp_path, "a", "numpy>=2.0", newer)]

    assert lower_bounds(made, "3.12") == ["numpy==2.0"]
    assert lower_bounds(made, "3.13") == ["numpy==2.1"]


@pytest.mark.parametrize(("version", "expected"), [("1.0.0rc1", "1.0.1"), ("2.3.4", "2.3.5")])
def test_a_patch_raises_the_last_number(version: str, expected: str):
    assert patch(version) == expected


def test_the_tag_names_package_and_version():
    member: Member = replace(DTYPES, version="1.2.3")

    assert release.tag(member) == "nki-dtypes-1.2.3"
