"""nl.fori_loop and nl.while_loop of 0.7: Python runs a body once, the device runs it every turn."""

from __future__ import annotations

import datetime
import inspect
import os
import random
import time
from importlib import import_module
from importlib.util import find_spec
from random import uniform
from time import time as now

import numpy as np
import pytest
from packages.interpreter_beta2.tests.conftest import speaker
from packages.interpreter_beta2.tests.device_loops import by_while_loop

from neuroncore.checks import watching
from neuroncore.errors import (
    AccessError,
    AttributeValueError,
    DTypeError,
    EndlessLoopError,
    LaunchError,
    SignatureError,
    UndefinedError,
    UnsupportedError,
)
from neuroncore.instructions import KernelWarning
from neuroncore.machine.captured_state import CLOCKS
from neuroncore.machine.observe import Watcher, watched_by
from neuroncore.program import capture, emit, execute_program, verify
from neuroncore.timeline import estimate

BOUNDS = [(0, 4, 1), (1, 4, 1), (0, 5, 2), (3, 3, 1), (4, 1, 1), (-1, 1, 1)]


@pytest.fixture
def lang():
    return speaker("0.7")


def held(lang, value, dtype="int32"):
    tile = lang.nl.ndarray((1, 1), getattr(lang.nl, dtype))
    lang.nisa.memset(tile, value)
    return tile


def register(lang, value):
    loaded = lang.nisa.register_alloc()
    lang.nisa.register_load(loaded, held(lang, value))
    return loaded


def scalar(lang, value):
    return lang.nisa.scalar_load(held(lang, value))


def expression(lang, value):
    return 2 * (scalar(lang, value) + 3) - scalar(lang, value) - 6


