"""Registers: what they hold, where they are used, what they reject."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

from neuroncore.checks import watching
from neuroncore.errors import (
    AccessError,
    AttributeValueError,
    DTypeError,
    EndlessLoopError,
    FrozenRegisterError,
    ShapeError,
    SignatureError,
    UnsupportedError,
    ValuesNeededError,
)
from neuroncore.machine.observe import watched_by
from neuroncore.machine.registers import VirtualRegister
from neuroncore.program import Recorder, capture, emit, execute_program, parse_program, verify
from neuroncore.timeline import estimate
from nki_beta2 import BACKEND

FROM_0_3 = BACKEND.versions[1:]


@pytest.mark.parametrize(
    ("name", "version", "parameters"),
    [
        *(("register_alloc", v, "x") for v in BACKEND.versions),
        ("register_move", "0.2", "dst imm"),
        *(("register_move", v, "dst src") for v in FROM_0_3),
        *(("register_load", v, "dst src") for v in BACKEND.versions),
        *(("register_store", v, "dst src") for v in BACKEND.versions),
    ],
)
def test_signatures_by_version(speak, name, version, parameters):
    shown = inspect.signature(getattr(speak(version).nisa, name)).parameters

    assert " ".join(shown) == parameters
    if name == "register_alloc":
        assert shown["x"].default is None


def test_the_class_has_a_name_from_03_on(every):
    assert hasattr(every.nisa, "VirtualRegister") == (every.version != "0.2")


def stored(lang, dtype, fill):
    """What register_store writes of the register that `fill(nisa)` gives."""

    def kernel():
        out = lang.nl.ndarray((1, 1), dtype, buffer=lang.nl.shared_hbm)
        lang.nisa.register_store(out, fill(lang.nisa))
        return out

    return lang.run(kernel)


@pytest.mark.parametrize("value", [0, -1, 2**31 - 1, -(2**31), 2**31, 2**32 - 1])
def test_an_immediate_has_32_bits(every, value):
    dtype = every.nl.uint32 if value > 2**31 - 1 else every.nl.int32

    assert stored(every, dtype, lambda nisa: nisa.register_alloc(value)).item() == value


@pytest.mark.parametrize("value", [2**32, -(2**31) - 1])
def test_more_than_32_bits_do_not_fit(every, value):
    with pytest.raises(AttributeValueError, match="does not fit a register"):
        stored(every, every.nl.int32, lambda nisa: nisa.register_alloc(value))


@pytest.mark.parametrize("value", [1.0, True, "1"])
def test_an_immediate_is_an_int(every, value):
    with pytest.raises(AttributeValueError, match="a register is set to a"):
        stored(every, every.nl.int32, lambda nisa: nisa.register_alloc(value))


def test_moving_sets_or_copies(now):
    def fill(nisa):
        a, b = nisa.register_alloc(5), nisa.register_alloc()
        nisa.register_move(b, a)
        nisa.register_move(a, 6)
        return b

    assert stored(now, now.nl.int32, fill).item() == 5


def test_in_02_an_immediate_is_all_that_moves(speak):
    old = speak("0.2")

    def fill(nisa):
        register = nisa.register_alloc()
        nisa.register_move(register, imm=7)
        with pytest.raises(AttributeValueError, match="a register is set to a VirtualRegister"):
            nisa.register_move(register, register)
        return register

    assert stored(old, old.nl.int32, fill).item() == 7


@pytest.mark.parametrize("space", ["hbm", "sbuf"])
@pytest.mark.parametrize(
    ("dtype", "value"),
    [("uint8", 200), ("int8", -3), ("int16", -300), ("uint32", 2**32 - 1), ("float32", 0.1),
     ("bfloat16", -2.5), ("float8_e5m2", 0.75), ("float8_e8m0fnu", 0.25)],
)  # fmt: skip
def test_one_element_is_loaded_and_stored_exactly(now, space, dtype, value):
    nl, nisa = now.nl, now.nisa
    kind = getattr(nl, dtype)

    def kernel(x):
        tensor, out = nl.ndarray((1, 1), kind), nl.ndarray((1, 1), kind, buffer=nl.shared_hbm)
        nisa.dma_copy(tensor, x)
        register = nisa.register_alloc()
        nisa.register_load(register, tensor if space == "sbuf" else x)
        nisa.register_store(out, register)
        return out

    x = np.full((1, 1), value).astype(kind.storage)
    assert now.run(kernel, x).tobytes() == x.tobytes()


def test_a_register_may_start_with_a_tensors_element(every):
    x = np.array([[42]], np.int32)

    def kernel(x):
        out = every.nl.ndarray((1, 1), every.nl.int32, buffer=every.nl.shared_hbm)
        every.nisa.register_store(out, every.nisa.register_alloc(x))
        return out

    assert every.run(kernel, x).item() == 42


@pytest.mark.parametrize(
    ("dtype", "value", "error", "message"),
    [
        ("uint8", 255, None, ""),
        ("uint8", 256, AttributeValueError, "the register holds 256"),
        ("int8", -129, AttributeValueError, "the register holds -129"),
        ("float32", 1, DTypeError, "the register holds int32, dst is float32"),
    ],
)
def test_what_a_destination_cannot_hold_is_rejected(now, dtype, value, error, message):
    kind = getattr(now.nl, dtype)

    if error is None:
        assert stored(now, kind, lambda nisa: nisa.register_alloc(value)).item() == value
        return
    with pytest.raises(error, match=message):
        stored(now, kind, lambda nisa: nisa.register_alloc(value))


def test_two_elements_are_too_many(now):
    def kernel(x):
        now.nisa.register_load(now.nisa.register_alloc(), x)

    with pytest.raises(ShapeError, match="src has 2 elements"):
        now.run(kernel, np.zeros((1, 2), np.int32))


def test_a_tensor_is_no_register_and_a_number_no_tensor(now):
    nisa = now.nisa

    with pytest.raises(SignatureError, match="dst cannot be a NkiTensor"):
        now.run(lambda x: nisa.register_load(x, x), np.zeros((1, 1), np.int32))
    with pytest.raises(SignatureError, match="src cannot be a int"):
        now.run(lambda: nisa.register_load(nisa.register_alloc(), 5))


# -- addresses ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", BACKEND.versions)
def test_a_register_is_an_offset_and_is_read_when_the_copy_runs(speak, version, ramp):
    lang = speak(version)
    nl, nisa = lang.nl, lang.nisa

    def kernel(x):
        register, row = nisa.register_alloc(1), nl.ndarray((1, 8), nl.float32)
        here = x.ap([[8, 1], [1, 8]], scalar_offset=register)
        nisa.register_move(register, 3)
        nisa.dma_copy(row, here)
        return lang.out(row)

    assert lang.run(kernel, ramp).tolist() == [ramp[3].tolist()]


def test_an_offset_out_of_bounds_is_rejected(now, ramp):
    def kernel(x):
        row = now.nl.ndarray((1, 8), now.nl.float32)
        here = x.ap([[8, 1], [1, 8]], scalar_offset=now.nisa.register_alloc(4))
        now.nisa.dma_copy(row, here)

    with pytest.raises(AccessError, match="scalar_offset is 4"):
        now.run(kernel, ramp)


def test_a_float_is_no_offset(now, ramp):
    def kernel(x):
        register = now.nisa.register_alloc(x[0:1, 0:1])
        x.ap([[8, 1], [1, 8]], scalar_offset=register)

    with pytest.raises(AccessError, match="index of a dynamic access does not fit"):
        now.run(kernel, ramp)


def test_memory_finds_a_register_that_nothing_has_written(now, ramp):
    nl, nisa = now.nl, now.nisa

    def kernel(x, written):
        row = nl.ndarray((1, 8), nl.float32)
        register = nisa.register_alloc(1 if written else None)
        nisa.dma_copy(
            row, x.ap([[8, 1], [1, 8]], scalar_offset=register), oob_mode=nisa.oob_mode.skip
        )

    def findings(written):
        with watching("memory") as report:
            now.run(kernel, ramp, written)
        return [f.operand for f in report]

    assert findings(True) == []
    assert findings(False) == ["src.index"]


# -- control flow ---------------------------------------------------------------------------------


def counting(lang, start, step=-1):
    nl, nisa = lang.nl, lang.nisa

    def kernel():
        count = nl.full((1, 1), start, nl.int32)
        turns = nl.zeros((1, 1), nl.int32)
        register = nisa.register_alloc()
        nisa.register_load(register, count)
        while register:
            nisa.tensor_scalar(turns, turns, nl.add, 1)
            nisa.tensor_scalar(count, count, nl.add, step)
            nisa.register_load(register, count)
        return lang.out(turns)

    return kernel


@pytest.mark.parametrize("turns", [0, 1, 7])
def test_a_loop_goes_on_while_its_register_is_not_zero(now, turns):
    assert now.run(counting(now, turns)).item() == turns


def test_a_loop_that_does_not_end_is_named(speak):
    lang = speak("0.6", dynamic_turns=10)

    assert lang.run(counting(lang, 10)).item() == 10
    with pytest.raises(EndlessLoopError, match="has not ended after 10 turns") as raised:
        lang.run(counting(lang, 11))
    assert "while register:" in str(raised.value)
    assert lang.run(counting(lang, 3)).item() == 3  # nothing is left of it


def test_under_the_tracer_a_register_has_no_value(speak):
    lang = speak("0.6", register_control="tracer")

    with pytest.raises(UnsupportedError, match="the truth value of a register"):
        lang.run(counting(lang, 1))


@pytest.mark.parametrize("use", [int, float, range], ids=["int", "float", "range"])
def test_python_numbers_are_not_made_of_registers(now, use):
    with pytest.raises(UnsupportedError, match="the number of a register"):
        now.run(lambda: use(now.nisa.register_alloc(1)))


def test_the_variable_of_a_loop_is_not_written(now):
    def kernel():
        register = now.nisa.register_alloc(1)
        register.frozen = True
        now.nisa.register_move(register, 2)

    with pytest.raises(FrozenRegisterError, match="variable of a dynamic loop is written"):
        now.run(kernel)


def test_registers_are_not_made_by_hand(now):
    with pytest.raises(UnsupportedError, match=r"made by nisa\.register_alloc"):
        now.run(lambda: VirtualRegister(1))


# -- as programs ----------------------------------------------------------------------------------


def rows_by_register(lang):
    """The rows of x (4, 8) in order, each at a register that holds a compile-time int."""
    nl, nisa = lang.nl, lang.nisa

    @lang.nki.jit
    def kernel(x):
        out = nl.ndarray((4, 8), nl.float32, buffer=nl.shared_hbm)
        row = nl.ndarray((1, 8), nl.float32, buffer=nl.sbuf)

        def copy(at):
            nisa.dma_copy(row, x.ap([[8, 1], [1, 8]], scalar_offset=at))
            nisa.dma_copy(out.ap([[8, 1], [1, 8]], scalar_offset=at), row)

        nl.fori_loop(0, 2, copy)
        stop, here = nisa.register_alloc(3), nisa.register_alloc()
        for i in nl.dynamic_range(2, stop):
            copy(i)
        nisa.register_move(here, 1)
        nisa.register_move(here, stop)
        copy(here)
        return out

    return kernel


def test_registers_that_hold_known_numbers_are_a_program_with_them(now, ramp):
    rows = rows_by_register(now)
    x = np.concatenate([ramp, ramp + 100])[:4]

    program = capture(rows, x)

    assert not verify(program)
    assert parse_program(str(program)) == program
    assert execute_program(program, [x])[0].tolist() == x.tolist()
    held = re.findall(r"register_alloc\((\d)\)", emit(program, "0.6"))
    assert held == ["0", "0", "1", "1", "2", "2", "3", "3"]


def test_their_time_needs_no_values(now):
    kernel = rows_by_register(now)
    with watched_by(recorder := Recorder(kernel, for_time=True, needs_values=False)):
        kernel(np.zeros((4, 8), np.float32))

    timeline = estimate(recorder.program(), mode="as_written")
    assert [bar.instruction for bar in timeline.bars] == ["dma_copy"] * 8


def test_a_register_that_holds_data_is_no_program(now):
    """A program holds for every content of its tensors."""
    counted = now.nki.jit(counting(now, 1))

    rejected = "a register is loaded from a tensor, which no program says"
    with pytest.raises(UnsupportedError, match=rejected):
        capture(counted)


def test_the_time_of_a_register_that_holds_data_needs_its_values(now):
    counted = now.nki.jit(counting(now, 1))
    without_values = Recorder(counted, for_time=True, needs_values=False)
    with watched_by(without_values), pytest.raises(ValuesNeededError):
        counted()


@pytest.mark.parametrize("turns", [1, 4])
def test_the_time_of_a_loop_is_that_of_the_turns_that_its_data_give(now, turns):
    kernel = now.nki.jit(counting(now, turns))
    with watched_by(recorder := Recorder(kernel, for_time=True)):
        kernel()

    bars = [bar.instruction for bar in estimate(recorder.program(), mode="as_written").bars]
    assert bars.count("tensor_scalar") == 2 * turns


def test_a_number_that_a_register_held_before_it_was_loaded_is_forgotten(now):
    nisa, nl = now.nisa, now.nl
    seen = []

    def kernel():
        register = nisa.register_alloc(7)
        copy = nisa.register_alloc()
        nisa.register_load(register, nl.full((1, 1), 9, nl.int32))
        nisa.register_move(copy, register)
        seen.extend([register.value, copy.value])

    now.run(kernel)
    assert seen == [9, 9]
