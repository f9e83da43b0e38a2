"""The README of a package says how to install it, shows a tested example and what is missing."""

from __future__ import annotations

import re

import pytest
from members import Member, members
from tests.documentation.test_code_in_documents import python_blocks


@pytest.mark.parametrize("member", members(), ids=lambda member: member.name)
def test_a_readme_introduces_its_package(member: Member):
    text = (member.directory / "README.md").read_text(encoding="utf-8")

    assert text.startswith(f"# {member.name}\n")
    assert re.search(rf"^pip install .*\b{member.name}\b", text, re.MULTILINE)
    assert "\n## Not modelled\n" in text
    session = "```pycon\n>>> " in text  # the tests of the package run it
    assert session or python_blocks(text)


@pytest.mark.parametrize("member", members(), ids=lambda member: member.name)
def test_a_map_of_a_readme_names_every_folder_of_the_package_and_no_other(member: Member):
    text = (member.directory / "README.md").read_text(encoding="utf-8")
    found = re.search(r"^## (?:Map|Where things are)$(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    if found is None:
        return
    (source,) = (file.parent for file in (member.directory / "src").glob("*/__init__.py"))
    folders = {f"{file.parent.name}/" for file in source.glob("*/__init__.py")}
    files = {file.name for file in source.iterdir() if file.is_file()}

    assert folders <= (named := {*re.findall(r"`(\w+(?:/|\.py|\.json))`", found[1])})
    assert named - folders <= files | {file.name for file in source.glob("*/*.py")}
