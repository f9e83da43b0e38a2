"""The workspace's packages, read from their pyproject files."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Member:
    """One distribution of the workspace."""

    name: str
    version: str
    module: str
    directory: Path

    @property
    def source(self) -> Path:
        return self.directory / "src" / self.module


def read_member(pyproject: Path) -> Member:
    """The member that `pyproject` declares; its wheel holds exactly one import package."""
    table = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    project, backend = table["project"], table["tool"]["uv"]["build-backend"]
    return Member(project["name"], project["version"], backend["module-name"], pyproject.parent)


def members(root: Path = ROOT) -> tuple[Member, ...]:
    """Every member, in the order of their directories."""
    globs = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    patterns: list[str] = globs["tool"]["uv"]["workspace"]["members"]
    files = (path for glob in patterns for path in sorted(root.glob(f"{glob}/pyproject.toml")))
    return tuple(read_member(path) for path in files)
