"""The diagram of docs/architecture.md is that of the import contracts."""

from __future__ import annotations

import re

import pytest
from architecture import BEGIN, END, contracts, described, diagram, main, with_diagram
from members import ROOT, members

PAGE = ROOT / "docs" / "architecture.md"

HELD = [
    {"type": "layers", "layers": ["tool", "left | right", "base"]},
    {"type": "forbidden", "source_modules": ["base"], "forbidden_modules": ["torch", "jax"]},
]
ABOUT = {"tool": "T", "left": "L", "right": "R", "base": "B"}


def test_the_page_is_up_to_date():
    """When this fails: python workspace/architecture.py docs/architecture.md"""
    text = PAGE.read_text(encoding="utf-8")

    assert with_diagram(text, diagram(contracts(), described())) == text


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


def test_the_command_rewrites_the_diagram_and_nothing_else(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# A\n{BEGIN}\nold\n{END}\nend\n")

    assert main([str(page)]) == 0

    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# A\n{BEGIN}\n```mermaid\nflowchart TD\n")
    assert text.endswith(f"\n```\n{END}\nend\n") and "old" not in text


def test_a_page_without_a_place_for_it_is_refused():
    with pytest.raises(ValueError, match="no place for the diagram"):
        with_diagram("# A\n", "drawn")
