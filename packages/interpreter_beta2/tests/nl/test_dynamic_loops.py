"""Loops on the device up to 0.6: dynamic_range, fori_loop, while_loop."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from neuroncore.errors import (
    AccessError,
    AttributeValueError,
    EndlessLoopError,
    FrozenRegisterError,
    SignatureError,
    UnsupportedError,
)
from neuroncore.program import capture, emit, execute_program, parse_program, verify
from neuroncore.timeline import estimate
from nki_beta2 import BACKEND

ALL = BACKEND.versions[:-1]  # 0.7: test_device_loops
FROM_0_4 = ALL[2:]
BOUNDS = [(0, 4, 1), (1, 4, 1), (0, 5, 2), (3, 3, 1), (4, 1, 1), (-1, 1, 1)]


def loaded(lang, value):
    """A register that a tensor filled."""
    register, tile = lang.nisa.register_alloc(), lang.nl.ndarray((1, 1), lang.nl.int32)
    lang.nisa.memset(tile, value)
    lang.nisa.register_load(register, tile)
    return register


def turns(lang, loop):
    """How often the body of `loop(count)` ran."""

    def kernel():
        total = lang.nl.zeros((1, 1), lang.nl.int32)
        loop(lambda: lang.nisa.tensor_scalar(total, total, lang.nl.add, 1.0))
        return lang.out(total)

    return lang.run(kernel).item()


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("register", [False, True])
def test_dynamic_range_turns_as_range_does(speak, version, bounds, register):
    lang = speak(version)
    low, high, step = bounds

    def loop(count):
        given = (loaded(lang, low), loaded(lang, high)) if register else (low, high)
        for _ in lang.nl.dynamic_range(*given, step):
            count()

    assert turns(lang, loop) == len(range(*bounds))


def test_one_bound_starts_at_zero(now):
    def loop(count):
        for _ in now.nl.dynamic_range(loaded(now, 3)):
            count()

    assert turns(now, loop) == 3


@pytest.mark.parametrize("version", FROM_0_4)
def test_the_variable_is_an_offset(speak, version, ramp):
    lang = speak(version)
    nl, nisa = lang.nl, lang.nisa

    def kernel(x):
        row, total = nl.ndarray((1, 8), nl.float32), nl.zeros((1, 8), nl.float32)
        for i in nl.dynamic_range(1, loaded(lang, 4), 2):
            nisa.dma_copy(row, x.ap([[8, 1], [1, 8]], scalar_offset=i))
            nisa.tensor_tensor(total, total, row, nl.add)
        return lang.out(total)

    assert lang.run(kernel, ramp).tolist() == [(ramp[1] + ramp[3]).tolist()]


@pytest.mark.parametrize("version", FROM_0_4)
def test_a_loop_with_known_bounds_is_a_program_with_its_numbers(speak, version, ramp):
    lang = speak(version)
    nl, nisa = lang.nl, lang.nisa

    @lang.nki.jit
    def odd_rows(x):
        out = nl.ndarray((2, 8), nl.float32, buffer=nl.shared_hbm)
        row = nl.ndarray((1, 8), nl.float32, buffer=nl.sbuf)
        for i in nl.dynamic_range(2):
            nisa.dma_copy(row, x.ap([[8, 1], [1, 8]], offset=8, scalar_offset=i))
            nisa.dma_copy(out.ap([[8, 1], [1, 8]], scalar_offset=i), row)
        return out

    program = capture(odd_rows, ramp)
    assert not verify(program)

    assert parse_program(str(program)) == program
    assert execute_program(program, [ramp])[0].tolist() == ramp[1:3].tolist()
    assert estimate(program, mode="as_written").total_ns > 0
    assert "scalar_offset=nisa.register_alloc(1)" in emit(program, version)


def test_up_to_03_the_variable_is_of_no_use(speak, ramp):
    lang = speak("0.3")

    def offset(x):
        for i in lang.nl.dynamic_range(1):
            x.ap([[8, 1], [1, 8]], scalar_offset=i)

    def number():
        for i in lang.nl.dynamic_range(1):
            int(i)

    with pytest.raises(AccessError, match="a dynamic offset is a tensor in SBUF"):
        lang.run(offset, ramp)
    with pytest.raises(UnsupportedError, match=r"the variable of nl\.dynamic_range is used"):
        lang.run(number)


def test_the_variable_is_not_written(now):
    def kernel():
        for i in now.nl.dynamic_range(2):
            now.nisa.register_move(i, 5)

    with pytest.raises(FrozenRegisterError, match="the variable of a dynamic loop is written"):
        now.run(kernel)


@pytest.mark.parametrize("step", [0, -1, 1.0, True])
def test_a_step_is_a_positive_int(now, step):
    with pytest.raises(AttributeValueError, match="step is"):
        now.run(lambda: [*now.nl.dynamic_range(0, 3, step)])


@pytest.mark.parametrize("bound", [1.5, "3", None])
def test_a_bound_is_an_int_or_a_register(now, bound):
    with pytest.raises(AttributeValueError, match="is a "):
        now.run(lambda: [*now.nl.dynamic_range(bound)])


def test_a_body_that_moves_its_bound_is_rejected(now):
    def kernel():
        bound = loaded(now, 3)
        for _ in now.nl.dynamic_range(bound):
            now.nisa.register_move(bound, 9)

    with pytest.raises(UnsupportedError, match="the body changes the bound of its loop"):
        now.run(kernel)


@pytest.mark.parametrize("allowed", [6, 5])
def test_a_loop_is_bounded_by_an_option_and_named(speak, allowed):
    lang = speak("0.6", dynamic_turns=allowed)

    def loop(count):
        for _ in lang.nl.dynamic_range(6):
            count()

    if allowed == 6:
        assert turns(lang, loop) == 6
        return
    with pytest.raises(EndlessLoopError, match="has not ended after 5 turns") as raised:
        turns(lang, loop)
    assert "in lang.nl.dynamic_range(6)" in str(raised.value)


# -- fori_loop and while_loop ---------------------------------------------------------------------


@pytest.mark.parametrize(("name", "parameters"), [
    ("dynamic_range", "start stop step"), ("fori_loop", "lower upper body_fun step"),
    ("while_loop", "init body_fun"),
])  # fmt: skip
def test_signatures(now, name, parameters):
    assert " ".join(inspect.signature(getattr(now.nl, name)).parameters) == parameters


@pytest.mark.parametrize("version", ALL[:4])
@pytest.mark.parametrize("name", ["fori_loop", "while_loop"])
def test_they_came_with_06(speak, version, name):
    with pytest.raises(AttributeError, match=r"it is part of NKI 0\.6 and 0\.7"):
        getattr(speak(version).nl, name)


@pytest.mark.parametrize("bounds", BOUNDS)
def test_fori_loop_gives_its_body_the_numbers_of_range(now, bounds):
    seen = []

    def loop(count):
        def body(i):
            count()
            seen.append(i.value)
            now.nisa.register_move(i, 100)  # by value: the loop goes on as it was

        now.nl.fori_loop(loaded(now, bounds[0]), bounds[1], body, bounds[2])

    assert turns(now, loop) == len(range(*bounds))
    assert seen == [*range(*bounds)]


def test_the_body_of_fori_loop_returns_nothing(now):
    with pytest.raises(SignatureError, match=r"the body of nl\.fori_loop returns something"):
        now.run(lambda: now.nl.fori_loop(0, 1, lambda i: i))


@pytest.mark.parametrize("start", [0, 1, 5])
def test_while_loop_goes_on_until_the_body_returns_zero(now, start):
    nl, nisa = now.nl, now.nisa

    def loop(count):
        left = nl.full((1, 1), start, nl.int32)

        def body(r):
            count()
            nisa.tensor_scalar(left, left, nl.subtract, 1.0)
            nisa.register_load(r, left)
            return r

        first = loaded(now, start)
        nl.while_loop(first, body)
        assert first.value == start  # the body had a copy

    assert turns(now, loop) == start


def test_while_loop_takes_registers_only(now):
    with pytest.raises(SignatureError, match=r"init gives nl\.while_loop a int"):
        now.run(lambda: now.nl.while_loop(1, lambda r: r))
    with pytest.raises(SignatureError, match=r"body_fun gives nl\.while_loop a NoneType"):
        now.run(lambda: now.nl.while_loop(now.nisa.register_alloc(1), lambda r: None))


def test_a_while_loop_that_does_not_end_is_named(speak):
    lang = speak("0.6", dynamic_turns=4)

    with pytest.raises(EndlessLoopError, match="has not ended after 4 turns") as raised:
        lang.run(lambda: lang.nl.while_loop(lang.nisa.register_alloc(1), lambda r: r))
    assert "while_loop" in str(raised.value)


# -- further uses of registers --------------------------------------------------------------------


@pytest.mark.parametrize("version", BACKEND.versions[2:])
@pytest.mark.parametrize("by_name", [False, True])
def test_iota_starts_at_a_register(speak, version, by_name):
    lang = speak(version)

    def kernel():
        tile, start = lang.nl.ndarray((2, 4), lang.nl.int32), loaded(lang, 7)
        if by_name:
            lang.nisa.iota(tile, [[1, 4]], offset=start, channel_multiplier=10)
        else:
            lang.nisa.iota(tile, [[1, 4]], start, 10)
        return lang.out(tile)

    assert lang.run(kernel).tolist() == [[7, 8, 9, 10], [17, 18, 19, 20]]


def test_before_04_iota_starts_at_a_number(speak):
    lang = speak("0.3")

    with pytest.raises(AttributeValueError, match="offset is not an int"):
        lang.run(lambda: lang.nisa.iota(
            lang.nl.ndarray((2, 4), lang.nl.int32), [[1, 4]], lang.nisa.register_alloc(1)
        ))  # fmt: skip


def test_average_is_an_operation_from_05_on(speak):
    assert not hasattr(speak("0.4").nl, "average")
    lang = speak("0.5")

    def kernel(x):
        mean = lang.nl.ndarray((1, 8), lang.nl.float32)
        lang.nisa.tensor_partition_reduce(mean, lang.nl.average, lang.tile(x))
        return lang.out(mean)

    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    assert lang.run(kernel, x).tolist() == [x.mean(0).tolist()]
