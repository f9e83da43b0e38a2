"""Facts files: what is read from them, and when they do not fit."""

import json
from typing import Any

import pytest

from nki_migrate.facts.observed import FactsError, facts_of, read_facts
from nki_migrate.index import Source

TEXT = "def kernel(x, n):\n    return x + n\n"


def _entry(column, end, **facts):
    place = {"line": 2, "column": column, "end_line": 2, "end_column": end}
    return {**place, **facts, "runs": 1}


def _document(*expressions, file="kernels/k.py", kernel="kernel"):
    entry = {"file": file, "kernel": kernel, "runs": 1, "expressions": list(expressions)}
    return {"schema": "nki-facts/1", "kernels": [entry]}


X = _entry(12, 13, shape=[128, 512], dtype="float32", memory="shared_hbm")
N = _entry(16, 17, value=3)


def _at(document, column, end, path="k.py") -> Any:
    facts = facts_of(document, "facts").of_file(path, Source(TEXT))
    return facts.at((2, column, 2, end)) if facts is not None else None


def test_a_tensor_has_rank_dtype_and_memory():
    seen = _at(_document(X, N), 12, 13)

    assert seen.is_tensor
    assert (seen.rank, seen.memory, seen.dtypes) == (2, "hbm", {0: "float32"})
    assert seen.sizes(1) == {0: (512,)}


def test_a_number_has_a_value_and_a_kind():
    seen = _at(_document(X, N), 16, 17)

    assert not seen.is_tensor
    assert (seen.numbers, seen.kind) == ({0: 3}, int)


def test_what_changed_is_no_single_fact():
    changed = _entry(16, 17, value=[3, 4])

    assert _at(_document(X, changed), 16, 17).numbers is None


def test_a_list_inside_a_list_is_a_tuple():
    shape = _entry(16, 17, value=[[3, 4]])

    assert _at(_document(X, shape), 16, 17).kind is None


def test_launches_of_one_kernel_stay_separate():
    other = _entry(12, 13, shape=[64, 512], dtype="float32", memory="hbm")
    both = _document(X)
    both["kernels"] += _document(other)["kernels"]

    assert _at(both, 12, 13).sizes(0) == {0: (128,), 1: (64,)}


def test_facts_of_another_version_of_the_file_are_left_out():
    elsewhere = _entry(13, 15, value=1)

    assert _at(_document(X, elsewhere), 12, 13) is None


def test_facts_of_another_file_are_left_out():
    assert _at(_document(X, file="kernels/other.py"), 12, 13) is None
    assert _at(_document(X), 12, 13, path="../kernels/k.py") is not None


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"schema": "nki-facts/9", "kernels": []}, "nki-facts/9"),
        ([], "got 'list'"),
        ({"schema": "nki-facts/1", "kernels": [], "more": 1}, "unknown key 'more'"),
        (_document(_entry(12, 13, strides=[1])), "unknown key 'strides'"),
        (
            {"schema": "nki-facts/1", "kernels": [{"file": "k.py"}]},
            "kernel 1: the key 'kernel' is missing",
        ),
        ({"schema": "nki-facts/1"}, "the key 'kernels' is missing"),
        (
            _document(_entry(12, 13, line="x")),
            r"kernel 1 \(kernel\), expression 1: a value is malformed",
        ),
    ],
)
def test_what_is_no_facts_file_says_what_was_expected(tmp_path, document, said):
    file = tmp_path / "facts.json"
    file.write_text(json.dumps(document))

    with pytest.raises(FactsError, match=said) as error:
        read_facts(file)

    assert "facts.json" in str(error.value)


def test_a_file_that_is_not_json_is_named(tmp_path):
    (tmp_path / "facts.json").write_text("{")

    with pytest.raises(FactsError, match="not JSON"):
        read_facts(tmp_path / "facts.json")