KINDS = {
    "int": lambda lang, value: value,
    "register": register,
    "scalar": scalar,
    "expression": expression,
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def adding(lang, total, amount=1.0):
    lang.nisa.tensor_scalar(total, total, lang.nl.add, amount)


def counted(lang, loop):
    """How often a device loop runs its body: `loop(count)` calls `count` in it."""

    def kernel():
        total = lang.nl.zeros((1, 1), lang.nl.int32)
        loop(lambda: adding(lang, total))
        return lang.out(total)

    return lang.run(kernel).item()


# -- turns ----------------------------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize("bounds", BOUNDS)
def test_fori_loop_takes_the_turns_of_range(lang, kind, bounds):
    low, high, step = bounds

    def loop(count):
        given = KINDS[kind](lang, low), KINDS[kind](lang, high)
        lang.nl.fori_loop(*given, lambda i: count() and None, step)

    assert counted(lang, loop) == len(range(*bounds))


@every_kind
def test_the_variable_is_an_offset_and_python_runs_once(kind, ramp):
    lang, calls = speaker("0.7", loop_state="ignore"), []
    nl, nisa = lang.nl, lang.nisa

    def kernel(x):
        total = nl.zeros((1, 8), nl.float32)

        def body(i):
            calls.append(type(i).__name__)
            row = nl.ndarray((1, 8), nl.float32)
            nisa.dma_copy(row, x.ap([[8, 1], [1, 8]], scalar_offset=i))
            nisa.tensor_tensor(total, total, row, nl.add)

        nl.fori_loop(1, KINDS[kind](lang, 4), body, step=2)
        return lang.out(total)

    assert lang.run(kernel, ramp).tolist() == [(ramp[1] + ramp[3]).tolist()]
    assert calls == ["LoopRegister" if kind == "register" else "NkiScalar"]


def test_a_body_that_python_changes_repeats_what_was_traced(lang):
    count = [0]

    def kernel():
        total = lang.nl.zeros((1, 1), lang.nl.int32)

        def body(i):
            count[0] += 1
            adding(lang, total, float(count[0]))

        lang.nl.fori_loop(0, 5, body)
        return lang.out(total)

    with pytest.warns(KernelWarning, match=r"count\[0\] is changed in the body of nl\.fori_loop"):
        assert lang.run(kernel).item() == 5  # not 1 + 2 + 3 + 4 + 5
    assert count == [1]


def changing_kernels():
    """Bodies that change Python objects, by the name that leads to each."""
    box, listed, seen, numbers = {"n": 1}, [], 0, iter([1, 2])

    def in_a_dict(i):
        box["n"] = 2

    def in_a_list(i):
        listed.append(i)

    def by_rebinding(i):
        nonlocal seen
        seen = 3

    def in_a_function(i):
        in_a_list(i)

    def in_an_iterator(i):
        next(numbers)

    class Counter:
        total = 0

        def count(self, i):
            self.total += 1

    return {"box['n']": in_a_dict, "listed": in_a_list, "seen": by_rebinding,
            "listed ": in_a_function, "numbers": in_an_iterator,
            "self.total": Counter().count}  # fmt: skip


@pytest.mark.parametrize("name", changing_kernels())
def test_what_a_body_changes_is_reported_at_its_line(name):
    body, found = changing_kernels()[name], []

    class Changes(Watcher):
        def state_changed(self, loop, what, place):
            found.append((loop, what, place.line))

    lang = speaker("0.7", loop_state="ignore")
    with watched_by(Changes()):
        lang.run(lambda: lang.nl.fori_loop(0, 2, body))

    (seen,) = found
    first = body.__code__.co_firstlineno
    assert seen[:2] == ("nl.fori_loop", f"{name.strip()} is changed")
    if name != "listed ":  # there the line is one of the function that the body calls
        assert first < seen[2] <= first + 2


SEEDED, DRAWN = random.Random(1), np.random.default_rng(1)
CALLS = {
    "random (a random generator) is changed": lambda i: random.random() and None,
    "uniform (a random generator) is changed": lambda i: uniform(0, 1) and None,
    "np (a random generator) is changed": lambda i: np.random.rand() and None,
    "SEEDED (a random generator) is changed": lambda i: SEEDED.random() and None,
    "DRAWN (a random generator) is changed": lambda i: DRAWN.random() and None,
    "time.perf_counter() is called": lambda i: time.perf_counter() and None,
    "now() is called": lambda i: now() and None,
    "datetime.datetime.now() is called": lambda i: datetime.datetime.now() and None,
    "os.urandom() is called": lambda i: os.urandom(1) and None,
    "datetime.datetime.today() is called": lambda i: datetime.datetime.today() and None,
}


def draws_from_an_import(turn):
    import random as drawn

    drawn.random()


def draws_from_an_imported_name(turn):
    from random import gauss, random

    gauss(random(), 1)


def reads_an_imported_clock(turn):
    import time as clock

    clock.monotonic()


def reads_an_imported_name(turn):
    from time import monotonic as tick

    tick()


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (draws_from_an_import, {"drawn (a random generator) is changed"}),
        (
            draws_from_an_imported_name,
            {f"{name} (a random generator) is changed" for name in ("gauss", "random")},
        ),
        (reads_an_imported_clock, {"clock.monotonic() is called"}),
        (reads_an_imported_name, {"tick() is called"}),
    ],
)
def test_what_a_body_imports_is_seen(body, what):
    line = body.__code__.co_firstlineno + 1

    assert {(said, line) for said in what} <= set(changes_of(body))


def changes_of(body):
    """(what, line) of each change of state that a loop over `body` is reported for."""
    found = []

    class Changes(Watcher):
        def state_changed(self, loop, what, place):
            found.append((what, place.line))

    lang = speaker("0.7", loop_state="ignore")
    with watched_by(Changes()):
        lang.run(lambda: lang.nl.fori_loop(0, 2, body))
    return found


@pytest.mark.parametrize("what", CALLS)
def test_calls_whose_value_differs_from_turn_to_turn_are_reported_at_their_line(what):
    body = CALLS[what]

    assert changes_of(body) == [(what, body.__code__.co_firstlineno)]


