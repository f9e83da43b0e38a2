"""The site has every page of docs/, a page per entry of the long ones, and no link that ends."""

from __future__ import annotations

from pathlib import Path

import docs_site
import pytest
from docs_site import Page, Site, slug, split
from members import ROOT


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """The site of this repository, written below a temporary folder."""
    monkeypatch.setattr(docs_site, "SOURCE", tmp_path)
    made = Site()
    made.collect()
    made.write()
    return made


def test_every_page_is_listed_and_every_link_leads_somewhere(site: Site):
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")}

    assert pages <= {page.source for page in site.pages}
    assert site.faults == []
    assert "    - Rules: rules/index.md\n" in site.navigation()


def test_a_rule_has_a_page_and_links_lead_to_it(site: Site, tmp_path: Path):
    assert "\n# NKI1101\n" in f"\n{(tmp_path / 'rules/nki1101.md').read_text()}"
    assert "[NKI1101](../rules/nki1101.md)" in (tmp_path / "rules/index.md").read_text()


def test_a_link_to_a_heading_that_is_not_there_is_a_fault(site: Site):
    page = Page("docs/model.md", "model.md", ["See [this](options.md#moons) and `f[a](b)`."])

    site.text(page)

    assert site.faults == ["docs/model.md: a link to options.md#moons, which is not there"]


def test_a_file_outside_the_site_is_named_without_a_link_while_there_is_no_address(
    site: Site, monkeypatch: pytest.MonkeyPatch
):
    page = Page("docs/model.md", "model.md", ["[the table](../noxfile.py)"])

    assert site.text(page) == "the table\n"
    monkeypatch.setattr(docs_site, "ADDRESS", "https://example.org/x")
    assert site.text(page) == "[the table](https://example.org/x/blob/main/noxfile.py)\n"


def test_headings_in_code_split_nothing():
    page = Page("docs/rules.md", "rules.md", ["# Rules", "## A", "```", "## no", "```", "### B"])

    assert [(part.path, part.lines) for part in split(page)] == [
        ("rules/index.md", ["# Rules"]),
        ("rules/a.md", ["# A", "```", "## no", "```", "## B"]),
    ]


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [("HW01 a, b", "hw01-a-b"), ("`nki.jit` is gone", "nkijit-is-gone"), ("[x](y) z", "x-z")],
)
def test_anchors_are_those_of_the_hosting_service(heading: str, anchor: str):
    assert slug(heading) == anchor
