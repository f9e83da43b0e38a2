"""The page of options holds the fields of today; every undocumented assumption has an option."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import get_args, get_type_hints

import pytest
from members import ROOT
from nki_options import DISAGREEMENTS, reasons

from neuroncore.options import Options

PAGE = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
DISPUTED = [name for names in DISAGREEMENTS.values() for name in names]


def cells_of(name: str) -> list[str]:
    """The last cells of the one row of an option: name, default, values, why."""
    (line,) = re.findall(rf"^\|.*\| `{name}` \|.*$|^\| `{name}` \|.*$", PAGE, re.MULTILINE)
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)][-5:-1]


@pytest.mark.parametrize("field", fields(Options), ids=lambda f: f.name)
def test_an_option_has_a_row_with_its_default_its_values_and_a_reason(field):
    name, default, values, why = cells_of(field.name)

    assert name == f"`{field.name}`"
    assert default == f"`{str(field.default).lower()}`"
    literal = [v for v in get_args(get_type_hints(Options)[field.name]) if isinstance(v, str)]
    assert all(f"`{value}`" in values for value in literal)
    assert len(why.split()) > 10


@pytest.mark.parametrize("name", DISPUTED)
def test_the_reason_of_a_disputed_default_speaks_of_all_values(name):
    values = [v for v in get_args(get_type_hints(Options)[name]) if isinstance(v, str)]

    assert [v for v in values if f'"{v}"' not in reasons()[name]] == []


def test_every_disagreement_is_decided_by_fields_of_its_own():
    assert len(DISPUTED) == len(set(DISPUTED))
    assert all(DISAGREEMENTS.values())
    assert {f.name for f in fields(Options)} >= set(DISPUTED)
