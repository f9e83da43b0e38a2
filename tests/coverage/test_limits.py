"""Limits in docs/coverage.md: every one of every record, and every function has its own or none."""

from __future__ import annotations

import re

import pytest
from members import ROOT
from nki_coverage import found_of, known_names, modelled, modules_of
from nki_limits import followed, limit_text, limit_versions, number_checked, record_limits

from neuroncore.instructions import INSTRUCTIONS
from neuroncore.surface import VERSIONS, span

PAGE = (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
MODULES = {version: modules_of(version) for version in VERSIONS}
LIMITS = [
    pytest.param(record, limit, id=f"{record.name}-{number}")
    for record in INSTRUCTIONS.values()
    for number, limit in enumerate(record.limits)
]
CALLED = [
    pytest.param(name, id=f"{name.module}.{name.name}")
    for name in known_names()
    if name.kind in ("function", "method")
    and any(modelled(MODULES[v], name) == "yes" for v in name.versions[name.versions[0] == "0.1" :])
]


def section(name: str) -> str:
    return PAGE.split(f"\n### {name}\n")[1].split("\n#")[0]


@pytest.mark.parametrize(("record", "limit"), LIMITS)
def test_a_limit_of_a_record_stands_in_the_page_with_its_versions(record, limit):
    versions = limit_versions(record, limit)
    lines = section(record.name).splitlines()

    assert versions
    for version in versions:
        text = limit_text(record, limit, version)
        assert [t.partition(": ")[2] for t in lines].count(text) == 1
        assert version in record_limits(record.name)[text]


@pytest.mark.parametrize("name", CALLED)
def test_a_function_has_its_limits_in_its_row_or_says_none(name):
    part = PAGE.split(f"\n## {name.module}\n")[1].split("\n## ")[0]
    (row,) = re.findall(rf"^\| `{re.escape(name.name)}` \|.*$", part, re.MULTILINE)
    cell = row.strip("| ").rpartition("|")[2].strip()

    assert cell
    for found in found_of(name, MODULES).values():
        assert all(f"[{r}](#{r}) {number_checked(r)}" in cell for r in found.records)
        assert found.refusals or found.records or "none" in cell


@pytest.mark.parametrize(
    ("name", "records", "refusal"),
    [
        ("load", {"dma_copy"}, "{…} is in {…} (expected: {…}) [NKI: nl.{…}]"),
        ("matmul", {"nc_matmul", "nc_transpose", "tensor_copy"}, "a tile of {…} dimensions"),
        ("tanh", {"activation"}, "{…} partitions in {…}"),
        ("sum", {"tensor_reduce"}, "{…} partitions in {…}"),
        ("rand", {"rng", "tensor_scalar"}, "nl.rand gives no {…}"),
    ],
)
def test_a_function_is_followed_to_its_instructions_and_refusals(name, records, refusal):
    found = followed(getattr(MODULES["0.6"]["nki.language"], name))

    assert found.records == records
    assert any(text.startswith(refusal) for text in found.refusals)


def test_a_limit_that_differs_by_version_is_told_for_each():
    found = {t: span(v) for t, v in record_limits("dma_transpose").items() if "(8, 8)" in t}
    ends = {v: t for t, v in found.items()}

    assert "shape[-1] at most 128" in ends["0.4 to 0.6"]
    assert "expected: 3-D" in ends["0.2"]


def test_versions_of_a_limit_are_in_order():
    for name in INSTRUCTIONS:
        for versions in record_limits(name).values():
            assert versions == [v for v in VERSIONS if v in versions]


def test_versions_are_those_in_which_the_call_is_refused():
    (text,) = [t for t in record_limits("activation_reduce") if t.startswith("reduce_res is None")]

    assert span(record_limits("activation_reduce")[text]) == "0.1 to 0.5"
