"""The record of a run, its table, its command; and, with a checkout, one group of the library."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from tests.corpora.nki_library.__main__ import main
from tests.corpora.nki_library.child.nki_library_draw import draw
from tests.corpora.nki_library.child.nki_library_stand_ins import static_cast
from tests.corpora.nki_library.fp8 import table
from tests.corpora.nki_library.groups import GROUPS, run_group, without_folders
from tests.corpora.nki_library.migrated import markdown as migrated_markdown
from tests.corpora.nki_library.record import (
    Outcome,
    Result,
    begin_record,
    kept_rows,
    markdown,
    one_line,
    read_record,
    rows_of,
)
from tests.corpora.nki_library.sample import Request, Sample, classified, error_class, read_sample
from tests.corpora.nki_library.sample import markdown as sample_markdown

from nki_dtypes import resolve

CHECKOUT = os.environ.get("NKI_LIBRARY_CHECKOUT")


def record(*said: Mapping[str, object]) -> list[str]:
    return [json.dumps(line) + "\n" for line in said]


def test_the_worst_of_set_up_call_and_teardown_is_the_outcome():
    lines = record(
        {"collected": 2},
        {"test": "a", "outcome": "passed", "reason": ""},
        {"test": "b", "outcome": "skipped", "reason": "slow"},
        {"test": "a", "outcome": "failed", "reason": "teardown"},
    )

    assert read_record(lines) == (
        2,
        (Outcome("a", "failed", "teardown"), Outcome("b", "skipped", "slow")),
    )


def test_a_line_that_was_cut_off_leaves_its_test_not_run():
    lines = record({"collected": 2}, {"test": "a", "outcome": "passed", "reason": ""})

    collected, outcomes = read_record([*lines, '{"test": "b", "outc'])
    result = Result("rope", collected, outcomes, "cut off after 9 s")

    assert result.not_run == 1
    assert one_line(result).split(maxsplit=1) == [
        "rope",
        "collected 2  passed 1  not run 1  cut off after 9 s",
    ]


def test_tests_that_were_not_run_are_named():
    lines = record(
        {"collected": 3, "awaited": ["f.py::b", "f.py::c"]},
        {"test": "f.py::b", "outcome": "passed", "reason": ""},
        {"test": "f.py::a", "outcome": "passed", "reason": ""},
    )
    result = Result("rope", *read_record(lines), "cut off after 9 s")

    assert result.not_run == 1
    assert rows_of(result, "2026-11-22").failures == ("| rope | not run | 1 | c |",)


def test_a_run_goes_on_with_what_passed_or_was_skipped_before(tmp_path):
    kept = tmp_path / "d2ad3a5" / "rope-0.jsonl"
    kept.parent.mkdir()
    passed = {"test": "a", "outcome": "passed", "reason": ""}
    skipped = {"test": "b", "outcome": "skipped", "reason": "slow"}
    failed = {"test": "c", "outcome": "failed", "reason": "memory"}
    kept.write_text("".join(record({"collected": 4}, passed, skipped, failed)) + '{"test": "d')

    assert begin_record(kept) == 2
    assert kept.read_text().splitlines(keepends=True) == record(passed, skipped)


def test_a_file_that_cannot_be_imported_is_a_failure():
    lines = record({"test": "t.py", "outcome": "failed", "reason": "no torch"}, {"collected": 0})

    assert read_record(lines) == (0, (Outcome("t.py", "failed", "no torch"),))


def test_the_table_counts_what_the_harness_does_not_skip_and_names_each_failure():
    outcomes = (
        Outcome("t.py::K::test_k[1]", "passed", ""),
        Outcome("t.py::K::test_k[2]", "skipped", "slow"),
        Outcome("t.py::K::test_k[3|4]", "failed", "k.py:3:1: a <b> is\nmissing"),
        Outcome("t.py::K::test_k[5]", "failed", "k.py:3:1: a <b> is\nmissing"),
    )

    table = tables(Result("rope", 4, outcomes))

    assert table.startswith("`d2ad3a5`: 1 of 3 tests (33.3%) pass;")
    assert table.splitlines()[4:] == [
        "| rope | 4 | 1 | 1 | 2 | 0 | 2026-04-13 |  |",
        "| cumsum | | | | | | not measured | |",
        "",
        "| group | reason | tests | their names |",
        "|---|---|--:|---|",
        "| rope | k.py:3:1: a &lt;b> is missing | 2 | test_k[3\\|4], test_k[5] |",
    ]


def tables(*results: Result, date: str = "2026-04-13") -> str:
    rows = {result.group: rows_of(result, date) for result in results}
    return markdown(rows, "d2ad3a5", ["rope", "cumsum"])


def test_groups_that_are_not_run_again_keep_their_rows_and_their_date():
    failed = Outcome("t.py::K::test_k[5]", "failed", "no")
    earlier = tables(Result("rope", 2, (failed,), "cut off after 9 s"))

    kept = kept_rows(earlier, "d2ad3a5", ["rope", "cumsum"])

    assert list(kept) == ["rope"]
    assert markdown(kept, "d2ad3a5", ["rope", "cumsum"]) == earlier


def test_rows_of_another_commit_are_not_kept():
    assert kept_rows(tables(Result("rope", 1)), "1edc7bb", ["rope", "cumsum"]) == {}


def test_the_table_of_codes_says_how_many_differ_and_how_far():
    far = {"different": 12, "ulps": 1, "factor_ulps": 3}
    same = {"different": 0, "ulps": 0, "factor_ulps": None}

    text = table([{"case": ["ROW", True, "float16", 0.5], "once": far, "stored": same}], "d2ad3a5")

    assert text.splitlines()[-1] == "| ROW | yes | float16 | 0.5 | 12 | 1 | 0 | 0 |  |"


def test_a_reason_names_no_folder_of_this_machine():
    wrapped = "test.utils.exceptions.InferenceException: /home/me/lib/src/rope.py:284:19: no"

    outcome = without_folders(Outcome("a", "failed", wrapped), Path("/home/me/lib"))

    assert outcome.reason == "src/rope.py:284:19: no"


def test_without_a_checkout_the_command_says_how_to_name_one(monkeypatch, capsys):
    monkeypatch.delenv("NKI_LIBRARY_CHECKOUT", raising=False)

    with pytest.raises(SystemExit) as left:
        main([])

    assert left.value.code == 2
    assert "NKI_LIBRARY_CHECKOUT is not set" in capsys.readouterr().err


def test_a_group_that_is_not_there_is_rejected(capsys):
    with pytest.raises(SystemExit):
        main(["--only", "rope,ropes"])

    assert "no such group: ropes; there are rope, " in capsys.readouterr().err


def test_a_folder_without_the_tests_is_rejected(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["--checkout", str(tmp_path)])

    assert "is not a checkout of nki-library" in capsys.readouterr().err


def test_no_file_belongs_to_two_groups():
    files = [file for group in GROUPS.values() for file in group]

    assert len(files) == len(set(files))


@pytest.mark.timeout(1800)
def test_rope_hf_of_the_library_passes():
    if not CHECKOUT:
        pytest.skip("NKI_LIBRARY_CHECKOUT is not set: it names a checkout of nki-library")

    result = run_group(Path(CHECKOUT).resolve(), "rope_hf")

    assert (result.trouble, result.of("failed"), result.not_run) == ("", [], 0)
    assert result.of("passed")


# -- samples ---------------------------------------------------------------------------------------


def test_a_draw_takes_every_range_of_sizes_and_shuffles_the_rest():
    sized = [(f"t{size}", size) for size in range(12)]

    drawn = draw(sized, "7:test_rope.py", 4)

    assert [int(test[1:]) // 3 for test in drawn[:4]] == [0, 1, 2, 3]
    assert sorted(drawn) == sorted(test for test, _ in sized)
    assert drawn == draw(sized, "7:test_rope.py", 4) != draw(sized, "8:test_rope.py", 4)


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("InferenceException: Unable to allocate 9.00 GiB for an array", "too large"),
        ("ValidationException: Validation failed for [out]", "wrong values"),
        ("AssertionError: Not equal to tolerance rtol=1e-05", "wrong values"),
        ("InferenceException: rope.py:284:19: nl.ndarray: 256 partitions", "failed"),
    ],
)
def test_failures_are_named_by_their_message(reason, word):
    assert classified(Outcome("a", "failed", reason)).word == word


def test_what_a_group_came_to_is_one_row():
    lines = record(
        {"suite": 9, "runnable": 3},
        {"test": "a", "outcome": "passed", "reason": "", "cpu_s": 1.5, "rss_mib": 300},
        {"test": "b", "outcome": "failed", "reason": "MemoryError", "cpu_s": 2, "rss_mib": 900},
        {"test": "c", "outcome": "skipped", "reason": "ranks", "cpu_s": 0, "rss_mib": 90},
    )

    sample = read_sample("rope", "trn2", lines, Path("/home/me/lib"))
    text = sample_markdown([sample], Request("7"), "d2ad3a5")

    assert "| rope | trn2 | 9 | 3 | 2 | 1 | 0 | 0 | 1 |" in text.splitlines()
    assert "1 of 1 (100.0%) pass, 0 give wrong values; 1 of 2 (50.0%) need more than" in text


def test_a_migrated_kernel_is_equal_where_its_results_have_the_same_bytes():
    before = sample_of(a=("passed", "1f"), b=("passed", "2e"), c=("passed", "3d"))
    after = sample_of(a=("passed", "1f"), b=("passed", "ff"), c=("failed", ""))

    text = migrated_markdown([(before, after)], Request("7", nki="0.7"), "d2ad3a5")

    assert "of 3 tests that passed before, 1 (33.3%) pass with results equal" in text
    assert text.splitlines()[4:] == [
        "| rope | 3 | 1 | 1 | 1 |",
        "",
        "| group | outcome | reason | tests |",
        "|---|---|---|--:|",
        "| rope | different | b | 1 |",
        "| rope | failed | why | 1 |",
    ]


def test_a_test_that_the_migrated_kernels_did_not_reach_has_failed():
    text = migrated_markdown(
        [(sample_of(a=("passed", "1f")), sample_of())], Request("7", nki="0.7"), "d2ad3a5"
    )

    assert text.splitlines()[-1] == "| rope | failed | not run | 1 |"


def sample_of(**tests: tuple[str, str]) -> Sample:
    lines = (
        {"test": name, "outcome": word, "reason": "" if word == "passed" else "why",
         "results": results, "cpu_s": 1, "rss_mib": 9}
        for name, (word, results) in tests.items()
    )  # fmt: skip
    return read_sample("rope", "trn2", record(*lines), Path("/home/me/lib"))


def test_errors_of_one_class_differ_in_places_and_numbers_only():
    assert error_class("src/a.py:3:4: 256 partitions in SBUF x = y ^^^") == error_class(
        "src/b.py:13:5: 512 partitions in SBUF x = y ^^^"
    )


def test_references_of_float64_are_packed_like_those_of_float32():
    numbers = np.array([[0.3, -1.7, 448.0, 1e-3]])

    words = static_cast(numbers, resolve("float8_e4m3fn_x4").words)
    assert static_cast(words, np.float32).tolist() == [[0.3125, -1.75, 448.0, 2**-9]]
