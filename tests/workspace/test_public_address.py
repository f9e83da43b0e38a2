"""The public address is in every file that names it, and in none while it is empty."""

from __future__ import annotations

import tomllib

import yaml
from members import ROOT, members
from public_address import ADDRESS, addressed_files, citation, hook, project_urls

PLACE = "https://example.org/owner/name"


def rewritten(text: str, address: str) -> str:
    return project_urls("neuroncore", "packages/neuroncore", address, text)


def test_a_package_declares_its_pages():
    for member in members():
        file = member.directory / "pyproject.toml"
        text = addressed_files(PLACE)[file](file.read_text(encoding="utf-8"))

        urls = tomllib.loads(text)["project"]["urls"]

        assert urls["Homepage"] == PLACE
        for label in ("Documentation", "Changelog"):
            assert (ROOT / urls[label].removeprefix(f"{PLACE}/blob/main/")).is_file()


def test_without_an_address_a_package_is_what_it_was():
    text = (ROOT / "packages" / "neuroncore" / "pyproject.toml").read_text(encoding="utf-8")
    without = rewritten(text, "")

    addressed = rewritten(without, PLACE)

    assert "urls" not in tomllib.loads(without)["project"]
    assert rewritten(addressed, PLACE) == addressed
    assert rewritten(addressed, "") == without


def test_the_hook_names_the_repository():
    page = (ROOT / "docs" / "pre-commit.md").read_text(encoding="utf-8")

    addressed = hook(PLACE, page)

    assert f"  - repo: {PLACE}\n" in addressed
    assert "- uses: owner/name@<" in addressed
    assert "- uses: actions/checkout@v4" in addressed
    assert hook(ADDRESS, addressed) == page


def test_the_citation_is_complete_and_has_the_address_once_there_is_one():
    found = yaml.safe_load(citation(PLACE))

    assert {"cff-version", "message", "title", "authors"} <= found.keys()
    assert found["repository-code"] == PLACE
    assert "repository-code" not in yaml.safe_load(citation(""))
