"""What users do with released archives: install each alone, at the lowest bounds, with uvx, and a
patch of one package beside the others as they are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from shutil import copytree, ignore_patterns

from archives import UV, build, stem
from members import Member
from packaging.utils import canonicalize_name
from packaging.version import Version
from pythons import SUPPORTED, find
from wheels import NO_DOWNLOADS, closure, install_and_probe, requirements, uv

Wheels = Mapping[str, Path]


def trial_faults(released: Mapping[str, Member], dist: Path) -> Iterator[str]:
    """The faults of every trial with the wheels in `dist`, one of each package."""
    wheels = {name: dist / f"{stem(member)}-py3-none-any.whl" for name, member in released.items()}
    pythons = [(version, found) for version in SUPPORTED if (found := find(version))]
    with tempfile.TemporaryDirectory() as pip, ThreadPoolExecutor(os.cpu_count()) as pool:
        uv("venv", "--seed", pip)
        alone = product(released.values(), pythons, (False, True))
        trials = [partial(_alone, Path(pip) / "bin" / "python", wheels, *case) for case in alone]
        trials += [partial(_patched, member, released, wheels) for member in released.values()]
        trials += [partial(_with_uvx, released["nki-migrate"], wheels)]
        done = pool.map(lambda trial: trial(), trials)
        for number, fault in enumerate(done, 1):
            show_progress(f"trial {number} of {len(trials)}")
            yield fault
    show_progress("")


def show_progress(text: str) -> None:
    """Replace the last line of a terminal."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def _alone(
    pip: Path, wheels: Wheels, member: Member, python: tuple[str, Path], lowest: bool
) -> str:
    """A wheel with what it requires, the newest or the oldest that it admits, by pip."""
    version, interpreter = python
    chosen = [wheels[name] for name in sorted(closure(member.name, wheels))]
    oldest = lower_bounds(chosen, version) if lowest else []
    faults = install_and_probe(chosen, [member], interpreter, oldest, pip)
    where = f"python {version}{', lowest bounds' if lowest else ''}"
    return f"{member.name}, {where}: {faults}" if faults else ""


def lower_bounds(wheels: Iterable[Path], python: str) -> list[str]:
    """`name==bound` for what wheels require of others on a version of Python."""
    lowest: dict[str, Version] = {}
    for requirement in (r for wheel in wheels for r in requirements(wheel, python)):
        name = canonicalize_name(requirement.name)
        bounds = [Version(s.version) for s in requirement.specifier if s.operator == ">="]
        lowest[name] = max([*bounds, lowest.get(name, Version("0"))])
    ours = {canonicalize_name(wheel.name.split("-")[0]) for wheel in wheels}
    return [f"{name}=={bound}" for name, bound in sorted(lowest.items()) if name not in ours]


def patch(version: str) -> str:
    """The version of the next patch: 1.0.1 for 1.0.0 and for 1.0.0rc1."""
    major, minor, micro = Version(version).release
    return f"{major}.{minor}.{micro + 1}"


def _patched(member: Member, released: Mapping[str, Member], wheels: Wheels) -> str:
    """A patch release of one package, installed with the others' released wheels."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "package"
        copytree(member.directory, copy, ignore=ignore_patterns("tests", "changelog.d"))
        newer = replace(member, version=patch(member.version), directory=copy)
        project = copy / "pyproject.toml"
        text = project.read_text(encoding="utf-8")
        raised = re.sub(r'(?m)^version = ".*"$', f'version = "{newer.version}"', text, count=1)
        project.write_text(raised, encoding="utf-8")
        build(newer, Path(scratch))
        wheel = Path(scratch) / f"{stem(newer)}-py3-none-any.whl"
        chosen = {**wheels, member.name: wheel}
        versions = {**released, member.name: newer}
        affected = [m for name, m in versions.items() if member.name in closure(name, chosen)]
        faults = install_and_probe([*chosen.values()], affected, Path(sys.executable))
    return f"{stem(newer)} with the others released: {faults}" if faults else ""


def _with_uvx(member: Member, wheels: Wheels) -> str:
    """`uvx nki-migrate --version`, with a local index that holds our packages."""
    with tempfile.TemporaryDirectory() as scratch:
        for name, wheel in wheels.items():
            page = Path(scratch) / name / "index.html"
            page.parent.mkdir()
            page.write_text(f'<a href="{wheel.as_uri()}">{wheel.name}</a>', encoding="utf-8")
        asked = f"{member.name}[verify]=={member.version}"
        command = (
            *UV,
            "tool",
            "run",
            "--quiet",
            "--index",
            Path(scratch).as_uri(),
            "--from",
            asked,
        )
        done = subprocess.run(
            [*command, member.name, "--version"],
            env=NO_DOWNLOADS, cwd=scratch, capture_output=True, text=True, check=False,
        )  # fmt: skip
    said = (done.stdout + done.stderr).strip()
    return "" if member.version in done.stdout else f"uvx {member.name}: {said}"
