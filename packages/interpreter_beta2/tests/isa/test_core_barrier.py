"""nisa.core_barrier: what one core writes before it, the other reads after it."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.checks import Report
from neuroncore.checks.race import Race
from neuroncore.errors import KernelError, LaunchError
from neuroncore.machine.observe import watched_by
from neuroncore.program import capture


def exchange(lang, barrier=True):
    """A kernel that writes its half of a shared tensor and reads the other core's."""

    def kernel(x):
        nl, nisa = lang.nl, lang.nisa
        me = nl.program_id(0)
        other = 1 - me
        shared = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(shared[4 * me : 4 * me + 4], x[4 * me : 4 * me + 4])
        if barrier:
            nisa.core_barrier(shared, (0, 1))
        theirs = lang.tile(shared[4 * other : 4 * other + 4])
        nisa.dma_copy(out[4 * me : 4 * me + 4], theirs)
        return out

    return lang.nki.jit(kernel)[2]


@pytest.fixture
def halves():
    return np.arange(64, dtype=np.float32).reshape(8, 8)


def test_a_core_reads_what_the_other_has_written_before_the_barrier(every, halves):
    assert np.array_equal(exchange(every)(halves), np.concatenate([halves[4:], halves[:4]]))


@pytest.mark.parametrize("barrier", [True, False])
def test_accesses_that_a_barrier_orders_do_not_race(now, halves, barrier):
    report = Report()

    with watched_by(Race(report)):
        exchange(now, barrier)(halves)

    assert bool(report.findings) is not barrier


@pytest.mark.parametrize("cores", [0, (0,), [0]])
def test_a_core_alone_waits_for_nothing(now, halves, cores):
    def kernel(x):
        now.nisa.core_barrier(x, cores)
        return now.out(now.tile(x))

    assert np.array_equal(now.run(kernel, halves), halves)


def test_a_barrier_of_both_cores_needs_two(now, halves):
    with pytest.raises(LaunchError, match="waits for another core, and there is none"):
        now.run(lambda x: now.nisa.core_barrier(x, (0, 1)), halves)


def test_a_barrier_on_one_core_only_says_so(now, halves):
    def kernel(x):
        if now.nl.program_id(0) == 0:
            now.nisa.core_barrier(x, (0, 1))
        return now.nl.ndarray(x.shape, x.dtype, buffer=now.nl.shared_hbm)

    with pytest.raises(LaunchError, match="core 1, which never gets there"):
        now.nki.jit(kernel)[2](halves)


def test_both_cores_wait_with_the_same_tensor(now, halves):
    def kernel(x, y):
        now.nisa.core_barrier(x if now.nl.program_id(0) else y, (0, 1))

    with pytest.raises(KernelError, match="barriers of two tensors"):
        now.nki.jit(kernel)[2](halves, halves + 1)


@pytest.mark.parametrize("mixed", [False, True])
def test_of_another_memory_each_core_has_its_own_tensor(now, halves, mixed):
    def kernel(x):
        out = now.nl.ndarray((2, 4), dtype=now.nl.float32, buffer=now.nl.shared_hbm)
        tile = now.nl.zeros((1, 4), now.nl.float32, buffer=now.nl.sbuf)
        me = now.nl.program_id(0)
        now.nisa.dma_copy(dst=out[me : me + 1, :], src=tile)
        now.nisa.core_barrier(out if mixed and me else tile, (0, 1))
        return out

    if mixed:
        with pytest.raises(KernelError, match="barriers of two tensors"):
            now.nki.jit(kernel)[2](halves)
    else:
        assert (now.nki.jit(kernel)[2](halves) == 0).all()


@pytest.mark.parametrize(
    ("call", "what"),
    [
        ("nisa.core_barrier(x, (1, 2))", r"cores=(1, 2) on core 0"),
        ("nisa.core_barrier(3, (0,))", "data cannot be a int"),
        ("nisa.core_barrier(x, (0,), engine=3)", "engine=3 is not one of its values"),
    ],
)
def test_mistakes_are_told_at_the_call(complaint, call, what):
    source = f"""\
@nki.jit
def kernel(x):
    {call}

kernel(x)
"""
    text = complaint(source, x=np.zeros((4, 4), np.float32))

    assert text.startswith(f"kernel.py:3:5: core_barrier: {what}")


def test_a_program_says_what_one_core_does(now, halves):
    with pytest.raises(KernelError, match="cores wait for each other"):
        capture(exchange(now), halves)
