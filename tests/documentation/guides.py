"""Guides whose diff is applied to a copy of a package, and whose new test runs there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from members import ROOT


@dataclass(frozen=True)
class Guide:
    """A page of docs/ with diff blocks, and a copy of the package that the diff is about."""

    page: str
    package: Path
    copy: Path

    @classmethod
    def on_copy(cls, page: str, package: str, folder: Path) -> Guide:
        """The guide with the package's source and tests as they are, copied into a folder."""
        for part in ("src", "tests"):
            shutil.copytree(
                ROOT / package / part,
                folder / package / part,
                ignore=shutil.ignore_patterns("__pycache__"),
            )
        return cls(page, Path(package), folder)

    @property
    def new_test(self) -> str:
        """The test file that the diff adds."""
        return next(path for path in touched(self.page) if "/tests/" in path)

    def apply(self, *options: str) -> None:
        """Apply the page's diff to the copy; `--reverse` takes it back."""
        command = ("git", "apply", "--unidiff-zero", "--ignore-whitespace", *options, "-")
        done = subprocess.run(
            command, cwd=self.copy, input=diff(self.page), capture_output=True, text=True
        )
        assert done.returncode == 0, (
            f"{self.page} does not show the code as it is: {done.stderr}\nput the present lines "
            "into its diff blocks"
        )

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Python with the copy in front of the installed package."""
        environment = os.environ | {"PYTHONPATH": str(self.copy / self.package / "src")}
        command = (sys.executable, *arguments)
        return subprocess.run(
            command, cwd=self.copy, env=environment, capture_output=True, text=True
        )

    def run_new_test(self) -> subprocess.CompletedProcess[str]:
        """The test that the diff adds, on the copy."""
        options = ("-q", "-c", str(ROOT / "pyproject.toml"), f"--rootdir={self.copy}")
        return self.run("-m", "pytest", *options, self.new_test)

    def replace(self, path: str, old: str, new: str) -> None:
        """Change the text of a file of the copy."""
        file = self.copy / path
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))


def diff(page: str) -> str:
    """The diff blocks of a page, as one diff."""
    text = (ROOT / "docs" / page).read_text()
    return "".join(re.findall(r"^```diff\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


def touched(page: str) -> list[str]:
    """The files that the diff of a page touches, in its order."""
    return re.findall(r"^\+\+\+ b/(.*)$", diff(page), re.MULTILINE)
