"""NkiScalar, scalar_load and scalar_store against exact integers (0.7)."""

from __future__ import annotations

import operator
import re
from typing import Any

import numpy as np
import pytest
from packages.interpreter_beta2.tests.conftest import speaker

from neuroncore.errors import (
    AttributeValueError,
    DTypeError,
    KernelError,
    ShapeError,
    SignatureError,
    UndefinedError,
    UnsupportedError,
)
from neuroncore.machine.observe import watched_by
from neuroncore.program import Recorder, capture, emit, execute_program, parse_program, verify
from neuroncore.timeline import estimate

WIDTHS = {"int32": np.int32, "int64": np.int64}
every_width = pytest.mark.parametrize("width", WIDTHS)


@pytest.fixture
def lang():
    return speaker("0.7")


def computed(lang, compute, *numbers, width="int32"):
    """What the device stores of `compute(*scalars)`."""

    def kernel(cells):
        scalars = [lang.nisa.scalar_load(cell) for cell in cells]
        out = lang.nl.ndarray((1, 1), cells[0].dtype, buffer=lang.nl.shared_hbm)
        lang.nisa.scalar_store(out, compute(*scalars))
        return out

    return lang.run(kernel, tuple(np.array([[n]], WIDTHS[width]) for n in numbers)).item()


def exact(number, width):
    """A number in the two's complement of a width, by NumPy's bytes."""
    bits = int(width.removeprefix("int"))
    stored = (number % (1 << bits)).to_bytes(bits // 8, "little")
    return int.from_bytes(stored, "little", signed=True)


@every_width
@pytest.mark.parametrize("operate", [operator.add, operator.sub, operator.mul])
def test_arithmetic_is_exact_and_wraps_around(lang, operate, width):
    rng, info = np.random.default_rng(7), np.iinfo(WIDTHS[width])
    drawn = map(int, rng.integers(info.min, info.max, 6))
    numbers = [info.min, info.max, 0, 1, -1, 100_000, *drawn]
    for a, b in zip(numbers, reversed(numbers), strict=True):
        expected = exact(operate(a, b), width)
        assert computed(lang, operate, a, b, width=width) == expected
        assert computed(lang, lambda s, b=b: operate(s, b), a, width=width) == expected
        assert computed(lang, lambda s, a=a: operate(a, s), b, width=width) == expected


def test_the_documented_overflows(lang):
    assert computed(lang, lambda s: s * 100_000, 100_000) == 1_410_065_408
    assert computed(lang, lambda s: s + 1, 2**31 - 1) == -(2**31)
    assert computed(lang, lambda s: -s, -(2**31)) == -(2**31)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int32, np.uint32, np.int64])
def test_integers_of_numpy_are_integers_on_either_side(lang, kind):
    assert computed(lang, lambda s: s * kind(3) + kind(1), 5) == 16
    assert computed(lang, lambda s: kind(20) - s, 5) == 15


INTEGER_OPERATORS = [operator.floordiv, operator.mod, operator.and_, operator.or_, operator.xor]


@pytest.mark.parametrize("operate", [*INTEGER_OPERATORS, operator.lshift, operator.rshift])
def test_an_option_adds_the_operators_of_integers(operate):
    lang = speaker("0.7", scalar_operators="integer")
    for a, b in [(17, 5), (-17, 5), (2**30, 3)]:
        expected = exact(operate(a, b), "int32")
        assert computed(lang, operate, a, b) == expected
        assert computed(lang, lambda s, b=b: operate(s, b), a) == expected
        assert computed(lang, lambda s, a=a: operate(a, s), b) == expected


def test_a_scalar_is_not_divided_by_zero():
    with pytest.raises(UndefinedError, match="zero"):
        computed(speaker("0.7", scalar_operators="integer"), operator.floordiv, 1, 0)


