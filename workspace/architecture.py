"""docs/architecture.md: its diagram, drawn from the import contracts of pyproject.toml.

`python workspace/architecture.py [FILE]` prints the diagram, or rewrites it between the markers of
FILE.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from members import ROOT, members

BEGIN, END = "<!-- contracts: begin -->", "<!-- contracts: end -->"


def contracts(root: Path = ROOT) -> list[dict[str, Any]]:
    """The contracts that import-linter holds."""
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["tool"]["importlinter"]["contracts"]


def described(root: Path = ROOT) -> dict[str, str]:
    """Module → the description of its distribution."""
    found = {}
    for member in members(root):
        text = (member.directory / "pyproject.toml").read_text(encoding="utf-8")
        found[member.module] = tomllib.loads(text)["project"].get("description", "")
    return found


def diagram(held: list[dict[str, Any]], about: dict[str, str]) -> str:
    """Mermaid: one row per layer, arrows to what may be imported, crossed ones to what may not."""
    return "\n".join(["```mermaid", "flowchart TD", *_layers(held, about), *_never(held), "```"])


def _layers(held: list[dict[str, Any]], about: dict[str, str]) -> Iterator[str]:
    for contract in held:
        if contract["type"] != "layers":
            continue
        rows = [[name.strip() for name in layer.split("|")] for layer in contract["layers"]]
        for number, row in enumerate(rows):
            yield f"    subgraph layer{number}[ ]"
            yield from (f'        {name}["<b>{name}</b><br/>{about[name]}"]' for name in row)
            yield "    end"
        for upper, lower in pairwise(rows):
            yield from (f"    {one} --> {other}" for one in upper for other in lower)


def _never(held: list[dict[str, Any]]) -> Iterator[str]:
    """Each group of libraries is drawn once, below the packages that must not import it."""
    for number, contract in enumerate(c for c in held if c["type"] == "forbidden"):
        libraries = ", ".join(contract["forbidden_modules"])
        yield f'    without{number}(["{libraries}"])'
        yield from (f"    {module} --x without{number}" for module in contract["source_modules"])


if __name__ == "__main__":
    print(diagram(contracts(), described()))
