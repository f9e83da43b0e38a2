"""Every difference between versions that the documents name has a rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from nki_migrate.rules import all_rules
from nki_migrate.settings.request import VERSIONS

LINES = (Path(__file__).parent / "catalogue.txt").read_text(encoding="utf-8").splitlines()
CLASSES = dict(line.split() for line in LINES if not line.startswith("#"))


def test_every_id_of_the_catalogue_has_a_rule_and_every_other_rule_names_its_source():
    others = set(all_rules()) - set(CLASSES)

    assert set(CLASSES) <= set(all_rules())
    assert [id for id in others if not all_rules()[id].source] == []


@pytest.mark.parametrize("rule", all_rules().values(), ids=lambda rule: rule.id)
def test_a_rule_has_the_step_that_its_id_says(rule):
    place = int(rule.id[len("NKI")])

    assert rule.step == (VERSIONS[place - 1], VERSIONS[place])


def test_what_asks_for_nothing_reports_nothing():
    asks_for_nothing = {id for id, klass in CLASSES.items() if klass == "-"}

    assert all(all_rules()[id].keeps for id in asks_for_nothing)


def test_rules_that_report_nothing_are_of_the_syntax_alone():
    kept = {rule.id for rule in all_rules().values() if rule.keeps}

    assert {CLASSES[id] for id in kept} <= {"-", "a"}