def test_an_option_wraps_what_operators_are_given():
    lang = speaker("0.7", scalar_operands="wrap")

    def mixed(n, m):
        out = lang.nl.ndarray((1, 1), lang.nl.int32, buffer=lang.nl.shared_hbm)
        lang.nisa.scalar_store(out, lang.nisa.scalar_load(n) + lang.nisa.scalar_load(m))
        return out

    assert computed(lang, lambda s: s + 2**31, 1) == 1 - 2**31
    assert computed(lang, lambda s: s + True, 1) == 2
    wide = np.array([[2**40 + 7]], np.int64)
    assert lang.run(mixed, np.array([[1]], np.int32), wide).item() == 8


def test_an_option_lets_registers_take_scalars():
    lang = speaker("0.7", scalar_as_register="allow")

    def kernel(n):
        out = lang.nl.ndarray((2, 1), lang.nl.int32, buffer=lang.nl.shared_hbm)
        held = lang.nisa.register_alloc()
        lang.nisa.register_move(held, lang.nisa.scalar_load(n) + 1)
        lang.nisa.register_store(out[0:1], held)
        lang.nisa.register_store(out[1:2], lang.nisa.scalar_load(n))
        return out

    assert lang.run(kernel, np.array([[4]], np.int32)).tolist() == [[5], [4]]


def test_operators_leave_their_operands_alone(lang):
    def compute(s):
        t = s
        t += 1
        return s * 10 + t

    assert computed(lang, compute, 4) == 45


@every_width
def test_a_scalar_moves_an_access_to_hbm(lang, width, ramp):
    def kernel(x, n):
        row = lang.nl.ndarray((1, 8), lang.nl.float32)
        at = lang.nisa.scalar_load(n) - 1
        lang.nisa.dma_copy(row, x.ap([[8, 1], [1, 8]], scalar_offset=at))
        return lang.out(row)

    assert lang.run(kernel, ramp, np.array([[3]], WIDTHS[width])).tolist() == ramp[2:3].tolist()


@pytest.mark.parametrize("by_select", [False, True])
@every_width
def test_only_32_bits_move_an_access_on_chip(lang, width, by_select, ramp):
    def kernel(x, n):
        tile, out = lang.tile(x), lang.nl.ndarray((4, 1), lang.nl.float32)
        at = lang.nisa.scalar_load(n)
        moved = tile.select(1, at) if by_select else tile.ap(
            [[8, 4], [1, 1]], scalar_offset=at, indirect_dim=1
        )  # fmt: skip
        lang.nisa.tensor_copy(out, moved)
        return lang.out(out)

    def run():
        return lang.run(kernel, ramp, np.array([[3]], WIDTHS[width]))

    if width == "int32":
        assert run().tolist() == ramp[:, 3:4].tolist()
        return
    with pytest.raises(DTypeError, match="scalar_offset is a scalar of int64"):
        run()


# -- what is rejected -----------------------------------------------------------------------------


