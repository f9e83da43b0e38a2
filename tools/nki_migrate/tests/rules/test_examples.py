"""Every rule's examples are true: `bad` migrates to `good`, under the rule's own id."""

import pytest

from nki_migrate.engine.migration import migrate_source
from nki_migrate.rules import Example, Rule, all_rules
from nki_migrate.settings.request import Request

EXAMPLES = [
    pytest.param(rule, example, id=f"{rule.id}-{number}")
    for rule in all_rules().values()
    for number, example in enumerate(rule.examples)
]


def _migrated(rule: Rule, example: Example, text: str):
    request = Request(
        source_version=rule.step[0],
        target=example.target or rule.step[1],
        extend_select=(rule.id,) if rule.optional else (),
    )
    return migrate_source(text, "example.py", request)


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_bad_example_migrates_to_the_good_one(rule, example):
    result = _migrated(rule, example, example.bad)

    assert _without_numpy(result.after) == _without_numpy(example.good)


def _without_numpy(text: str) -> str:
    """Examples import NumPy only where they show it."""
    return text.replace("import numpy as np\n", "")


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_example_is_reported_under_its_rule(rule, example):
    result = _migrated(rule, example, example.bad)

    assert (rule.id in {f.rule for f in result.findings}) is not rule.keeps


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_good_example_stays_as_it_is(rule, example):
    assert _migrated(rule, example, example.good).after == example.good


def test_every_rule_has_a_title_and_a_page():
    rules = all_rules().values()

    assert all(r.title and r.page for r in rules)
    assert all("Old:" in r.page and "New:" in r.page for r in rules if r.step[0] == "0.1")


def test_every_rule_has_an_example_or_is_shown_by_another():
    shown_elsewhere = {"NKI1102", "NKI1103", "NKI1104", "NKI1107", "NKI1111", "NKI1113"}
    shown_elsewhere |= {"NKI1112"}
    shown_elsewhere |= {"NKI1114", "NKI1115", "NKI1116", "NKI1118"}  # test_imports, test_grid, …

    without = {r.id for r in all_rules().values() if r.step[0] == "0.1" and not r.examples}

    assert without == shown_elsewhere
