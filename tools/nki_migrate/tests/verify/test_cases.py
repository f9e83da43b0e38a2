"""`cases.toml`: what is read, and what is blocked with which words."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from neuroncore.options import Options
from nki_migrate.verify.cases import CasesError, cases_for, read_cases

SOFTMAX = """
schema = "nki-cases/1"

[[case]]
file = "softmax.py"
kernel = "softmax_kernel"
reference = "references.py:softmax"
grid = [4, 2]
rtol = 1e-5
[[case.arg]]
name = "x"
dtype = "float32"
shape = [256, 512]
[[case.arg]]
name = "eps"
value = 1e-6
[[case.more]]
x = [128, 1024]
eps = 0.5
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "cases.toml"
    path.write_text(text)
    return path


def test_a_case_is_read_with_its_other_shapes(tmp_path):
    (case,) = read_cases(write(tmp_path, SOFTMAX))

    assert (case.kernel, case.grid, case.rtol, case.seed) == ("softmax_kernel", (4, 2), 1e-5, 0)
    assert case.reference == (tmp_path / "references.py", "softmax")
    shapes = [[(a.name, a.shape, a.value) for a in variant] for variant in case.variants()]
    assert shapes == [
        [("x", (256, 512), None), ("eps", None, 1e-6)],
        [("x", (128, 1024), None), ("eps", None, 0.5)],
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("nki-cases/1", "nki-cases/2", r'expected schema = "nki-cases/1", got .nki-cases/2'),
        ("rtol =", "rtoll =", r"unknown key 'rtoll'; did you mean 'rtol'"),
        ("rtol = 1e-5", 'rtol = "1e-5"', r"rtol must be a number, got '1e-5'"),
        ("grid = [4, 2]", "grid = [4.5]", "grid must be a list of whole numbers"),
        ("grid = [4, 2]", "grid = [-4]", "grid must be a list of whole numbers"),
        ("grid = [4, 2]", "grid = [99999999999, 99999999999]", "grid: nothing is that large"),
        ("grid = [4, 2]", "grid = [4, 2]\nseed = -1", "seed must be 0 or more, got -1"),
        ("references.py:softmax", "references.softmax", r'must be "FILE\.py:function"'),
        ("shape =", "shap =", r"argument x: unknown key 'shap'; did you mean 'shape'"),
        ('dtype = "float32"', 'dtype = "float32"\nfill = "ramp"', "fill must be one of normal"),
        ('dtype = "float32"', 'dtype = "float32"\nrole = "out"', "role must be one of input"),
        ("value = 1e-6", 'value = 1\ndtype = "int32"', "value stands alone"),
        ("x = [128, 1024]", "y = [128, 1024]", "more: unknown key 'y'"),
        ('name = "eps"', 'name = "x"', "two arguments share a name"),
        ("[[case]]", "[[case", "not TOML"),
    ],
)
def test_a_mistake_is_an_error_that_names_the_place(tmp_path, old, new, message):
    with pytest.raises(CasesError, match=message):
        read_cases(write(tmp_path, SOFTMAX.replace(old, new, 1)))


def test_a_case_that_is_not_a_table_is_an_error(tmp_path):
    with pytest.raises(CasesError, match="case is not a list of tables"):
        read_cases(write(tmp_path, 'schema = "nki-cases/1"\ncase = 1\n'))


def test_cases_belong_to_a_file_by_path_and_else_by_name(tmp_path):
    cases = read_cases(write(tmp_path, SOFTMAX))

    assert cases_for(cases, tmp_path / "softmax.py") == cases
    assert cases_for(cases, tmp_path / "elsewhere/softmax.py") == cases
    assert cases_for(cases, tmp_path / "rope.py") == ()


def test_a_case_names_options_of_the_machine(tmp_path):
    options = '[case.options]\ntopk_ranks = "row"\nprecise = false\n'

    (case,) = read_cases(write(tmp_path, SOFTMAX + options))

    assert case.options == {"topk_ranks": "row", "precise": False}


@pytest.mark.parametrize("name", [f.name for f in fields(Options)])
def test_every_option_of_the_machine_may_stand_in_a_case(tmp_path, name):
    value = getattr(Options(), name)
    text = 7 if value is None else str(value).lower() if value is True else repr(value)

    (case,) = read_cases(write(tmp_path, f"{SOFTMAX}[case.options]\n{name} = {text}\n"))

    assert case.options == {name: 7 if value is None else value}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[case.options]\ntopk_rank = 'row'", "unknown option 'topk_rank'"),
        ("[case.options]\ntopk_ranks = 'all'", "option topk_ranks does not take 'all'"),
    ],
)
def test_an_option_that_there_is_not_is_an_error_at_its_case(tmp_path, line, message):
    with pytest.raises(CasesError, match=rf"case 1 \(softmax_kernel\): .*{message}"):
        read_cases(write(tmp_path, f"{SOFTMAX}{line}\n"))
