"""The import graph of the source has no cycles across folders and only small ones inside one."""

from __future__ import annotations

import re
from functools import cache
from itertools import chain
from pathlib import Path

import pytest
from imports import Module, cycles, folder_graph, import_graph, imported_once, source_modules
from members import ROOT

MOST_FILES_IN_A_CYCLE = 3
MOST_IMPORTED_ONCE = 132  # the goal is 150: lower it with every module that is merged


ARCHITECTURE = ROOT / "docs" / "architecture.md"
TOP = "(top)"


@cache
def modules() -> dict[str, Module]:
    return source_modules()


@cache
def graph() -> dict[str, set[str]]:
    return import_graph(modules())


def package(folder: Path, **texts: str) -> dict[str, Module]:
    """Modules `p.a`, `p.b`, … with these texts; `init` is the package itself."""
    found = {}
    for name, text in texts.items():
        path = folder / ("__init__.py" if name == "init" else f"{name}.py")
        path.write_text(text, encoding="utf-8")
        dotted = "p" if name == "init" else f"p.{name}"
        found[dotted] = Module(dotted, path)
    return found


def test_imports_for_types_and_inside_functions_count(tmp_path: Path):
    found = package(
        tmp_path,
        init="",
        a="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p import b\n",
        b="def f():\n    from .a import x\n",
    )

    assert cycles(import_graph(found)) == [["p.a", "p.b"]]


def test_a_name_of_a_package_is_an_import_of_the_package(tmp_path: Path):
    found = package(tmp_path, init="from p.a import x\n", a="from p import y\n")

    assert import_graph(found) == {"p": {"p.a"}, "p.a": {"p"}}


def test_no_file_cycle_crosses_folders_or_has_more_than_three_files():
    found = cycles(graph())

    assert [c for c in found if len({modules()[m].folder for m in c}) > 1] == []
    assert [c for c in found if len(c) > MOST_FILES_IN_A_CYCLE] == []


def test_no_folder_imports_upwards():
    assert cycles(folder_graph(graph(), modules())) == []


def test_few_modules_serve_one_other_alone():
    assert len(imported_once(graph(), modules())) <= MOST_IMPORTED_ONCE


def documented_layers() -> dict[str, list[list[str]]]:
    """Package → its folders, layer by layer, as the table of docs/architecture.md has them."""
    rows = re.findall(r"^\| (\w+) \| (.* ← .*) \|$", ARCHITECTURE.read_text("utf-8"), re.MULTILINE)
    return {package: [layer.split(", ") for layer in row.split(" ← ")] for package, row in rows}


def folder_in_package(module: str) -> str:
    inner = modules()[module].folder.split(".")[1:]
    return inner[0] if inner else TOP


@pytest.mark.parametrize("package", documented_layers())
def test_a_folder_imports_from_the_layers_before_it(package: str):
    layers = documented_layers()[package]
    height = {folder: number for number, layer in enumerate(layers) for folder in layer}
    doors = {package} - ({package} if TOP in height else set())

    inside = [m for m in graph() if m.split(".")[0] == package and m not in doors]
    upwards = [
        (module, other)
        for module in inside
        for other in graph()[module] & set(inside)
        for own, its in [(folder_in_package(module), folder_in_package(other))]
        if own != its and height[own] <= height[its]
    ]

    assert upwards == []
    assert {folder_in_package(m) for m in inside} == set(chain(*layers))