ARGUMENTS = {"posix.urandom": "1", "nt.urandom": "1", "secrets.randbelow": "5"}
HERE = sorted(name for name in CLOCKS if find_spec(name.partition(".")[0]))


@pytest.mark.parametrize("name", HERE)
def test_each_clock_is_reported(name):
    module = name.partition(".")[0]
    call = f"{name}({ARGUMENTS.get(name, '')})"
    body = eval(f"lambda i: ({call}, None)[1]", {module: import_module(module)})

    assert [what for what, _ in changes_of(body)] == [f"{name}() is called"]


def test_names_of_modules_that_a_body_does_not_draw_from_are_not_reported(lang, recwarn):
    scale = lambda: time.strftime is not None and random.Random is not None  # noqa: E731

    lang.run(lambda: lang.nl.fori_loop(0, 2, lambda i: scale() and np.float32(1) and None))
    assert [*recwarn] == []


@every_kind
@pytest.mark.parametrize("use", ["bound", "offset", "operator", "store"])
def test_numbers_of_a_body_are_not_used_after_the_loop(kind, use, ramp):
    lang, kept = speaker("0.7", loop_state="ignore"), []

    def kernel(x):
        nl, nisa = lang.nl, lang.nisa
        nl.fori_loop(0, KINDS[kind](lang, 3), kept.append)
        (i,) = kept
        uses = {
            "bound": lambda: nl.fori_loop(0, i, lambda j: None),
            "offset": lambda: nisa.dma_copy(
                nl.ndarray((1, 8), nl.float32), x.ap([[8, 1], [1, 8]], scalar_offset=i)
            ),
            "operator": lambda: i if kind == "register" else i + 1,
            "store": lambda: nisa.register_store(held(lang, 0), i) if kind == "register"
            else nisa.scalar_store(held(lang, 0), i),
        }  # fmt: skip
        uses[use]()

    if (kind, use) == ("register", "operator"):
        lang.run(kernel, ramp)  # a register has no operators
        return
    with pytest.raises(UndefinedError, match="of a loop's body is used after the loop") as raised:
        lang.run(kernel, ramp)
    assert "^" in str(raised.value)
    assert "a tensor made before the loop" in str(raised.value)


def test_a_number_that_an_inner_body_computes_ends_with_the_inner_loop():
    lang = speaker("0.7", loop_state="ignore")

    def kernel():
        def body(i):
            kept = []
            lang.nl.fori_loop(0, 2, lambda j: kept.append(i + j))
            assert isinstance(i + 1, lang.nisa.NkiScalar)
            kept[0] + 1

        lang.nl.fori_loop(0, 2, body)

    with pytest.raises(UndefinedError, match="a scalar of a loop's body is used after the loop"):
        lang.run(kernel)


def test_an_option_lets_a_scalar_be_the_condition_of_while_loop():
    lang = speaker("0.7", while_scalar="allow")

    def loop(count):
        def body(s):
            count()
            return s - 1

        lang.nl.while_loop(scalar(lang, 3), body)

    assert counted(lang, loop) == 3


def test_changes_are_errors_where_an_option_says_so(ramp):
    lang = speaker("0.7", loop_state="error")
    kept = []

    with pytest.raises(UnsupportedError, match="kept is changed"):
        lang.run(lambda: lang.nl.fori_loop(0, 2, lambda i: kept.append(1)))


def test_a_body_that_changes_tensors_alone_is_not_reported(lang, recwarn):
    parts = {"total": None}

    def kernel():
        parts["total"] = lang.nl.zeros((1, 1), lang.nl.int32)
        lang.nl.fori_loop(0, 2, lambda i: adding(lang, parts["total"]))

    lang.run(kernel)
    assert [*recwarn] == []


