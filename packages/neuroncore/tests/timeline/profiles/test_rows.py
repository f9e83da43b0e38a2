"""Reading a captured profile: columns, source lines, times that contradict one another."""

from __future__ import annotations

import pytest

from neuroncore.errors import LaunchError
from neuroncore.timeline import estimate, profile_of
from neuroncore.timeline.profiles.rows import columns

from ..kernels import CARRIED, program
from .captured import captured


@pytest.fixture
def table():
    return captured(estimate(program(CARRIED), skip_periods=False, mode="as_written"))


def renamed(table, **names):
    return {names.get(column, column): values for column, values in table.items()}


def test_a_row_is_an_instruction_or_the_transfer_that_it_triggered():
    rows = profile_of("p", {
        "start_ts": [100, 200], "end_ts": [150, 210], "engine": ["Vector", "sync"],
        "nki_source_location": ["/a b/k.py:7", "['C:\\\\k.py:8', 'm.py:9']"],
        "dma_trigger_end_ts": [None, 2600],
    }).rows  # fmt: skip

    assert rows[0] == ("vector", 100, 150, (("k.py", 7),), None)
    assert rows[1] == ("dma", 200, 2600, (("k.py", 8), ("m.py", 9)), None)


def test_numbers_in_texts_are_read_to_the_nanosecond():
    epoch = 1_790_000_000_000_000_001

    (row,) = profile_of("p", {
        "start_ts": [str(epoch)], "end_ts": [f"{epoch + 3}"], "engine": ["Vector"],
        "nki_source_location": ["k.py:7"], "pcore_idx": ["0"],
    }).rows  # fmt: skip

    assert (row.start_ns - epoch, row.end_ns - row.start_ns) == (0, 3)


@pytest.mark.parametrize("wrong", ["soon", float("nan"), float("inf"), [3], {}])
def test_a_time_that_is_no_number_is_named(table, wrong):
    times = [*table["start_ts"][:-1], wrong]

    with pytest.raises(LaunchError, match=r"p: start_ts is .* in a row, which is not a number"):
        profile_of("p", {**table, "start_ts": times})


def test_columns_of_different_lengths_are_rejected(table):
    with pytest.raises(LaunchError, match="p: its columns have different numbers of rows"):
        profile_of("p", {**table, "engine": table["engine"][:-1]})


def test_a_row_without_an_end_is_left_out(table):
    ends = [None, *table["end_ts"][1:]]

    assert len(profile_of("p", {**table, "end_ts": ends}).rows) == len(ends) - 1


def test_names_of_the_older_export_are_read(table):
    older = {today: before for before, today in columns()["older"].items()}
    spans = [end - start for start, end in zip(table["start_ts"], table["end_ts"], strict=True)]
    exported = renamed({**table, "duration_ns": spans}, **older)
    del exported["end_ts"]

    assert {"timestamp", "duration", "label"} <= set(exported)
    assert profile_of("p", exported).rows == profile_of("p", table).rows


def test_a_missing_column_is_named_with_the_one_that_it_may_be(table):
    with pytest.raises(LaunchError) as raised:
        profile_of("p", renamed(table, start_ts="start_time", engine="unit"))

    assert raised.value.what == "p has no column start_ts, engine"
    assert raised.value.got == "unknown columns start_time, unit"
    assert (raised.value.hint or "").startswith("rename start_time to start_ts")


def test_an_unknown_column_is_reported_and_not_read(table):
    profile = profile_of("p", {**table, "wattage": [1] * len(table["start_ts"])})

    assert profile.notes == ["unknown columns, not read: wattage"]


def test_rows_of_the_second_core_are_not_read(table):
    half = len(table["start_ts"]) // 2
    cores = [0] * half + [1] * (len(table["start_ts"]) - half)

    assert len(profile_of("p", {**table, "pcore_idx": cores}).rows) == half


def test_a_profile_of_the_second_core_alone_is_rejected(table):
    with pytest.raises(LaunchError, match="p has no rows of core 0"):
        profile_of("p", {**table, "pcore_idx": [1] * len(table["engine"])})


@pytest.mark.parametrize(("longer", "is_noted"), [(1.0, False), (1.005, False), (5.0, True)])
def test_a_duration_that_contradicts_the_ends_is_noted(table, longer, is_noted):
    pairs = zip(table["start_ts"], table["end_ts"], strict=True)
    durations = [longer * (end - start) for start, end in pairs]

    notes = profile_of("p", {**table, "duration_ns": durations}).notes

    count = f"{len(durations)} rows: duration_ns is not end_ts - start_ts, which counts"
    assert (count in notes) == is_noted


def test_a_profile_without_source_lines_says_how_to_get_them(table):
    with pytest.raises(LaunchError, match="no instruction names a source line") as raised:
        profile_of("p", {**table, "nki_source_location": [None] * len(table["start_ts"])})

    assert "NKI_DEBUG_INFO" in (raised.value.hint or "")


def set_back(values, by, place):
    return [v - by * (at >= place) if v else v for at, v in enumerate(values)]


@pytest.mark.parametrize(
    "column, by, what",
    [
        ("both", 5_000, "step back in time 1 times"),
        ("both", -(10**10), "nothing happens for"),
        ("end_ts", 10_000_000, "end before they start"),
    ],
    ids=["set-back", "set-forward", "set-within-an-instruction"],
)
def test_a_clock_that_was_set_is_noticed(table, column, by, what):
    times = ["end_ts", "dma_trigger_end_ts"] + ["start_ts"] * (column == "both")
    place = len(table["start_ts"]) // 2
    reset = {**table, **{name: set_back(table[name], by, place) for name in times}}

    with pytest.raises(LaunchError, match=what):
        profile_of("p", reset)


@pytest.mark.parametrize("rows", [8, 30])
def test_one_step_back_of_few_instructions_is_a_clock_that_was_set(rows):
    starts = set_back([100 * at for at in range(rows)], 350, rows // 2)

    with pytest.raises(LaunchError, match="the instructions of vector step back in time 1 times"):
        profile_of("p", instructions_at(starts))


def test_rows_in_any_order_are_sorted():
    starts = [700, 100, 300, 200, 600, 400, 500, 0]

    assert sorted(row.start_ns for row in profile_of("p", instructions_at(starts)).rows) == sorted(
        starts
    )


def instructions_at(starts):
    return {
        "start_ts": starts, "end_ts": [at + 50 for at in starts],
        "engine": ["Vector"] * len(starts), "nki_source_location": ["k.py:7"] * len(starts),
    }  # fmt: skip
