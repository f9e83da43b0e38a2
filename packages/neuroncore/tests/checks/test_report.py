"""Findings read like errors, are counted by line, and checks are found by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuroncore.checks import CHECKS, Finding, Report, check, resolve_checks, watching
from neuroncore.errors import LaunchError, Place
from neuroncore.findings import Severity

SOURCE = Path(__file__).read_text(encoding="utf-8").splitlines()


def test_a_finding_has_place_caret_expected_got_hint_and_rule():
    (line,) = (n for n, text in enumerate(SOURCE, 1) if text.startswith("SOURCE = "))
    place = Place(__file__, line, 0, line, 6)
    found = Finding(
        "memory", "src is wrong", place, expected="this", got="that", cure="do so",
        source="a rule", instruction="tensor_copy", notes=("see there",),
    )  # fmt: skip

    assert str(found).splitlines() == [
        f"{__file__}:{line}:1: memory: tensor_copy: src is wrong",
        '    SOURCE = Path(__file__).read_text(encoding="utf-8").splitlines()',
        "    ^^^^^^",
        "    expected: this",
        "    got:      that",
        "    do so",
        "    see there",
        "    [a rule]",
    ]


def test_a_warning_and_a_code_show():
    found = Finding("subset", "lambda", code="nested", severity=Severity.WARNING, count=2)

    assert str(found) == "warning: subset[nested]: lambda (2 times)"


def test_a_line_is_listed_once_for_any_text():
    report, line = Report(), Place("kernel.py", 3)
    report.add(Finding("memory", "7 elements", line))
    report.add(Finding("memory", "8 elements", line))
    report.add(Finding("memory", "8 elements", Place("kernel.py", 4)))
    report.add(Finding("device", "8 elements", line))

    assert [(f.rule, f.message, f.count) for f in report] == [
        ("memory", "7 elements", 2),
        ("memory", "8 elements", 1),
        ("device", "8 elements", 1),
    ]


def test_every_check_has_its_own_name_and_a_way_to_look():
    for name, entry in CHECKS.items():
        assert entry.name == name
        assert entry.watcher is not None or entry.source is not None


def test_an_unknown_check_is_rejected_with_a_near_name():
    with pytest.raises(LaunchError, match="unknown check 'memroy'") as wrong:
        resolve_checks(["memroy"])

    assert wrong.value.hint == "did you mean memory?"


def test_checks_are_taken_once_each_in_order():
    chosen = resolve_checks(["race", "memory", "race"])

    assert [entry.name for entry in chosen] == ["race", "memory"]


def test_a_check_of_sources_does_not_watch():
    with pytest.raises(LaunchError, match="reads a script"), watching("subset"):
        pass


def test_a_callable_is_watched_while_it_runs(make_world, nisa):
    def run():
        world = make_world()
        nisa.tensor_copy(world.new((4, 4)), world.new((4, 4)))

    assert [f.rule for f in check(run, "memory")] == ["memory"]
    run()  # without a watcher


def test_without_names_all_that_watch_do(make_world, nisa):
    with watching() as report:
        world = make_world()
        nisa.tensor_copy(world.new((4, 4)), world.new((4, 4)))

    assert str(report).count("memory: tensor_copy: src reads") == 1
