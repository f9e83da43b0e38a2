"""Every output format takes any finding: with edits or without, with a place or without."""

from __future__ import annotations

import json

import pytest

from neuroncore.findings import Certainty, FileReport, Finding, Region, Report, Severity
from neuroncore.findings.formats import FORMATS

BARE = Finding("E1", "two instances are not ordered")
FULL = Finding(
    "subset", "lambda is not supported", Region("k.py", 2, 5, 2, 9), Severity.WARNING,
    code="lambda", cure="write a def", source="NKI: language subset", count=2,
    certainty=Certainty.REPORTED,
)  # fmt: skip
REPORT = Report("neuroncore", [FileReport("k.py", (BARE, FULL), "a = 1\nb = lambda: a\n")])


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_names_the_message_of_every_finding(name):
    text = FORMATS[name](REPORT)

    assert BARE.message in text
    assert FULL.message in text


def test_a_text_has_the_cure_below_the_caret():
    assert "1 | a = 1" not in FORMATS["text"](REPORT)
    assert (
        "subset[lambda] lambda is not supported\n --> k.py:2:5\n  |\n2 | b = lambda: a\n"
        "  |     ^^^^\n  = help: write a def\n" in FORMATS["text"](REPORT)
    )


def test_json_leaves_out_parts_that_a_finding_does_not_have():
    (bare, full) = json.loads(FORMATS["json"](REPORT))["files"][0]["findings"]

    assert "cure" not in bare
    assert (full["cure"], full["source"]) == ("write a def", "NKI: language subset")


@pytest.mark.parametrize("name", ["json", "jsonl", "sarif"])
def test_a_document_has_code_certainty_source_and_cure_of_a_finding(name):
    text = FORMATS[name](REPORT)

    assert json.loads(text.splitlines()[-1] if name == "jsonl" else text)
    parts = {"code": "lambda", "certainty": "reported", "source": FULL.source, "cure": FULL.cure}
    assert [key for key, value in parts.items() if f'"{key}": "{value}"' not in text] == []


def test_a_finding_reads_like_an_error_of_the_machine():
    assert str(FULL) == (
        "k.py:2:5: warning: subset[lambda]: lambda is not supported (2 times)\n"
        "    write a def\n    [NKI: language subset]"
    )
