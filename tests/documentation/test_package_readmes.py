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
