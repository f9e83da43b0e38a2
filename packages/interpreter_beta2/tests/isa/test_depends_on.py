"""NkiInstruction.depends_on of 0.6: which edges a kernel may add, and who cannot play them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from packages.interpreter_beta2.tests.device_loops import LOOPS, by_fori_loop, every_loop

from neuroncore.checks import watching
from neuroncore.errors import AttributeValueError, KernelError, LaunchError, UnsupportedError
from neuroncore.machine.observe import watched_by
from neuroncore.program import Recorder, capture
from neuroncore.timeline import estimate
from nki_beta2 import BACKEND

X = np.ones((4, 8), np.float32)
IN_A_LOOP = "an edge out of a turn of"


def new(lang):
    return lang.nl.ndarray((4, 8), lang.nl.float32, buffer=lang.nl.sbuf)


def filled(lang, number=1.0):
    """The handle of an instruction."""
    return lang.nisa.memset(new(lang), number)


# -- legal edges ----------------------------------------------------------------------------------


def test_every_call_has_a_handle_of_its_own_and_edges_chain(now):
    def kernel():
        a, b, c = filled(now), filled(now), filled(now)
        assert len({id(a), id(b), id(c)}) == 3
        assert c.depends_on(a, b) is c
        assert c.depends_on(b).depends_on(a).depends_on() is c

    now.run(kernel)


def test_functions_without_a_record_give_handles_too(now):
    def kernel(x):
        register = now.nisa.register_alloc(1)
        moved = now.nisa.register_move(register, now.nisa.register_alloc(2))
        counted = now.nisa.iota(now.nl.ndarray((1, 3), now.nl.int32, buffer=now.nl.sbuf), [[1, 3]])
        assert counted.depends_on(moved) is counted

    now.run(kernel, X)


def test_loops_that_unroll_do_not_count(now):
    def kernel():
        before = filled(now)
        for _ in range(3):
            before = filled(now).depends_on(before)
        filled(now).depends_on(before)

    now.run(kernel)


@every_loop
def test_a_producer_may_be_in_a_scope_around_its_consumer(now, loop):
    seen = []

    def kernel():
        outside = filled(now)

        def body():
            around = filled(now).depends_on(outside)
            by_fori_loop(now, lambda: seen.append(filled(now).depends_on(around, outside)))

        LOOPS[loop](now, body)

    now.run(kernel)
    assert len(seen) == 4


# -- edges that a device would wait for without end -----------------------------------------------


@every_loop
def test_no_edge_leaves_a_loop(now, loop):
    def kernel():
        made = []
        LOOPS[loop](now, lambda: made.append(filled(now)))
        filled(now).depends_on(made[0])

    with pytest.raises(AttributeValueError, match=f"{IN_A_LOOP} {loop}"):
        now.run(kernel)


@every_loop
def test_no_edge_goes_from_one_turn_into_the_next(now, loop):
    def kernel():
        made = []

        def body():
            handle = filled(now)
            made.append(handle.depends_on(*made[-1:]))

        LOOPS[loop](now, body)

    with pytest.raises(AttributeValueError, match=f"{IN_A_LOOP} {loop}"):
        now.run(kernel)


@every_loop
def test_no_edge_goes_from_one_loop_into_another(now, loop):
    def kernel():
        made = []
        LOOPS[loop](now, lambda: made.append(filled(now)), 1)
        by_fori_loop(now, lambda: filled(now).depends_on(made[0]), 1)

    with pytest.raises(AttributeValueError, match=f"{IN_A_LOOP} {loop}"):
        now.run(kernel)


def test_no_edge_goes_to_an_outer_loop_from_an_inner_one(now):
    def kernel():
        def body():
            made = []
            by_fori_loop(now, lambda: made.append(filled(now)), 1)
            filled(now).depends_on(made[0])

        by_fori_loop(now, body, 1)

    with pytest.raises(AttributeValueError, match=IN_A_LOOP):
        now.run(kernel)


def test_an_instruction_does_not_wait_for_itself(now):
    def kernel():
        handle = filled(now)
        handle.depends_on(handle)

    with pytest.raises(AttributeValueError, match="an instruction waits for itself"):
        now.run(kernel)


def test_an_instruction_does_not_wait_for_one_that_comes_after_it(complaint):
    text = complaint(
        "def kernel(x):\n"
        "    t = nl.ndarray((4, 8), nl.float32, buffer=nl.sbuf)\n"
        "    first = nisa.memset(t, 1.0)\n"
        "    second = nisa.memset(t, 2.0)\n"
        "    first.depends_on(second)\n"
        "nki.jit(kernel)(x)\n",
        x=X,
    )

    assert text == (
        "kernel.py:5:5: depends_on: an instruction waits for one that comes after it\n"
        "    first.depends_on(second)\n"
        "    ^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "    expected: producers that come before their consumer\n"
        "    got:      consumer kernel.py:3:13, producer kernel.py:4:14\n"
        "    call depends_on of the one that comes after\n"
        "    [NKI 0.6: NkiInstruction.depends_on]"
    )


@pytest.mark.parametrize(
    "call",
    ["nisa.iota(numbers, [[1, 8]])", "nisa.register_move(register, other)",
     "nisa.dma_compute(sums, [t, t], nl.add)", "nisa.tensor_copy(dst=t, src=t)",
     "nisa.register_store(one, register)"],
    ids=lambda call: call.partition("(")[0],
)  # fmt: skip
def test_a_handle_knows_the_line_of_its_call(complaint, call):
    """Any functions of ours may be between the kernel and the instruction."""
    text = complaint(
        "def kernel(x):\n"
        "    register, other = nisa.register_alloc(1), nisa.register_alloc(2)\n"
        "    numbers = nl.ndarray((4, 8), nl.int32, buffer=nl.sbuf)\n"
        "    one = nl.ndarray((1, 1), nl.int32, buffer=nl.sbuf)\n"
        "    t, sums = (nl.ndarray((4, 8), nl.float32, buffer=nl.sbuf) for _ in range(2))\n"
        "    nisa.memset(t, 1.0)\n"
        f"    made = {call}\n"
        "    made.depends_on(made)\n"
        "nki.jit(kernel)(x)\n",
        x=X,
    )

    assert "consumer kernel.py:7:12, producer kernel.py:7:12" in text


def test_handles_are_of_the_program_that_runs(now):
    kept = []

    def kernel():
        kept.append(filled(now))
        kept[-1].depends_on(*kept[:-1])

    now.run(kernel)
    with pytest.raises(LaunchError, match="an instruction of another program"):
        now.run(kernel)
    with pytest.raises(LaunchError, match="an instruction of another program"):
        kept[0].depends_on(kept[0])


def test_programs_of_one_launch_do_not_wait_for_each_other(now):
    kept = []

    def kernel():
        kept.append(filled(now))
        kept[-1].depends_on(*kept[:-1])

    with pytest.raises(LaunchError, match="an instruction of another program"):
        now.nki.jit(kernel)[2]()


@pytest.mark.parametrize("wrong", [None, 3, "first", []], ids=repr)
def test_a_producer_is_a_handle(now, wrong):
    with pytest.raises(KernelError, match=r"depends_on takes what nki\.isa calls return"):
        now.run(lambda: filled(now).depends_on(wrong))


# -- without edges ---------------------------------------------------------------------------------


def edged(lang):
    def kernel(x):
        tile, other = lang.tile(x), new(lang)
        first = lang.nisa.memset(other, 1.0, engine=lang.nisa.vector_engine)
        second = lang.nisa.memset(tile, 2.0, engine=lang.nisa.gpsimd_engine)
        second.depends_on(first)
        return lang.out(tile)

    return lang.nki.jit(kernel)


def test_values_follow_an_edge_because_they_follow_the_program(now):
    assert np.array_equal(edged(now)(X), np.full_like(X, 2))


def test_a_program_rejects_an_edge(now):
    with pytest.raises(UnsupportedError, match="with_schedule, which no program says") as caught:
        capture(edged(now), X)

    assert re.search(r"got: +it waits for .*test_depends_on\.py:\d+:\d+", str(caught.value))
    assert "leave it out" in str(caught.value)


def test_an_edge_takes_no_time(now):
    kernel = edged(now)
    with watched_by(recorder := Recorder(kernel, for_time=True)):
        kernel(X)

    found = [bar.instruction for bar in estimate(recorder.program(), mode="as_written").bars]

    assert found.count("memset") == 2


def test_an_edge_to_no_instruction_has_no_effect(now):
    def kernel(x):
        tile = now.tile(x)
        now.nisa.memset(tile, 2.0).depends_on()
        return now.out(tile)

    assert capture(now.nki.jit(kernel), X) is not None


@pytest.mark.parametrize("order", ["dependences", "tiles"])
def test_the_race_check_says_where_it_cannot_follow_an_edge(speak, order):
    lang = speak("0.6", dma_order=order)

    with watching("race") as report:
        if order == "tiles":
            with pytest.raises(UnsupportedError, match="dma_order='tiles' cannot say"):
                edged(lang)(X)
        else:
            edged(lang)(X)
    assert not list(report)


@pytest.mark.parametrize("version", BACKEND.versions[:4])
def test_earlier_versions_return_nothing(speak, version):
    lang = speak(version)

    assert lang.inside(lambda: filled(lang)) is None
