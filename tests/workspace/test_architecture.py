"""The diagram of docs/architecture.md is that of the import contracts."""

from __future__ import annotations

import re

from architecture import contracts, described, diagram
from members import ROOT, members

PAGE = ROOT / "docs" / "architecture.md"

HELD = [
    {"type": "layers", "layers": ["tool", "left | right", "base"]},
    {"type": "forbidden", "source_modules": ["base"], "forbidden_modules": ["torch", "jax"]},
]
ABOUT = {"tool": "T", "left": "L", "right": "R", "base": "B"}


def test_layers_import_downwards_and_siblings_not():
    arrows = re.findall(r"(\w+) --> (\w+)", diagram(HELD, ABOUT))

    assert arrows == [("tool", "left"), ("tool", "right"), ("left", "base"), ("right", "base")]


def test_what_is_forbidden_is_crossed():
    drawn = diagram(HELD, ABOUT)

    assert 'without0(["torch, jax"])' in drawn
    assert "base --x without0" in drawn


def test_every_package_is_in_the_diagram_with_its_description():
    drawn = diagram(contracts(), described())

    assert all(f'{m.module}["<b>{m.module}</b><br/>' in drawn for m in members())


def test_the_folders_of_the_page_exist():
    tree = PAGE.read_text(encoding="utf-8").split("## Where things are")[1]

    assert all(f"  {m.directory.name}/" in tree and m.module in tree for m in members())
