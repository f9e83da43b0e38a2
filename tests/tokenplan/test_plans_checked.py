"""The examples' schedules before the independent checker, whole and with something taken away."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from tests.tokenplan.kernels import EXAMPLES, program

from tokenplan import analyse
from tokenplan.checker import CheckOptions, Report, check_plan, read_plan_file
from tokenplan.neuroncore import schedule
from tokenplan.report import plan_file


@pytest.fixture(scope="module", params=EXAMPLES)
def planned(request) -> dict[str, Any]:
    """An example's plan file."""
    kernel = program(request.param)
    graph = analyse(kernel)
    return plan_file.as_json(graph, schedule(graph, kernel).as_json())


def check(file: dict[str, Any], **options: Any) -> Report:
    return check_plan(read_plan_file(json.dumps(file)), CheckOptions(**options))


def test_no_timing_of_ten_thousand_breaks_a_plan_and_every_wait_is_needed(planned):
    report = check(planned, mutate=True, random=10_000)
    assert [str(found) for found in report.findings] == []
    assert "10000 random timings played (seed 0): a race in 0 of them" in report.notes
    assert f"{report.waits} of {report.waits} waits are necessary" in report.notes


def test_each_wait_that_is_taken_away_is_missed_and_some_timing_shows_it(planned):
    for wait in planned["plan"]["waits"]:
        broken = copy.deepcopy(planned)
        broken["plan"]["waits"].remove(wait)
        report = check(broken, random=2_000)
        assert "E1" in {found.code for found in report.findings}, wait
        assert not any("a race in 0 of them" in note for note in report.notes), wait


def test_each_edge_that_is_taken_away_or_reaches_too_far_back_is_missed(planned):
    kept = [n for n, edge in enumerate(planned["edges"]) if edge["status"] == "kept"]
    for n in kept:
        broken = copy.deepcopy(planned)
        removed = broken["edges"].pop(n)
        broken["stats"]["kept"] -= 1
        assert "E1" in {found.code for found in check(broken, random=0).findings}, removed
        if removed["distance"]:
            further = copy.deepcopy(planned)
            further["edges"][n]["distance"][-1] += 1
            further["edges"][n]["witness"] = None
            found = {found.code for found in check(further, random=0).findings}
            assert "E1" in found, removed


def test_a_slot_that_is_reused_too_early_is_overwritten(planned):
    for name, places in planned["plan"]["slots"].items():
        if places > 1:
            broken = copy.deepcopy(planned)
            broken["plan"]["slots"][name] = places - 1
            broken["plan"]["prefetch"] = {}  # what it says needs the places
            assert "E1" in {found.code for found in check(broken).findings}, name


def test_two_waits_that_change_places_lose_an_order_exactly_where_a_timing_shows_it(planned):
    """Some exchanges only wait for more than is needed, which the timings tell apart."""
    waits, stopped = planned["plan"]["waits"], set()
    for n in range(len(waits) - 1):
        broken = copy.deepcopy(planned)
        one, other = broken["plan"]["waits"][n : n + 2]
        if one["op"] == other["op"] or len(one["distance"]) != len(other["distance"]):
            continue
        one["op"], other["op"] = other["op"], one["op"]
        try:
            found = {found.code for found in check(broken, random=0).findings} & {"E1", "E5"}
        except ValueError:
            continue  # a distance that the other's loops do not have
        notes = check(broken, random=2_000).notes
        raced = not any("a race in 0 of them" in note for note in notes)
        assert "E5" in found or ("E1" in found) == raced, (one, other)
        stopped |= found
    assert stopped