@pytest.mark.parametrize(("compute", "error", "said"), [
    (lambda s: s // 2, UnsupportedError, "// of a scalar"),
    (lambda s: 7 % s, UnsupportedError, "% of a scalar"),
    (lambda s: s << 1, UnsupportedError, "<< of a scalar"),
    (abs, UnsupportedError, r"abs\(\) of a scalar"),
    (lambda s: s + 2**31, AttributeValueError, "2147483648 is not a number of int32"),
    (lambda s: s + True, AttributeValueError, "a scalar with a bool"),
    (lambda s: s + 1.0, AttributeValueError, "a scalar with a float"),
    (lambda s: s + np.True_, AttributeValueError, "a scalar with a bool"),
    (lambda s: s + np.int64(2**31), AttributeValueError, "2147483648 is not a number of int32"),
    (lambda s: max(s, 3), TypeError, "comparison"),
    (lambda s: s if s < 4 else 0, TypeError, "the result of a comparison"),
    (lambda s: s < 4, TypeError, "the result of a comparison"),
    (lambda s: (s == 4) + 1, TypeError, "the result of a comparison"),
    (lambda s: s if s else 0, TypeError, "the truth value of a scalar"),
    (lambda s: [1, 2, 3][s], TypeError, "the number of a scalar"),
    (lambda s: [1, 2, 3][:s], TypeError, "the number of a scalar"),
])  # fmt: skip
def test_what_scalars_do_not_do(lang, compute, error, said):
    with pytest.raises(error, match=said) as raised:
        computed(lang, compute, 3)
    assert isinstance(raised.value, KernelError)


def test_a_scalar_does_not_slice_a_tensor(lang, ramp):
    def kernel(x, n):
        return lang.tile(x)[0 : lang.nisa.scalar_load(n)]

    with pytest.raises((TypeError, KernelError), match="scalar"):
        lang.run(kernel, ramp, np.array([[3]], np.int32))


def test_two_widths_do_not_mix_and_64_bits_do_not_compare(lang):
    def kernel(n, m):
        narrow, wide = lang.nisa.scalar_load(n), lang.nisa.scalar_load(m)
        with pytest.raises(DTypeError, match="a scalar of int32 with one of int64"):
            operator.add(narrow, wide)
        with pytest.raises(DTypeError, match="< of scalars of int64"):
            operator.lt(wide, 3)

    lang.run(kernel, np.array([[3]], np.int32), np.array([[3]], np.int64))


@pytest.mark.parametrize(("shape", "dtype", "error", "said"), [
    ((1, 1), np.uint32, DTypeError, "src is uint32"),
    ((1, 1), np.uint64, DTypeError, "src is uint64"),
    ((1, 1), np.float32, DTypeError, "src is float32"),
    ((1, 2), np.int32, ShapeError, "src has shape"),
    ((1,), np.int32, ShapeError, "src has shape"),
])  # fmt: skip
def test_scalar_load_takes_one_signed_integer(lang, shape, dtype, error, said):
    with pytest.raises(error, match=said):
        lang.run(lambda x: lang.nisa.scalar_load(x) and None, np.zeros(shape, dtype))


def test_scalar_store_takes_a_scalar_of_the_width_of_its_destination(lang):
    def kernel(n, m):
        with pytest.raises(SignatureError, match=r"value cannot be a int(.|\n)*nisa\.memset"):
            lang.nisa.scalar_store(n, 3)
        with pytest.raises(SignatureError, match="value cannot be a TracedRegister"):
            lang.nisa.scalar_store(n, lang.nisa.register_alloc(3))
        with pytest.raises(DTypeError, match="the scalar holds int64, dst is int32"):
            lang.nisa.scalar_store(n, lang.nisa.scalar_load(m))

    lang.run(kernel, np.array([[3]], np.int32), np.array([[3]], np.int64))


@pytest.mark.parametrize("use", ["register_store", "register_move"])
def test_the_variable_of_a_loop_is_not_a_register(lang, use):
    nisa = lang.nisa

    def kernel():
        tile, register = lang.nl.zeros((1, 1), lang.nl.int32), nisa.register_alloc(0)

        def body(i):
            if use == "register_store":
                nisa.register_store(tile, i)
            else:
                nisa.register_move(register, i)

        lang.nl.fori_loop(0, 2, body)

    with pytest.raises(SignatureError, match="src cannot be a NkiScalar") as raised:
        lang.run(kernel)
    assert "scalar_store" in str(raised.value)


def test_users_do_not_make_scalars(lang):
    with pytest.raises(UnsupportedError, match=r"a scalar is made by nisa\.scalar_load"):
        lang.nisa.NkiScalar(3)


def test_scalars_came_with_0_7(speak):
    with pytest.raises(AttributeError, match=r"it is part of NKI 0\.7"):
        _ = speak("0.6").nisa.scalar_load


# -- 64 bits --------------------------------------------------------------------------------------


def test_dma_moves_64_bits_and_no_engine_computes_with_them(lang):
    nl, nisa = lang.nl, lang.nisa
    x = np.array([[2**40, -(2**62)]], np.int64)

    def kernel(x):
        tile = nl.ndarray((1, 2), nl.int64)
        nisa.dma_copy(tile, x)
        with pytest.raises(DTypeError, match="no engine computes with 64 bits"):
            nisa.tensor_copy(nl.ndarray((1, 2), nl.int64), tile)
        with pytest.raises(DTypeError, match="no engine computes with 64 bits"):
            nisa.dma_copy(nl.ndarray((1, 2), nl.int32), tile)
        with pytest.raises(DTypeError, match="no engine computes with 64 bits"):
            nisa.memset(tile, 0)
        return lang.out(tile)

    assert lang.run(kernel, x).tolist() == x.tolist()


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_up_to_0_6_there_are_no_64_bits(speak, dtype):
    with pytest.raises(KernelError, match=r"use u?int32"):
        speak("0.6").run(lambda x: None, np.zeros((2, 2), dtype))
    assert not hasattr(speak("0.6").nl, np.dtype(dtype).name)


# -- programs -------------------------------------------------------------------------------------


def row_at(lang, use):
    """A kernel that copies the row of x at use(scalar), a scalar loaded from n."""
    nl, nisa = lang.nl, lang.nisa

    @lang.nki.jit
    def kernel(x, n):
        row, number = (nl.ndarray(s, d, buffer=nl.shared_hbm)
                       for s, d in (((1, 8), nl.float32), ((1, 1), n.dtype)))  # fmt: skip
        scalar = nisa.scalar_load(n)
        nisa.dma_copy(row, x.ap([[8, 1], [1, 8]], scalar_offset=use(scalar)))
        nisa.scalar_store(number, scalar)
        return row, number

    return kernel


def test_a_loaded_scalar_is_part_of_a_program_for_every_number(lang, ramp):
    program = capture(row_at(lang, lambda scalar: scalar), ramp, np.full((1, 1), 1, np.int32))

    assert parse_program(str(program)) == program and not verify(program)
    n = np.full((1, 1), 2, np.int32)
    names: dict[str, Any] = {
        "nki": lang.nki,
        "nl": lang.nl,
        "nisa": lang.nisa,
        "__name__": "kernel",
    }
    exec(re.sub(r"(?m)^import nki.*$", "", emit(program, "0.7")), names)
    for row, number in (execute_program(program, [ramp, n])[:2], names["kernel"](ramp, n)):
        assert row.tolist() == [ramp[2].tolist()] and number.item() == 2


def test_the_time_of_a_kernel_with_a_loaded_scalar(lang, ramp):
    kernel = row_at(lang, lambda scalar: scalar)
    with watched_by(recorder := Recorder(kernel, for_time=True, needs_values=False)):
        kernel(ramp, np.ones((1, 1), np.int32))

    bars = estimate(recorder.program(), mode="as_written").bars
    assert [bar.instruction for bar in bars] == ["scalar_load", "dma_copy", "scalar_store"]


@pytest.mark.parametrize(("number", "turns"), [(1, 1), (2, 3)])
def test_the_time_of_what_is_computed_of_a_scalar_is_that_of_its_value(lang, ramp, number, turns):
    nl, nisa = lang.nl, lang.nisa

    @lang.nki.jit
    def kernel(x, n):
        row = nl.ndarray((1, 8), nl.float32, buffer=nl.shared_hbm)
        end = nisa.scalar_load(n) * 2 - 1

        def copy(i):
            nisa.dma_copy(row, x.ap([[8, 1], [1, 8]], scalar_offset=end - i))

        nl.fori_loop(0, end, copy)
        return row

    with watched_by(recorder := Recorder(kernel, for_time=True)):
        kernel(ramp, np.full((1, 1), number, np.int32))

    bars = estimate(recorder.program(), mode="as_written").bars
    assert [bar.instruction for bar in bars] == ["scalar_load", *["dma_copy"] * turns]


def test_what_is_computed_of_a_loaded_scalar_is_no_program(lang, ramp):
    with pytest.raises(UnsupportedError, match="a number that the device computes is used") as why:
        capture(row_at(lang, lambda scalar: scalar + 1), ramp, np.ones((1, 1), np.int32))
    assert "scalar + 1" in str(why.value)
