"""What is wrong with a document is named with its place, in one form."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.documents import parse_json, parse_toml, read_array, read_utf8, wrong_structure


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (parse_json, "[\n 1 2", "line 2, column 4: expecting ',' delimiter"),
        (parse_json, "[" * 50_000, "nested too deeply"),
        (parse_json, "9" * 10_000, "a number has more digits than Python converts"),
        (parse_toml, "a = 1\na = 2\n", "line 2, column 6: a key is given twice"),
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


def test_a_text_that_is_not_utf8_is_named_with_its_line(tmp_path):
    (tmp_path / "a").write_bytes(b"x\ny \xff\n")

    with pytest.raises(ValueError, match="line 2: byte 0xff is not UTF-8"):
        read_utf8(tmp_path / "a")


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda file: np.save(file, np.array([{}], object)), "contains Python objects"),
        (lambda file: np.savez(file, a=1), "an archive of several arrays"),
        (lambda file: file.write(b"text"), "np.save did not write it"),
        (lambda file: None, "np.save did not write it"),
        (lambda file: (np.save(file, np.zeros(9)), file.truncate(99)), "it is damaged"),
    ],
)
def test_a_file_that_is_not_one_array_of_numbers_is_rejected(tmp_path, write, message):
    with (tmp_path / "a.npy").open("wb") as file:
        write(file)

    with pytest.raises(ValueError, match=message):
        read_array(tmp_path / "a.npy")


def test_errors_of_structure_are_in_words():
    said = [
        wrong_structure(error) for error in (KeyError("line"), TypeError("int()"), OverflowError())
    ]

    assert said == ["the key 'line' is missing", "a value is malformed", "a number is too large"]
