"""`nki-run FILE:FUNCTION`: one function, on what the words after it say."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.errors import LaunchError
from nki_runtime.cli.function import describe, function_of, read_arguments

PROGRAM = """\
import nki
import numpy as np


@nki.jit
def double(x, times=2):
    return x * times


def fill(n):
    return np.zeros((2, n), np.int32), "done"
"""


def test_a_kernel_is_called_and_its_result_described(nki_run, program):
    program(PROGRAM)

    done = nki_run("program.py:double", "int8[2,3]", "times=0")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "result 0: int8[2, 3], from 0 to 0, mean 0\n"
    assert nki_run("program:double", "int8[2,3]", "times=0").stdout == done.stdout


def test_a_plain_function_is_called_in_the_language_in_force(nki_run, program):
    program(PROGRAM)

    done = nki_run("program.py:fill", "3")

    assert done.stdout == "result 0: int32[2, 3], from 0 to 0, mean 0\nresult 1: 'done'\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["program.py:none"], "program.py has no function none"),
        (["program.py:fil"], "did you mean fill?"),
        (
            ["program.py:fill"],
            "fill(n): missing a required argument: 'n'\n    name them as in 'n=f32[128,512]'\n",
        ),
        (["program.py:fill", "3", "4"], "fill(n): too many positional arguments"),
        (["program.py:fill", "m=3"], "fill(n): missing a required argument: 'n'"),
        (["."], "can't open '.': this is a folder"),
        (["none.py:double"], "can't open 'none.py': no such file"),
        (["none:double"], "can't open 'none': no such module"),
        (["program.py:double", "f33[2]"], "'f33' is not an NKI dtype"),
        (["program.py:double", "f32(2)"], "'f32(2)' is not an argument"),
        (["program.py:double", "x=f32[2]", "3"], "argument 3 follows one by name"),
        (["program.py:double", "x=f32[2]", "x=3"], "two arguments x"),
        (
            ["program.py:double", "none.npy"],
            "argument none.npy cannot be read: No such file or directory\n",
        ),
    ],
    ids=lambda value: value.splitlines()[0] if isinstance(value, str) else "",
)
def test_mistakes_in_the_words_are_told(words, says, nki_run, program):
    program(PROGRAM)

    done = nki_run(*words)

    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr


def test_a_file_with_a_colon_in_its_name_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py:b").write_text("")

    assert function_of("a.py:b") is None
    assert function_of("a/b:c") is None
    assert str(function_of("a/b.py:c")) == "Function(named=Named(where='a/b.py', function='c'))"


def test_words_become_arrays_numbers_and_text(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))

    given, named = read_arguments(
        ["uint8[50]", "bool[50]", "i32[]", "bf16[2, 1]", f"{tmp_path}/a.npy", "-1.5", "t='text'"]
    )

    small, flags, one, narrow, saved, number = given
    assert small.dtype == np.uint8 and small.max() <= 8
    assert flags.dtype == np.bool_ and one.shape == ()
    assert str(narrow.dtype) == "bfloat16" and narrow.shape == (2, 1)
    assert saved.tolist() == [0, 1, 2] and number == -1.5 and named == {"t": "text"}


def test_numbers_are_the_same_each_time():
    assert np.array_equal(read_arguments(["f32[9]"])[0][0], read_arguments(["f32[9]"])[0][0])


def test_results_are_described_in_a_line():
    assert describe(np.array([1, 3], np.float32)) == "float32[2], from 1 to 3, mean 2"
    assert describe(np.array([1, np.nan], np.float32)) == "float32[2], not finite in 1 elements"
    assert describe(np.zeros((0, 2))) == "float64[0, 2]"


def test_a_number_of_another_kind_is_no_argument():
    with pytest.raises(LaunchError, match="is not an argument"):
        read_arguments(["x=1 + y"])
