"""Messages as a kernel's author reads them: the whole text, caret included."""

from __future__ import annotations

import linecache
import traceback
from textwrap import dedent

import numpy as np
import pytest

from neuroncore.errors import InternalError, KernelError, Violation, raise_violations


@pytest.fixture
def message_of(tmp_path, world, nisa):
    """The text of the error that a kernel, written to a file of its own, ends in."""

    def run(body, **names):
        file = tmp_path / "kernel.py"
        file.write_text(dedent(body), encoding="utf-8")
        known = {"__name__": "kernel", "nisa": nisa, "new": world.new, "tile": world.tile}
        with pytest.raises(KernelError) as raised:
            exec(compile(file.read_text("utf-8"), str(file), "exec"), known | names)
        return str(raised.value).replace(str(file), "kernel.py")

    return run


def expected(text):
    return dedent(text).strip("\n")


def test_the_caret_stands_under_the_named_argument(message_of):
    text = message_of("""\
        acc, w, x = new((128, 640), space="psum"), new((128, 128)), new((128, 640))
        nisa.nc_matmul(dst=acc, stationary=w, moving=x)
        """)

    assert text == expected("""
        kernel.py:2:1: nc_matmul: moving free size 640 exceeds 512
            nisa.nc_matmul(dst=acc, stationary=w, moving=x)
                                                         ^
            expected: at most 512 elements per partition
            got:      shape (128, 640), float32, SBUF
            split the free axis into chunks of at most 512
            also: dst reaches byte 2560 of a PSUM bank
            [NKI: nc_matmul, tile limits]
        """)


class Shell:
    """IPython's `showtraceback`, as far as an exception can change what it shows."""

    def run_cell(self, text, names):
        cell = "/tmp/ipykernel_1/1234.py"
        linecache.cache[cell] = len(text), None, text.splitlines(True), cell
        try:
            exec(compile(text, cell, "exec"), names)
        except Exception as value:
            if hasattr(value, "_render_traceback_"):
                return value._render_traceback_()
            return traceback.format_exception(value)
        return []


def test_a_notebook_shows_the_line_and_the_caret_and_no_frames(world, nisa):
    names = {"__name__": "__main__", "nisa": nisa, "new": world.new}
    shown = Shell().run_cell(
        "a, b = new((128, 8)), new((128, 8))\nnisa.nc_matmul(dst=a, stationary=b, moving=b)\n",
        names,
    )

    assert shown[0].startswith("MemorySpaceError: /tmp/ipykernel_1/1234.py:2:1: nc_matmul: ")
    assert shown[1] == "    nisa.nc_matmul(dst=a, stationary=b, moving=b)"
    assert shown[2].strip() == "^"
    assert not [line for line in shown if "neuroncore" in line or "\n" in line]


def test_or_under_the_argument_at_its_position(message_of):
    text = message_of("""\
        t = new((128, 8))
        if True:
            nisa.tensor_tensor(t, t, new((128, 9)), "add")
        """)

    assert text == expected("""
        kernel.py:3:5: tensor_tensor: data2 has 9 elements per partition, dst 8
            nisa.tensor_tensor(t, t, new((128, 9)), "add")
                                     ^^^^^^^^^^^^^
            expected: 8 elements per partition
            got:      data2: shape (128, 9), float32, SBUF; dst: shape (128, 8), float32, SBUF
            operands are not broadcast; use .broadcast, a (P, 1) operand of \
tensor_scalar, or .ap with step 0
            [NKI: tensor_tensor, shapes]
        """)


def test_in_a_call_of_several_lines_the_caret_finds_the_right_one(message_of):
    text = message_of("""\
        nisa.tensor_copy(
            new((4, 8)),
            src=new((4, 8), space="hbm"),
        )
        """)

    assert text == expected("""
        kernel.py:1:1: tensor_copy: src is in HBM
            src=new((4, 8), space="hbm"),
                ^^^^^^^^^^^^^^^^^^^^^^^^
            expected: PSUM or SBUF
            got:      shape (4, 8), float32, HBM
            bring it on chip with nisa.dma_copy first
            [NKI: tensor_copy, memories]
        """)


