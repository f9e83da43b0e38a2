"""What is wrong with a document is named with its place, in one form."""

from __future__ import annotations

import pytest

from neuroncore.documents import parse_json, parse_toml


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_json, "[\n 1 2", "line 2, column 4: expecting ',' delimiter"),
        (parse_json, "[" * 50_000, "nested too deeply"),
        (parse_json, "9" * 10_000, "a number has more digits than Python converts"),
        (parse_toml, "a = 1\na = 2\n", "line 2, column 6: cannot overwrite a value"),
        (parse_toml, "a = [", "end of document: invalid value"),
        (parse_toml, "a = " + "[" * 50_000, "nested too deeply"),
        (parse_toml, "a = " + "9" * 10_000, "a number has more digits than Python converts"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(parse, text, message):
    with pytest.raises(ValueError) as wrong:
        parse(text)

    assert str(wrong.value) == message


def test_an_error_of_the_hook_passes():
    def reject(pairs):
        raise ValueError("two")

    with pytest.raises(ValueError, match="two"):
        parse_json('{"a": 1}', reject)
