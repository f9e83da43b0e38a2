"""Every package is a whole distribution, and a light one."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from installed_size import size_on
from members import ROOT, Member, members
from packaging.requirements import Requirement
from packaging.version import Version

EVERY_MEMBER = pytest.mark.parametrize("member", members(), ids=lambda member: member.name)
IMPORTABLE = {member.module for member in members()}

# Weigh 20 MB, or 100 ms, or are the vendor's: a package imports them where it uses them.
HEAVY = {"typer", "rich", "libcst", "torch", "jax", "pytest", "hypothesis", "nki", "neuronxcc"}
MOST_BYTES = 6_000_000  # of nki-runtime and nki-beta2, beyond numpy and ml_dtypes
MOST_MODULES = 215  # of an import, beyond the ones of NumPy: about 110 ms of CPU time


def project(member: Member) -> dict[str, Any]:
    text = (member.directory / "pyproject.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["project"]


@EVERY_MEMBER
def test_a_package_ships_a_readme_that_names_it(member: Member):
    assert member.name in (member.directory / "README.md").read_text(encoding="utf-8")


@EVERY_MEMBER
def test_a_package_is_typed_and_keeps_changelog_fragments(member: Member):
    assert (member.source / "py.typed").is_file()
    assert (member.directory / "changelog.d").is_dir()


@EVERY_MEMBER
def test_a_package_declares_the_same_pythons_and_licence_as_the_workspace(member: Member):
    workspace = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert project(member)["requires-python"] == workspace["requires-python"]
    assert project(member)["license"] == "Apache-2.0"


def requirements(member: Member) -> list[Requirement]:
    """What a package requires, its extras included."""
    table = project(member)
    extras = table.get("optional-dependencies", {}).values()
    return [Requirement(text) for texts in (table["dependencies"], *extras) for text in texts]


@EVERY_MEMBER
def test_a_package_bounds_ours_from_a_released_version_to_the_next_major(member: Member):
    versions = {m.name: Version(m.version) for m in members()}
    ours = [r for r in requirements(member) if r.name in versions]

    for requirement in ours:
        version = versions[requirement.name]
        assert version in requirement.specifier, requirement
        assert Version(f"{version.major + 1}") not in requirement.specifier, requirement


@EVERY_MEMBER
def test_a_package_ships_the_licence(member: Member):
    assert (member.directory / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def modules_after(statement: str) -> list[str]:
    """The modules that the statement imports beyond NumPy, in a fresh Python."""
    report = f"import numpy, sys; before = {{*sys.modules}}; {statement}; "
    report += "print(*sys.modules.keys() - before)"
    done = subprocess.run((sys.executable, "-c", report), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@EVERY_MEMBER
def test_importing_a_package_takes_few_modules(member: Member):
    assert len(modules_after(f"import {member.module}")) <= MOST_MODULES


@EVERY_MEMBER
def test_the_public_names_of_a_package_bring_in_nothing_heavy(member: Member):
    modules = modules_after(f"from {member.module} import *")

    assert HEAVY.isdisjoint(name.partition(".")[0] for name in modules)


def imported_names(source: Path) -> set[str]:
    """Dotted names that `source` imports absolutely, with what it takes from them."""
    found = set()
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                found |= {alias.name for alias in names}
            case ast.ImportFrom(module=str(module), names=names, level=0):
                found |= {f"{module}.{alias.name}" for alias in names}
    return found


@EVERY_MEMBER
def test_a_package_stays_out_of_the_private_modules_of_others(member: Member):
    others = IMPORTABLE - {member.module}

    names = {n for path in member.source.rglob("*.py") for n in imported_names(path)}
    strangers = {n for n in names if n.partition(".")[0] in others}

    assert [n for n in sorted(strangers) if "._" in n and not n.endswith("__")] == []


@pytest.mark.parametrize("command", ["nkigym", "tokenplan", "nki_migrate"])
@pytest.mark.parametrize("words", ["--help", "bogus", "--bogus", ""])
def test_a_command_line_without_a_command_imports_no_numpy(command: str, words: str):
    run = (
        "import runpy, sys\n"
        f"sys.argv = ['{command}', *{words.split()!r}]\n"
        "try:\n"
        f"    runpy.run_module('{command}', run_name='__main__')\n"
        "finally:\n"
        "    print('numpy' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "False", done.stderr


def test_the_runtime_and_beta2_install_at_most_6_mb():
    assert 1_000_000 < size_on(sys.executable).files <= MOST_BYTES
