"""Rules own what is reported under their ids; the engine below names none."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import nki_migrate.engine
import nki_migrate.rewriting
from nki_migrate.rewriting.context.reasons import Reason
from nki_migrate.rules import all_rules, rewriting_rules

FOLDERS = [Path(p.__file__).parent for p in (nki_migrate.engine, nki_migrate.rewriting)]
MODULES = sorted(module for folder in FOLDERS for module in folder.rglob("*.py"))
# What another rule's check reports in one go with its own: imports, decorators, device loops.
REPORTED_TOGETHER = {"NKI1103", "NKI1112", "NKI1113", "NKI1114", "NKI1115"}
REPORTED_TOGETHER |= {"NKI5003", "NKI6002", "NKI6003", "NKI6004"}


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_the_engine_names_no_rule(module):
    assert re.findall(r"NKI\d+", module.read_text(encoding="utf-8")) == []


def test_every_reason_of_the_engine_is_of_one_rule():
    taken = Counter(reason for rule in all_rules().values() for reason in rule.reasons)

    assert taken == dict.fromkeys(Reason, 1)


def test_a_name_of_one_rule_alone_is_looked_up_by_its_longest_entry():
    table = rewriting_rules()

    assert [table.rule_of(n) for n in ("nl.load", "nl.var", "nl.floor", "nisa._f", "nisa.f")] == [
        "NKI1133", "NKI1229", "NKI1236", "NKI1199", "NKI1198",
    ]  # fmt: skip


@pytest.mark.parametrize("rule", all_rules().values(), ids=lambda rule: rule.id)
def test_a_rule_does_something_or_documents_what_stays(rule):
    hooks = rule.hooks
    acts = hooks.check or hooks.calls or hooks.methods or rule.reasons or rule.names

    assert bool(acts) is (not rule.keeps and rule.id not in REPORTED_TOGETHER)