@pytest.mark.parametrize("loop", ["fori_loop", "while_loop"])
def test_both_cores_take_the_same_number_of_turns(lang, loop):
    def kernel(own):
        nl = lang.nl
        turns = 2 + own * nl.program_id(0)
        if loop == "fori_loop":
            nl.fori_loop(0, turns, lambda i: None)
        else:
            by_while_loop(lang, lambda: None, turns)

    lang.nki.jit(kernel)[2](0)
    with pytest.raises(LaunchError, match=rf"nl\.{loop} takes another number of turns") as raised:
        lang.nki.jit(kernel)[2](1)
    assert "2 turns, as on core 0" in str(raised.value)
    assert "3 turns on core 1" in str(raised.value)


@pytest.mark.parametrize("turns", [0, 3])
def test_loops_in_loops_see_the_variables_around_them(lang, turns):
    def loop(count):
        def outer(i):
            def inner(j):
                lang.nl.fori_loop(j, i * 2 + 1, lambda k: count() and None)

            lang.nl.fori_loop(i, 4, inner)

        lang.nl.fori_loop(0, turns, outer)

    expected = sum(len(range(j, i * 2 + 1)) for i in range(turns) for j in range(i, 4))
    assert counted(lang, loop) == expected


def test_registers_persist_from_turn_to_turn(lang):
    nl, nisa = lang.nl, lang.nisa

    def loop(count):
        limit = register(lang, 5)

        def body(i):
            nl.fori_loop(0, limit, lambda j: count() and None)
            nisa.register_move(limit, nisa.register_alloc(7))

        nl.fori_loop(0, 3, body)

    assert counted(lang, loop) == 5 + 7 + 7


@pytest.mark.parametrize("start", [0, 1, 5])
def test_while_loop_goes_on_until_the_body_returns_zero(lang, start):
    nl, nisa = lang.nl, lang.nisa

    def loop(count):
        left = nl.full((1, 1), start, nl.int32)

        def body(r):
            count()
            nisa.tensor_scalar(left, left, nl.subtract, 1.0)
            nisa.register_load(r, left)
            return r

        first = register(lang, start)
        nl.while_loop(first, body)
        assert first.value == start  # the body had a copy

    assert counted(lang, loop) == start


def test_iota_starts_where_the_variable_is_in_every_turn(lang):
    def kernel():
        out = lang.nl.ndarray((3, 4), lang.nl.int32, buffer=lang.nl.shared_hbm)

        def body(i):
            line = lang.nl.ndarray((1, 4), lang.nl.int32)
            lang.nisa.iota(line, [[1, 4]], offset=i)
            lang.nisa.dma_copy(out.ap([[4, 1], [1, 4]], scalar_offset=i), line)

        lang.nl.fori_loop(0, lang.nisa.register_alloc(3), body)
        return out

    assert lang.run(kernel).tolist() == [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5]]


@pytest.mark.parametrize("in_parts", [False, True])
def test_a_tensor_of_the_body_is_undefined_in_every_turn(lang, in_parts):
    """The second turn does not see what the first one left."""

    def kernel():
        out = lang.nl.ndarray((2, 2), lang.nl.float32, buffer=lang.nl.shared_hbm)

        def body(i):
            tile = lang.nl.ndarray((1, 2), lang.nl.float32)
            if in_parts:
                tile = tile[0:1, 0:2]
            lang.nisa.dma_copy(out.ap([[2, 1], [1, 2]], scalar_offset=i), tile)
            lang.nisa.memset(tile, 1.0)

        lang.nl.fori_loop(0, 2, body)
        return out

    with watching("memory") as report:
        assert np.isnan(lang.run(kernel)).all()
    assert {f.instruction for f in report} == {"dma_copy"}


