"""Suppression comments: what they cover and which of them did nothing."""

from __future__ import annotations

import ast

from nki_migrate.comments.suppressions import SuppressionLog, Suppressions, read_suppressions


def suppressions(text: str) -> Suppressions:
    return read_suppressions(text, ast.parse(text))


def silenced(text: str, rule: str) -> list[int]:
    log = SuppressionLog(suppressions(text))
    return [line for line in range(1, text.count("\n") + 2) if log.silences(rule, line)]


def test_a_trailing_comment_covers_its_line_and_the_ids_it_names():
    text = "a = 1\nb = 2  # nki-migrate: ignore[NKI1131, NKI12]\nc = 3\n"

    assert silenced(text, "NKI1131") == [2]
    assert silenced(text, "NKI1225") == [2]
    assert silenced(text, "NKI1130") == []


def test_a_comment_without_a_list_covers_every_rule():
    assert silenced("b = 2  # nki-migrate: ignore\n", "NKI5004") == [1]


def test_off_and_on_enclose_a_region_and_off_alone_reaches_to_the_end():
    text = "a = 1\n# nki-migrate: off\nb = 2\n# nki-migrate: on\nc = 3\n# nki-migrate: off\nd = 4\n"

    assert silenced(text, "NKI1131") == [2, 3, 4, 6, 7, 8]


def test_a_comment_on_a_decorator_covers_the_kernel():
    text = "@jit  # nki-migrate: ignore\ndef k(x):\n    y = x\n    return y\nz = 1\n"

    assert silenced(text, "NKI1131") == [1, 2, 3, 4]


def test_skip_file_counts_in_the_first_lines_only():
    assert suppressions('"""Doc."""\n# nki-migrate: skip-file\nimport nki\n').skip_file
    assert not suppressions("import nki\n# nki-migrate: skip-file\n").skip_file


def test_text_in_a_string_is_no_comment():
    assert silenced('s = "# nki-migrate: ignore"\n', "NKI1131") == []


def test_a_comment_that_silenced_nothing_is_noted():
    text = "a = 1  # nki-migrate: ignore[NKI1131]\nb = 2  # nki-migrate: ignore[NKI1133]\n"
    log = SuppressionLog(suppressions(text))

    assert log.silences("NKI1133", 2)

    (note,) = log.unused("k.py", "NKI0001")
    assert (note.rule, note.region.line, note.region.column) == ("NKI0001", 1, 8)
    assert "suppresses NKI1131, but nothing here needs it" in note.message