def test_the_caret_is_not_misled_by_letters_that_take_two_bytes(message_of):
    text = message_of("""\
        größe = new((4, 8)); nisa.tensor_copy(größe, src=new((4, 9)))
        """)

    line, caret = text.splitlines()[1:3]
    assert line[caret.index("^") : caret.rindex("^") + 1] == "new((4, 9))"


def test_an_index_out_of_range(message_of):
    text = message_of("""\
        t = new((128, 512))
        u = t[0:128, 512:513]
        """)

    assert text == expected("""
        kernel.py:2:5: slice 512:513 is outside dimension 1
            u = t[0:128, 512:513]
                ^^^^^^^^^^^^^^^^^
            expected: 0 <= start < stop <= 512 and step >= 1
            got:      start 512, stop 513, step 1 on a tensor of shape (128, 512)
            clamp the bound with min(…) where the last tile is ragged
            [NKI language guide: tensor indexing]
        """)


def test_129_partitions(message_of):
    text = message_of("""\
        new((129, 4))
        """)

    assert "129 partitions in SBUF" in text
    assert "expected: at most 128" in text
    assert "[NKI architecture guide: on-chip memories have 128 partitions]" in text


def test_an_unknown_dtype_comes_with_near_names(message_of):
    text = message_of("""\
        t = new((4, 4)).view("bflaot16")
        """)

    assert text.startswith("kernel.py:1:5: ")
    assert "bfloat16" in text
    assert "^^^^^" in text


@pytest.mark.parametrize(
    ("call", "what"),
    [
        ("nisa.tensor_copy(t)", "argument 'src' is missing"),
        ("nisa.tensor_copy(t, t, 0, None, 1)", "too many arguments"),
        ("nisa.tensor_copy(t, t, mask=None)", "no parameter 'mask'"),
        ("nisa.tensor_copy(t, None)", "src cannot be a NoneType"),
        ("nisa.tensor_copy(None, t)", "dst cannot be a NoneType"),
        ("nisa.tensor_copy(t, array)", "src cannot be a ndarray"),
        ("nisa.memset(t, 'one')", "value cannot be a str"),
        ("nisa.tensor_tensor(t, t, t, 'plus')", "'plus' is not an ALU operation"),
        ("nisa.tensor_tensor(t, t, t, {})", "op cannot be a dict"),
        ("nisa.tensor_copy(t, t, 'gpu')", "engine='gpu' is not one of its values"),
        ("nisa.tensor_reduce(t, 'add', t, 1.5)", "axis is not an int"),
        ("nisa.activation(t, 'exq', t)", "'exq' is not an activation function"),
        ("nisa.iota(t, [[1, 4]], 1.5)", "offset is not an int"),
    ],
)
def test_arguments_that_do_not_fit_the_signature(message_of, call, what):
    text = message_of(f"t = new((4, 4))\n{call}\n", array=np.zeros((4, 4)))

    head, line, caret = text.splitlines()[:3]
    assert head.startswith("kernel.py:2:1: ")
    assert what in head
    assert line.strip() == call
    assert set(caret.strip()) == {"^"}


def test_a_name_in_the_place_of_an_enum_is_an_error_that_shows_name(message_of):
    text = message_of("t = new((4, 4))\nnisa.tensor_copy(t, t, 'first')\n")

    assert "an instruction is named by name='first'" in text


def test_errors_carry_no_context_of_ours(world, nisa):
    with pytest.raises(KernelError) as raised:
        nisa.tensor_copy(world.new((4, 8)), world.new((4, 9)))

    assert raised.value.__context__ is None


def test_an_error_without_a_place_is_its_text():
    with pytest.raises(KernelError) as raised:
        raise_violations("copy", [Violation(KernelError, "is wrong"), Violation(KernelError, "so")])
    raised.value.place = None

    assert str(raised.value) == "copy: is wrong\n    also: so"


def test_our_own_mistakes_are_another_family():
    assert not issubclass(InternalError, KernelError)
