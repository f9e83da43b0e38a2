"""Text that is not a program: line, column, a caret, and what was expected."""

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


def rejection(old: str, new: str) -> ProgramTextError:
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
    error = rejection(old, new)

    assert error.place is not None
    assert (error.place.line, error.place.column + 1) == (line, column)
    assert error.what.startswith(what)


def test_a_dtype_that_there_is_not_is_rejected_with_those_there_are():
    error = rejection("x: float32[128, 64]", "x: float33[128, 64]")

    assert error.expected is not None
    assert {"bfloat16", "float32", "int8"} <= set(error.expected.replace(",", "").split())


def test_the_line_and_a_caret_are_shown_although_the_text_is_no_file():
    said = str(rejection("src=x[64*i", "src=y[64*i")).splitlines()

    assert said[1:] == [
        "    dma_copy(dst=t[:, :], src=y[64*i : 64*i + 64, :])",
        "                              ^",
        "    expected: x, out, t",
    ]


@pytest.mark.parametrize("text", ["", "\x00", "(" * 500, "def", "-" * 5000 + "1", '"""'])
def test_any_text_is_rejected_as_text(text):
    with pytest.raises(ProgramTextError, match=r"not a program|nested too deeply"):
        parse_program(text)


def test_positional_operands_are_rejected():
    assert rejection("dst=out[64*i : 64*i + 64, :]", "out").what == (
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


def mistakes(body: str, head: str = 'program("trn2", "0.6")\ndef p(x: float32[128, 64]):\n'):
    """Line and words of everything that is wrong with a program."""
    lines = "".join(f"    {line}\n" for line in body.strip("\n").splitlines())
    with pytest.raises(ProgramMistakesError) as caught:
        parse_program(f"{head}{lines}    return x\n")
    return [(e.place.line, e.what) for e in caught.value.errors if e.place]


def test_contradictory_bounds_are_told_beside_bounds_that_cannot_be_read():
    loops = "".join(
        f"for i in range({bounds}):\n    memset(dst=x[:, :], value=0.0)\n"
        for bounds in ("5, 2", "0, 10, 0", "0, 10, -1")
    )

    assert [m for m in mistakes(loops) if "memset" not in m[1] and "HBM" not in m[1]] == [
        (3, "loop i never runs"),
        (5, "a loop needs bounds and a positive step"),
        (7, "a loop needs bounds and a positive step"),
    ]


def test_memory_that_does_not_fit_is_told_beside_a_dtype_that_is_none():
    text = """
a = buffer(float32[128, 40000], sbuf)
b = buffer(float32[128, 40000], sbuf)
c = buffer(float33[128, 8], sbuf)
memset(dst=a[:, :], value=0.0)
memset(dst=b[:, :], value=0.0)
memset(dst=c[:, :], value=0.0)
tensor_tensor(dst=b[:, :], data1=a[:, :], data2=b[:, 0:7], op=add)
"""
    found = [(line, what.partition("\n")[0]) for line, what in mistakes(text)]

    assert found == [
        (4, "320000 bytes per partition of SBUF are held at once"),
        (5, "'float33' is not an NKI dtype"),
        (9, "data2 has 7 elements per partition, dst 40000"),
    ]


def test_mistakes_of_one_statement_are_told_at_once():
    text = """
t = buffer(float33[128, z], sbuf, address=(y, 0.5), size=3)
tensor_tensor(dst=q[:, :], data1=x[i, j:j], data2=x.ap([[1], [k, 2]]), op=plus, mode=3)
"""
    found = mistakes(text, 'program("trn2")\n@jit\ndef p(x: float32[128, 64], *y):\n')

    assert [(line, what.partition("\n")[0]) for line, what in found] == [
        (1, "not a target and an NKI version"),
        (2, "not a parameter"),
        (3, "not a parameter"),
        (4, "'float33' is not an NKI dtype"),
        (4, "not a literal"),
        (4, "not a literal"),
        (4, "not an int"),
        (4, "no argument size"),
        (5, "q is not a buffer"),
        (5, "i is not a loop variable here"),
        (5, "j is not a loop variable here"),
        (5, "j is not a loop variable here"),
        (5, "not 2 ints"),
        (5, "not a literal"),
        (5, "'plus' is not an ALU operation"),
        (5, "no argument mode"),
    ]


def test_what_a_second_buffer_of_a_name_is_used_for_is_no_mistake_of_its_own():
    (found, second) = mistakes(
        "t = buffer(float32[128, 8], sbuf)\nt = buffer(float32[128, 16], sbuf)\n"
        "memset(dst=t[:, 0:16], value=0.0)\nmemset(dst=q[:, :], value=0.0)\n"
    )
    assert (found, second) == ((4, "t is already a buffer"), (6, "q is not a buffer"))


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
    assert not isinstance(rejection(old, new), ProgramMistakesError)


@pytest.mark.parametrize("text", [None, GOOD.encode(), 3])
def test_what_is_no_text_is_rejected(text):
    with pytest.raises(ProgramTextError, match="not the text of a program") as caught:
        parse_program(text)
    assert caught.value.got == type(text).__name__