def test_a_register_that_is_set_and_then_loaded_is_read_as_loaded_in_every_turn(lang):
    nl, nisa = lang.nl, lang.nisa

    def loop(count):
        def body(i):
            limit = register(lang, 2)
            nisa.register_move(limit, 7)
            nisa.register_load(limit, held(lang, 3))
            nl.fori_loop(0, limit, lambda j: count() and None)

        nl.fori_loop(0, 2, body)

    assert counted(lang, loop) == 3 + 3


def test_device_print_prints_in_every_turn_and_print_once(lang, capsys):
    def kernel():
        total = lang.nl.zeros((1, 1), lang.nl.int32)

        def body(i):
            print("python")
            adding(lang, total)
            lang.nl.device_print("device", total)

        lang.nl.fori_loop(0, 3, body)

    lang.run(kernel)

    printed = capsys.readouterr().out
    assert printed.count("python") == 1
    values = [line for line in printed.splitlines() if line.startswith("[[")]
    assert values == ["[[1]]", "[[2]]", "[[3]]"]


def test_memory_that_the_host_fills_is_filled_in_every_turn(lang):
    nl, nisa = lang.nl, lang.nisa

    def kernel():
        total = nl.zeros((1, 4), nl.float32)

        def body(i):
            ones = nl.ones((1, 4), nl.float32, buffer=nl.private_hbm)
            tile = lang.tile(ones)
            nisa.tensor_tensor(total, total, tile, nl.add)
            nisa.tensor_scalar(tile, tile, nl.multiply, 5.0)
            nisa.dma_copy(ones, tile)

        nl.fori_loop(0, 3, body)
        return lang.out(total)

    assert lang.run(kernel).tolist() == [[3.0] * 4]


@pytest.mark.parametrize("exchange", ["core_barrier", "sendrecv"])
def test_cores_exchange_data_in_every_turn(lang, exchange):
    """Each core adds what the other one has: 1, 2 → 3, 3 → 6, 6."""
    nl, nisa = lang.nl, lang.nisa

    def kernel():
        core = nl.program_id(0)
        mine = nl.full((1, 1), 1 + core, nl.float32)
        shared = nl.ndarray((2, 1), nl.float32, buffer=nl.shared_hbm)

        def body(i):
            other = nl.ndarray((1, 1), nl.float32)
            if exchange == "sendrecv":
                nisa.sendrecv(mine, other, 1 - core, 1 - core, 0)
            else:
                nisa.dma_copy(shared[core : core + 1], mine)
                nisa.core_barrier(shared, (0, 1))
                nisa.dma_copy(other, shared[1 - core : 2 - core])
                nisa.core_barrier(shared, (0, 1))
            nisa.tensor_tensor(mine, mine, other, nl.add)

        nl.fori_loop(0, 2, body)
        nisa.dma_copy(shared[core : core + 1], mine)
        return shared

    with watching("race", "memory") as report:
        assert lang.nki.jit(kernel)[2]().tolist() == [[6.0], [6.0]]
    assert not [*report]


# -- programs and checks --------------------------------------------------------------------------


