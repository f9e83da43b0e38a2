"""Text that is no program: line, column, a caret, and what was expected."""

from __future__ import annotations

import pytest

from neuroncore.errors import ProgramMistakesError, ProgramTextError
from neuroncore.program import parse_program

GOOD = """\
program("trn2", "0.6")
def p(x: float32[128, 64]):
    out = buffer(float32[128, 64], shared_hbm)
    for i in range(2):
        t = buffer(float32[64, 64], sbuf, address=(0, 64))
        dma_copy(dst=t[:, :], src=x[64*i : 64*i + 64, :])
        dma_copy(dst=out[64*i : 64*i + 64, :], src=t[:, :], oob_mode=error)
        tensor_reduce(dst=t[:, 0:1], data=t.ap([[64, 64], [1, 64]]), op=add, axis=(1,))
    return out
"""


def refusal(old: str, new: str) -> ProgramTextError:
    assert old in GOOD
    with pytest.raises(ProgramTextError) as caught:
        parse_program(GOOD.replace(old, new))
    return caught.value


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "what"),
    [
        ('program("trn2", "0.6")', "", 2, 1, "not a program"),
        ('"trn2", "0.6"', '"trn2"', 1, 1, "not a target and an NKI version"),
        ("x: float32[128, 64]", "x", 2, 7, "a parameter without dtype and shape"),
        ("x: float32[128, 64]", "x: float33[128, 64]", 2, 10, "'float33' is not an NKI dtype"),
        ("x: float32[128, 64]", "x: float32[128, y]", 2, 23, "not a literal"),
        ("x: float32[128, 64]", "*x", 2, 8, "not a parameter"),
        ("shared_hbm", "dram", 3, 11, "not a buffer"),
        ("    return out", "    out = buffer(int32[8, 8], sbuf)\n    return out", 9, 5,
         "out is already a buffer"),
        ("(0, 64)", "(0,)", 5, 51, "not 2 ints"),
        ("sbuf, address", "sbuf, adress", 5, 50, "no argument adress"),
        ("range(2)", "range(0, 2, 0)", 4, 14, "a loop needs bounds and a positive step"),
        ("range(2)", "range(2.5)", 4, 20, "not an int"),
        ("src=x[64*i", "src=y[64*i", 6, 35, "y is not a buffer"),
        ("src=x[64*i : 64*i + 64, :]", "src=x[0:64]", 6, 35, "1 indices into a buffer of rank 2"),
        ("src=x[64*i :", "src=x[64*j :", 6, 40, "j is not a loop variable here"),
        ("src=x[64*i :", "src=x[i*i :", 6, 37, "not an affine expression"),
        ("src=x[64*i : 64*i + 64", "src=x[64*i : 64", 6, 37, "the slice has -64*i + 64 elements"),
        ("oob_mode=error", "oob_mode=raise_", 7, 70, "raise_ is not a value of oob_mode"),
        ("oob_mode=error", "mode=error", 7, 66, "no argument mode"),
        ("op=add", "op=plus", 8, 73, "'plus' is not an ALU operation"),
        ("[[64, 64], [1, 64]]", "3", 8, 43, "not a pattern"),
        ("[1, 64]]", "[1, 64]], dim=0", 8, 43, "dim= goes with one of"),
        ("tensor_reduce", "tensor_redux", 8, 9, "tensor_redux is not an instruction"),
        ("    return out\n", "    pass\n", 9, 5, "a program ends with return"),
        ("return out", "return i", 9, 12, "i is not a buffer"),
        ("range(2):", "range(2)", 4, 22, "not a program: expected ':'"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_where_it_stands(old, new, line, column, what):
    error = refusal(old, new)

    assert error.place is not None
    assert (error.place.line, error.place.column + 1) == (line, column)
    assert error.what.startswith(what)


def test_the_line_and_a_caret_are_shown_although_the_text_is_no_file():
    said = str(refusal("src=x[64*i", "src=y[64*i")).splitlines()

    assert said[1:] == [
        "    dma_copy(dst=t[:, :], src=y[64*i : 64*i + 64, :])",
        "                              ^",
        "    expected: x, out, t",
    ]


@pytest.mark.parametrize("text", ["", "\x00", "(" * 500, "def", "-" * 5000 + "1", '"""'])
def test_any_text_is_refused_as_text(text):
    with pytest.raises(ProgramTextError, match=r"not a program|nested too deeply"):
        parse_program(text)


def test_positional_operands_are_refused():
    assert refusal("dst=out[64*i : 64*i + 64, :]", "out").what == (
        "dma_copy takes its operands by name"
    )


def test_mistakes_of_several_statements_are_told_at_once():
    with pytest.raises(ProgramMistakesError) as caught:
        parse_program(
            'program("trn2", "0.6")\ndef p(x: float32[128, 64]):\n'
            "    memset(dst=q[:, :], value=0.0)\n"
            "    for i in range(2.5):\n"
            "        memset(dst=r[:, :], value=0.0)\n"
            "    return s\n",
            "text.py",
        )

    errors = caught.value.errors
    assert [(e.place.line, e.place.column + 1, e.what) for e in errors if e.place] == [
        (3, 16, "q is not a buffer"),
        (4, 20, "not an int"),
        (5, 20, "r is not a buffer"),
        (6, 12, "s is not a buffer"),
    ]
    assert str(caught.value).startswith("4 mistakes in a program\n\ntext.py:3:16: q is not a buf")


def test_every_mistake_has_its_caret():
    with pytest.raises(ProgramMistakesError) as caught:
        parse_program(GOOD.replace("op=add", "op=plus").replace("src=x", "src=y"))

    assert str(caught.value).count("^") == 1 + len("plus")


@pytest.mark.parametrize(
    ("old", "new"),
    [("float32[64, 64], sbuf", "float32[64, 64], dram"), ("x: float32[128, 64]", "x: 3"),
     ("range(2)", "range(2.5)"), ("for i in range(2)", "for i in (1, 2)")],
)  # fmt: skip
def test_what_follows_from_a_mistake_is_not_told_again(old, new):
    assert not isinstance(refusal(old, new), ProgramMistakesError)


@pytest.mark.parametrize("text", [None, GOOD.encode(), 3])
def test_what_is_no_text_is_refused(text):
    with pytest.raises(ProgramTextError, match="not the text of a program") as caught:
        parse_program(text)
    assert caught.value.got == type(text).__name__
