"""nisa.sendrecv: two cores that wait for each other."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from neuroncore.errors import KernelError, LaunchError, UnsupportedError
from neuroncore.machine.observe import Watcher, watched_by
from neuroncore.program import capture


def swap(lang, send=lambda x, me: x, pipe=0):
    """A kernel whose output k is what core k received."""

    def kernel(x):
        me = lang.nl.program_id(0)
        mine = lang.tile(send(x[4 * me : 4 * me + 4], me))
        theirs = lang.nl.ndarray(mine.shape, mine.dtype, buffer=lang.nl.sbuf)
        lang.nisa.sendrecv(mine, theirs, 1 - me, 1 - me, pipe)
        out = lang.nl.ndarray((8, *mine.shape[1:]), mine.dtype, buffer=lang.nl.shared_hbm)
        lang.nisa.dma_copy(out[4 * me : 4 * me + 4], theirs)
        return out

    return lang.nki.jit(kernel)[2]


@pytest.fixture
def halves():
    return np.arange(64, dtype=np.float32).reshape(8, 8)


def test_each_core_receives_what_the_other_sends(every, halves):
    received = swap(every)(halves)

    assert np.array_equal(received, np.concatenate([halves[4:], halves[:4]]))


def test_every_turn_of_a_device_loop_keeps_what_it_receives(speak, halves):
    lang = speak("0.7")
    nl, nisa = lang.nl, lang.nisa

    def kernel(x):
        me = nl.program_id(0)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)

        def body(turn):
            mine, theirs, total = (nl.ndarray((4, 8), x.dtype, buffer=nl.sbuf) for _ in range(3))
            nisa.dma_copy(mine[0:4, 0:8], x[4 * me : 4 * me + 4])
            nisa.sendrecv(mine[0:4, 0:8], theirs[0:4, 0:8], 1 - me, 1 - me, 0)
            nisa.tensor_tensor(total[0:4, 0:8], mine[0:4, 0:8], theirs[0:4, 0:8], nl.add)
            nisa.dma_copy(out[4 * me : 4 * me + 4], total)

        nl.fori_loop(0, 3, body)
        return out

    assert np.array_equal(lang.nki.jit(kernel)[2](halves), np.tile(halves[:4] + halves[4:], (2, 1)))


def test_cores_meet_as_often_as_they_like(now, halves):
    def kernel(x):
        nl, nisa = now.nl, now.nisa
        me = nl.program_id(0)
        total = now.tile(x[4 * me : 4 * me + 4])
        theirs = nl.ndarray(total.shape, total.dtype, buffer=nl.sbuf)
        for _ in range(3):
            nisa.sendrecv(total, theirs, 1 - me, 1 - me, 0)
            nisa.tensor_tensor(total, total, theirs, nl.add)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out[4 * me : 4 * me + 4], total)
        return out

    summed = now.nki.jit(kernel)[2](halves)

    both = 4 * (halves[:4] + halves[4:])
    assert np.array_equal(summed, np.concatenate([both, both]))


def test_what_is_sent_is_what_the_tile_holds_then(now, halves):
    def kernel(x):
        nl, nisa = now.nl, now.nisa
        me = nl.program_id(0)
        mine = now.tile(x[4 * me : 4 * me + 4])
        theirs = nl.ndarray(mine.shape, mine.dtype, buffer=nl.sbuf)
        nisa.sendrecv(mine, theirs, 1 - me, 1 - me, 0)
        nisa.memset(mine, -1.0)
        out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out[4 * me : 4 * me + 4], theirs)
        return out

    received = now.nki.jit(kernel)[2](halves)

    assert np.array_equal(received, np.concatenate([halves[4:], halves[:4]]))


def test_accumulator_registers_are_each_cores_own(now):
    def kernel(x):
        nl, nisa = now.nl, now.nisa
        me = nl.program_id(0)
        tile, res = now.tile(x), nl.ndarray((4, 1), x.dtype, buffer=nl.sbuf)
        other = nl.ndarray(tile.shape, x.dtype, buffer=nl.sbuf)
        command = nisa.reduce_cmd
        nisa.activation(other, nl.copy, tile, scale=me + 1.0, reduce_op=nl.add,
                        reduce_cmd=command.reset_reduce)  # fmt: skip
        nisa.sendrecv(tile, other, 1 - me, 1 - me, 0)
        nisa.activation(other, nl.copy, tile, scale=me + 1.0, reduce_op=nl.add, reduce_res=res,
                        reduce_cmd=command.reduce)  # fmt: skip
        out = nl.ndarray((8, 1), x.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(out[4 * me : 4 * me + 4], res)
        return out

    sums = now.nki.jit(kernel)[2](np.ones((4, 8), np.float32))

    assert sums[:, 0].tolist() == [16.0] * 4 + [32.0] * 4


def test_one_core_has_no_partner_to_exchange_with(now, halves):
    with pytest.raises(LaunchError, match=r"nisa.sendrecv waits for another core, and there is"):
        now.nki.jit(swap(now).function)(halves)


def alone(lang, x, me_too=lambda me: True, pipe=lambda me: 0):
    def kernel(x):
        me = lang.nl.program_id(0)
        mine = lang.tile(x)
        if me_too(me):
            lang.nisa.sendrecv(mine, mine, 1 - me, 1 - me, pipe(me))

    lang.nki.jit(kernel)[2](x)


@pytest.mark.parametrize("calls", [0, 1])
def test_a_core_that_the_other_leaves_alone_says_so(now, ramp, calls):
    with pytest.raises(LaunchError, match=f"core {1 - calls}, which never gets there") as caught:
        alone(now, ramp, me_too=lambda me: me == calls)

    assert f"core {1 - calls} has ended" in str(caught.value)


def test_cores_that_wait_at_different_pipes_say_so(now, ramp):
    with pytest.raises(LaunchError, match="core 0 waits at 'left'"):
        alone(now, ramp, pipe=lambda me: ("left", "right")[me])


@pytest.mark.parametrize("fails", [0, 1])
def test_what_one_core_raises_ends_the_launch(now, ramp, fails):
    def kernel(x):
        me = now.nl.program_id(0)
        mine = now.tile(x)
        now.nisa.sendrecv(mine, mine, 1 - me, 1 - me, 0)
        if me == fails:
            raise ZeroDivisionError
        now.nisa.sendrecv(mine, mine, 1 - me, 1 - me, 0)

    before = threading.active_count()
    with pytest.raises(ZeroDivisionError):
        now.nki.jit(kernel)[2](ramp)

    assert threading.active_count() == before
    assert np.array_equal(now.run(lambda x: now.out(now.tile(x)), ramp), ramp)


MISTAKES = [
    ("nisa.sendrecv(x, x, 1 - me, 1 - me, 0)", "src is in HBM"),
    ("nisa.sendrecv(5, t, 1 - me, 1 - me, 0)", "src cannot be a int"),
    ("nisa.sendrecv(t, t[:2], 1 - me, 1 - me, 0)", "src and dst differ in shape"),
    ("nisa.sendrecv(t, half, 1 - me, 1 - me, 0)", "src and dst differ in dtype"),
    ("nisa.sendrecv(t, t, me, 1 - me, 0)", "send_to_rank=0 on core 0"),
    ("nisa.sendrecv(t, t, 1 - me, 2, 0)", "recv_from_rank=2 on core 0"),
    ("nisa.sendrecv(t, t, 1 - me, 1 - me, 0, 5)", "dma_engine=5 is not one of its values"),
    ("nisa.sendrecv(wide, wide, 1 - me, 1 - me, 0, gpsimd)", "1028 bytes per partition"),
    ("nisa.sendrecv(t[:2 + 2 * me], t[:2 + 2 * me], 1 - me, 1 - me, 0)", "another shape or dtype"),
]


@pytest.mark.parametrize(("call", "wrong"), MISTAKES)
def test_mistakes_are_told_at_the_call(complaint, call, wrong):
    source = f"""\