def test_a_loop_with_known_bounds_is_a_program_with_its_numbers(lang, ramp):
    nl, nisa = lang.nl, lang.nisa

    @lang.nki.jit
    def odd_rows(x):
        out = nl.ndarray((2, 8), nl.float32, buffer=nl.shared_hbm)

        def body(i):
            row = nl.ndarray((1, 8), nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(row, x.ap([[8, 1], [1, 8]], offset=8, scalar_offset=i))
            nisa.dma_copy(out.ap([[8, 1], [1, 8]], scalar_offset=i), row)

        nl.fori_loop(0, 2, body)
        return out

    program = capture(odd_rows, ramp)
    assert not verify(program)

    assert execute_program(program, [ramp])[0].tolist() == ramp[1:3].tolist()
    assert estimate(program, mode="as_written").total_ns > 0
    assert "scalar_offset=nisa.register_alloc(1)" in emit(program, "0.7")


def test_an_error_of_a_turn_is_at_the_line_of_the_body(lang, ramp):
    def kernel(x):
        row = lang.nl.ndarray((1, 8), lang.nl.float32)

        def body(i):
            lang.nisa.dma_copy(row, x.ap([[8, 1], [1, 8]], scalar_offset=i))

        lang.nl.fori_loop(0, 5, body)

    with pytest.raises(AccessError, match="scalar_offset is 4") as raised:
        lang.run(kernel, ramp)
    place = raised.value.place
    assert place is not None
    assert place.line == kernel.__code__.co_firstlineno + 4


def test_a_tensor_of_the_body_is_not_used_after_the_loop(lang):
    kept = []

    def kernel():
        def body(i):
            kept.append(held(lang, 1))

        lang.nl.fori_loop(0, 2, body)
        return lang.out(kept[0])

    with watching("memory") as report, pytest.warns(KernelWarning, match="kept is changed"):
        assert lang.run(kernel).item() == 4  # the poison of integers, not 1
    assert [(f.code, f.instruction) for f in report] == [("body", "dma_copy")]


# -- what is rejected -----------------------------------------------------------------------------


def test_signatures(lang):
    assert " ".join(inspect.signature(lang.nl.fori_loop).parameters) == "lower upper body_fun step"
    assert " ".join(inspect.signature(lang.nl.while_loop).parameters) == "init body_fun"


def test_dynamic_range_ended_and_the_error_names_what_replaces_it(lang):
    with pytest.raises(AttributeError, match=r"nl\.fori_loop\(start, stop, body\).*up to 0\.6"):
        _ = lang.nl.dynamic_range


def test_a_register_in_while_is_a_type_error_that_names_while_loop(lang):
    def kernel():
        while register(lang, 3):
            pass

    with pytest.raises(TypeError, match=r"nl\.while_loop"):
        lang.run(kernel)


@pytest.mark.parametrize("use", [int, float, range, bool])
@pytest.mark.parametrize("kind", ["register", "scalar"])
def test_a_number_of_the_device_is_not_pythons(lang, use, kind):
    with pytest.raises(TypeError, match=f"of a {kind}"):
        lang.run(lambda: use(KINDS[kind](lang, 3)) and None)


@pytest.mark.parametrize("range_", ["affine_range", "sequential_range", "static_range"])
def test_deprecated_ranges_are_pythons(lang, range_):
    made = getattr(lang.nl, range_)
    assert made(1, 7, 2) == range(1, 7, 2)
    with pytest.raises(TypeError, match="the number of a scalar"):
        lang.run(lambda: made(scalar(lang, 3)))


def test_a_bound_of_64_bits_is_rejected(lang):
    def kernel(n):
        lang.nl.fori_loop(0, lang.nisa.scalar_load(n), lambda i: None)

    with pytest.raises(DTypeError, match="upper is a scalar of int64"):
        lang.run(kernel, np.array([[3]], np.int64))


@pytest.mark.parametrize("step", [0, -1, 1.0, True])
def test_a_step_is_a_positive_int(lang, step):
    with pytest.raises(AttributeValueError, match="step is"):
        lang.run(lambda: lang.nl.fori_loop(0, 3, lambda i: None, step))


def test_the_body_of_fori_loop_returns_nothing(lang):
    with pytest.raises(SignatureError, match=r"the body of nl\.fori_loop returns something"):
        lang.run(lambda: lang.nl.fori_loop(0, 1, lambda i: i))


def test_what_a_body_returns_is_shown_by_its_line(lang):
    def body(i):
        return lang.nisa.memset(lang.nl.ndarray((1, 1), lang.nl.float32, lang.nl.sbuf), 0.0)

    with pytest.raises(SignatureError, match=r"got: +<instruction, .*test_device_loops\.py:\d+"):
        lang.run(lambda: lang.nl.fori_loop(0, 1, body))


@pytest.mark.parametrize("body", [3, lambda: None, lambda i, j: None])
def test_a_body_is_a_function_of_one_argument(lang, body):
    said = "body_fun is not a function of one argument"
    with pytest.raises(SignatureError, match=rf"nl\.fori_loop: {said}"):
        lang.run(lambda: lang.nl.fori_loop(0, 2, body))
    with pytest.raises(SignatureError, match=rf"nl\.while_loop: {said}"):
        lang.run(lambda: lang.nl.while_loop(lang.nisa.register_alloc(1), body))


def test_while_loop_takes_registers_only(lang):
    with pytest.raises(SignatureError, match=r"init gives nl\.while_loop a NkiScalar"):
        lang.run(lambda: lang.nl.while_loop(scalar(lang, 1), lambda r: r))
    with pytest.raises(SignatureError, match=r"body_fun gives nl\.while_loop a NoneType"):
        lang.run(lambda: lang.nl.while_loop(register(lang, 1), lambda r: None))


def test_loops_that_do_not_end_are_named():
    lang = speaker("0.7", dynamic_turns=4)

    with pytest.raises(EndlessLoopError, match="has not ended after 4 turns"):
        lang.run(lambda: lang.nl.while_loop(lang.nisa.register_alloc(1), lambda r: r))
    with pytest.raises(EndlessLoopError, match="has not ended after 4 turns"):
        lang.run(lambda: lang.nl.fori_loop(0, 5, lambda i: None))


def test_a_loop_variable_that_is_written_is_a_warning_and_the_loop_goes_on(lang):
    def loop(count):
        def body(i):
            count()
            lang.nisa.register_move(i, 100)

        lang.nl.fori_loop(0, register(lang, 3), body)

    with pytest.warns(KernelWarning, match=r"the variable of nl\.fori_loop is written"):
        assert counted(lang, loop) == 3


def test_names_of_instructions_are_unique_in_a_body(lang):
    def kernel(number):
        def body(i):
            for turn in range(2):
                lang.nisa.memset(tile, 0.0, name=f"clear{turn if number else ''}")

        tile = lang.nl.ndarray((1, 1), lang.nl.float32)
        lang.nl.fori_loop(0, 2, body)
        lang.nl.fori_loop(0, 2, body)

    lang.run(lambda: kernel(True))
    with pytest.raises(AttributeValueError, match="two instructions of a loop's body are called"):
        lang.run(lambda: kernel(False))


@pytest.mark.parametrize(("place", "accumulate", "total"), [
    ("outside", None, None), ("outside", False, 2.0), ("inside", None, 2.0),
])  # fmt: skip
def test_whether_a_matmul_starts_a_group_is_decided_once(lang, place, accumulate, total):
    nl, nisa = lang.nl, lang.nisa

    def kernel():
        two, one = nl.full((1, 1), 2.0, nl.float32), nl.full((1, 1), 1.0, nl.float32)
        result = nl.zeros((1, 1), nl.float32)
        outside = nl.ndarray((1, 1), nl.float32, buffer=nl.psum)

        def body(i):
            inside = nl.ndarray((1, 1), nl.float32, buffer=nl.psum)
            dst = inside if place == "inside" else outside
            nisa.nc_matmul(dst, two, one, accumulate=accumulate)
            nisa.tensor_copy(result, dst)

        nl.fori_loop(0, 3, body)
        return lang.out(result)

    if total is not None:
        assert lang.run(kernel).item() == total
        return
    with pytest.raises(UndefinedError, match="into a tensor made outside of it"):
        lang.run(kernel)
    loose = speaker("0.7", psum_across_turns="run")
    assert loose.run(kernel).item() == 6.0


def test_no_device_loop_inside_no_reorder(lang):
    def kernel():
        with lang.nl.no_reorder():
            lang.nl.fori_loop(0, 2, lambda i: None)

    with pytest.raises(UnsupportedError, match=r"nl\.fori_loop inside nl\.no_reorder"):
        lang.run(kernel)
