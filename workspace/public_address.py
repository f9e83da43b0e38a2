"""The public address of the project, and the files that contain it.

`python workspace/pages.py` writes them. While the address is empty they leave it out; a report in
SARIF reads it from the metadata of its package.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from members import ROOT, members

ADDRESS = ""
"""Of the repository, such as https://github.com/OWNER/NAME; empty until there is one."""

BRANCH = "blob/main"
DOCUMENTATION = {"nki-migrate": "docs/rules.md", "tokenplan": "docs/tokenplan-codes.md"}
"""Package → the page that its rules are described in; for others their README."""

_URLS = re.compile(r"^\[project\.urls\]\n(?:[^\n\[]+\n)+\n", re.MULTILINE)
_HOOK = re.compile(r"(?<=- repo: ).+")
_ACTION = re.compile(r"(?<=- uses: ).+(?=@<)")

CITATION = """\
cff-version: 1.2.0
message: If you use this software, please cite it as below.
type: software
title: "nki-bridge: AWS NKI kernels on any computer"
authors:
  - name: The nki-bridge authors
license: Apache-2.0
"""


def project_urls(name: str, directory: str, address: str, text: str) -> str:
    """The pyproject file of a package, in `directory` of the repository."""
    text = _URLS.sub("", text)
    if not address:
        return text
    page = DOCUMENTATION.get(name, f"{directory}/README.md")
    urls = {
        "Homepage": address,
        "Documentation": f"{address}/{BRANCH}/{page}",
        "Changelog": f"{address}/{BRANCH}/CHANGELOG.md",
    }
    table = "".join(f'{label} = "{url}"\n' for label, url in urls.items())
    return text.replace("[build-system]\n", f"[project.urls]\n{table}\n[build-system]\n", 1)


def hook(address: str, text: str) -> str:
    """docs/pre-commit.md: the repository of the hook and of the action."""
    repository = re.sub(r"^https?://[^/]+/", "", address)
    text = _HOOK.sub(address or "<address of this repository>", text)
    return _ACTION.sub(repository or "<owner>/<this repository>", text)


def citation(address: str, text: str = "") -> str:
    """CITATION.cff."""
    return CITATION + (f"repository-code: {address}\n" if address else "")


def addressed_files(address: str = ADDRESS) -> dict[Path, Callable[[str], str]]:
    """File of the repository → how its text is rewritten."""
    files: dict[Path, Callable[[str], str]] = {
        ROOT / "CITATION.cff": partial(citation, address),
        ROOT / "docs" / "pre-commit.md": partial(hook, address),
    }
    for member in members():
        directory = member.directory.relative_to(ROOT).as_posix()
        rewrite = partial(project_urls, member.name, directory, address)
        files[member.directory / "pyproject.toml"] = rewrite
    return files