@nki.jit
def kernel(x):
    me, gpsimd = nl.program_id(0), nisa.dma_engine.gpsimd_dma
    t = nl.zeros((4, 4), nl.float32, buffer=nl.sbuf)
    half = nl.zeros((4, 4), nl.float16, buffer=nl.sbuf)
    wide = nl.zeros((4, 257), nl.float32, buffer=nl.sbuf)
    {call}

kernel[2](x)
"""
    text = complaint(source, x=np.zeros((4, 4), np.float32))

    assert text.startswith("kernel.py:7:5: sendrecv: ")
    assert wrong in text.splitlines()[0]


def test_the_bytes_that_gpsimd_moves_may_fill_its_limit(now):
    def kernel():
        me = now.nl.program_id(0)
        t = now.nl.zeros((4, 256), now.nl.float32, buffer=now.nl.sbuf)
        now.nisa.sendrecv(t, t, 1 - me, 1 - me, 0, now.nisa.dma_engine.gpsimd_dma)

    now.nki.jit(kernel)[2]()


@pytest.mark.parametrize("rows", [16, 17])
def test_gpsimd_moved_sixteenths_of_the_partitions_in_0_3(speak, rows):
    lang = speak("0.3")

    def kernel():
        me = lang.nl.program_id(0)
        t = lang.nl.zeros((rows, 4), lang.nl.float32, buffer=lang.nl.sbuf)
        lang.nisa.sendrecv(t, t, 1 - me, 1 - me, 0, lang.nisa.dma_engine.gpsimd_dma)

    if rows == 16:
        lang.nki.jit(kernel)[2]()
    else:
        with pytest.raises(KernelError, match="17 partitions by GpSimd"):
            lang.nki.jit(kernel)[2]()


def test_trn1_has_no_exchange(speak, halves):
    with pytest.raises(KernelError, match=r"trn1 has no nisa\.sendrecv"):
        swap(speak("0.6", "trn1"))(halves)


def test_watchers_learn_who_received_what(now, halves):
    class Ears(Watcher):
        def __init__(self):
            self.heard = []

        def received(self, dst, src):
            self.heard.append((dst.array.copy(), src.shape))

    ears = Ears()
    with watched_by(ears):
        swap(now)(halves)

    assert sorted(dst[0, 0] for dst, _ in ears.heard) == [0.0, 32.0]
    assert [shape for _, shape in ears.heard] == [(4, 8)] * 2


def test_a_program_is_not_made_of_cores_that_exchange_data(now, halves):
    with pytest.raises(UnsupportedError, match="a program is what one core does"):
        capture(swap(now), halves)
