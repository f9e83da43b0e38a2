"""What the modules offer against what NKI documents, version by version."""

from __future__ import annotations

import inspect

import pytest
from members import ROOT
from nki_coverage import NAMES, known_names, modelled, modules_of, render

from neuroncore.surface import VERSIONS

FUNCTIONS = [
    pytest.param(v, n, id=f"{v}-{n.module}.{n.name}")
    for n in known_names()
    for v in n.versions
    if n.kind == "function" and n.module in ("nki.isa", "nki.language")
]

# Where ours differ from the stubs on purpose: 0.1's functions end in **kwargs for the compiler's
# own options, and what the stubs print as *args is spelled out here.
OPEN_ENDED = frozenset({"*args", "**kwargs"})


def names_of(parameters: str) -> list[str]:
    """ "dst, src, name=None" → ["dst", "src", "name"], without separators and open ends."""
    depth, words, word = 0, [], ""
    for character in parameters + ",":
        depth += (character in "([") - (character in ")]")
        if character == "," and not depth:
            words.append(word.strip())
            word = ""
        else:
            word += character
    bare = (w.partition("=")[0].strip() for w in words)
    return [w for w in bare if w and w != "*" and w not in OPEN_ENDED]


@pytest.mark.parametrize(("version", "name"), FUNCTIONS)
def test_a_modelled_function_takes_the_documented_parameters(version, name):
    modules = modules_of(version)
    if modelled(modules, name) != "yes":
        return  # docs/coverage.md says so
    function = getattr(modules[name.module], name.name)
    if not callable(function) or isinstance(function, type):
        return
    taken = [
        p.name
        for p in inspect.signature(function).parameters.values()
        if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    ]

    documented = names_of(name.parameters[version])

    assert taken[: len(documented)] == documented or not documented


def test_the_page_is_up_to_date():
    page = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")

    assert page == render(), "run: python workspace/nki_coverage.py docs/coverage.md"


def test_the_table_holds_every_version():
    versions = {v for name in known_names() for v in name.versions}

    assert versions == set(VERSIONS)
    assert NAMES.is_file()
