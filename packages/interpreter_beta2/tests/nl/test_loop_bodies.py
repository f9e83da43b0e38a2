"""What a loop on the device makes ends with it: the check `memory` says who uses it afterwards."""

from __future__ import annotations

import numpy as np
import pytest
from packages.interpreter_beta2.tests.conftest import speaker
from packages.interpreter_beta2.tests.device_loops import LOOPS, every_loop

from neuroncore.checks import watching
from neuroncore.errors import UnsupportedError
from nki_beta2 import BACKEND

X = np.ones((4, 8), np.float32)
BEFORE_0_6 = BACKEND.versions[:4]


def made(lang, buffer=None):
    """A new tensor full of twos."""
    tile = lang.nl.ndarray((4, 8), lang.nl.float32, buffer=buffer or lang.nl.sbuf)
    if tile.buffer.on_chip:
        lang.nisa.memset(tile, 2.0)
    else:
        lang.nisa.dma_copy(tile, lang.nl.full((4, 8), 2.0, lang.nl.float32))
    return tile


def findings(kernel, *arrays, cores=None):
    """What `memory` finds in a run, as (code, severity, instruction, operand)."""
    with watching("memory") as report:
        (kernel if cores is None else kernel[cores])(*arrays)
    return [(f.code, f.severity, f.instruction, f.operand) for f in report]


def read_after(lang, loop, change=lambda tile: tile):
    """A kernel that reads, after a loop, what `change` makes of the tile made in its last turn."""
    kept = []

    @lang.nki.jit
    def kernel(x):
        LOOPS[loop](lang, lambda: kept.append(change(made(lang))))
        return lang.out(kept.pop())

    return kernel


# -- what has ended -------------------------------------------------------------------------------


@every_loop
def test_a_tensor_of_the_body_is_not_read_after_the_loop(now, loop):
    assert findings(read_after(now, loop), X) == [("body", "error", "dma_copy", "src")]


@every_loop
@pytest.mark.parametrize("change", [
    lambda t: t[0:2], lambda t: t.reshape((4, 2, 4)), lambda t: t.ap([[8, 4], [1, 4]]),
], ids=["slice", "reshape", "pattern"])  # fmt: skip
def test_nor_is_a_view_of_it(now, loop, change):
    assert findings(read_after(now, loop, change), X) == [("body", "error", "dma_copy", "src")]


@every_loop
def test_nor_is_it_written(now, loop):
    kept = []

    @now.nki.jit
    def kernel(x):
        LOOPS[loop](now, lambda: kept.append(made(now)))
        now.nisa.memset(kept[-1], 0.0)

    assert findings(kernel, X) == [("body", "error", "memset", "dst")]


@every_loop
def test_nor_does_the_next_turn_have_it(now, loop):
    kept = []

    @now.nki.jit
    def kernel(x):
        def body():
            kept.append(made(now))
            now.nisa.tensor_copy(made(now), kept[0])

        LOOPS[loop](now, body)

    assert findings(kernel, X) == [("body", "error", "tensor_copy", "src")]


@every_loop
def test_nor_is_it_an_index(now, loop):
    kept, nl, nisa = [], now.nl, now.nisa

    @now.nki.jit
    def kernel(x):
        LOOPS[loop](now, lambda: kept.append(nl.full((4, 1), 1, nl.int32)))
        rows = nl.ndarray((4, 8), nl.float32)
        nisa.dma_copy(rows, x.ap([[8, 4], [1, 8]], vector_offset=kept[-1]))

    assert findings(kernel, X) == [("body", "error", "dma_copy", "src.index")]


@every_loop
def test_nor_is_it_printed(now, loop, capsys):
    kept = []

    @now.nki.jit
    def kernel(x):
        LOOPS[loop](now, lambda: (kept.append(made(now)), now.nl.device_print("in", kept[-1])))
        now.nl.device_print("after", kept[-1])

    assert findings(kernel, X) == [("body", "error", None, None)]
    assert capsys.readouterr().out.count("in <") == 2


@every_loop
@pytest.mark.parametrize("lnc", [1, 2])
def test_nor_is_it_a_result(now, loop, lnc):
    @now.nki.jit
    def kernel(x):
        kept = []
        LOOPS[loop](now, lambda: kept.append(made(now, now.nl.shared_hbm)))
        return kept[0], kept[1]

    assert findings(kernel, X, cores=lnc) == [("body", "error", None, None)]


@every_loop
@pytest.mark.parametrize("core", [0, 1])
def test_nor_does_either_core_have_the_shared_tensor_of_a_body(now, loop, core):
    @now.nki.jit
    def kernel(x):
        kept = []
        LOOPS[loop](now, lambda: kept.append(made(now, now.nl.shared_hbm)))
        if now.nl.program_id(0) == core:
            now.nisa.dma_copy(made(now), kept[0])

    assert findings(kernel, X, cores=2) == [("body", "error", "dma_copy", "src")]


def test_the_finding_names_the_tensor_and_the_loop(now):
    nl, nisa = now.nl, now.nisa

    @now.nki.jit
    def kernel(x):
        for _ in nl.dynamic_range(2):
            tile = nl.ndarray((4, 8), nl.float32)
            nisa.memset(tile, 1.0)
        return now.out(tile)

    with watching("memory") as report:
        kernel(X)

    (found,) = report
    first = kernel.function.__code__.co_firstlineno
    assert found.message == (
        "src was made in the body of nl.dynamic_range, in a turn that has ended"
    )
    assert found.got == "tile: (4, 8), float32, SBUF"
    assert [note.rsplit(":", 2)[1] for note in found.notes] == [str(first + 3), str(first + 2)]


@pytest.mark.parametrize("version", BEFORE_0_6)
def test_before_0_6_no_document_says_so_and_it_is_a_warning(speak, version):
    kernel = read_after(speak(version), "nl.dynamic_range")

    assert findings(kernel, X) == [("body", "warning", "dma_copy", "src")]


# -- what lives on --------------------------------------------------------------------------------


@every_loop
def test_a_tensor_of_before_the_loop_is_written_in_it_and_read_after_it(now, loop):
    @now.nki.jit
    def kernel(x):
        total = now.nl.zeros((4, 8), now.nl.float32)
        LOOPS[loop](now, lambda: now.nisa.tensor_tensor(total, total, made(now), now.nl.add))
        return now.out(total)

    assert findings(kernel, X) == []
    assert (kernel(X) == 4).all()


@every_loop
def test_the_body_and_loops_in_it_use_what_it_makes(now, loop):
    @now.nki.jit
    def kernel(x):
        def body():
            tile = made(now)
            for _ in range(2):
                now.nisa.memset(tile, 1.0)
            LOOPS[loop](now, lambda: now.nisa.memset(tile, 2.0))
            now.nisa.tensor_copy(made(now), tile)

        LOOPS[loop](now, body)

    assert findings(kernel, X) == []


@every_loop
def test_what_is_made_after_a_loop_that_failed_or_was_left_lives(now, loop):
    class StopError(Exception):
        pass

    @now.nki.jit
    def kernel(x):
        def body():
            made(now)
            raise StopError

        with pytest.raises(StopError):
            LOOPS[loop](now, body)
        for _ in now.nl.dynamic_range(3):
            break
        tile = made(now)
        LOOPS[loop](now, lambda: None)
        return now.out(tile)

    assert findings(kernel, X) == []


@every_loop
def test_both_cores_use_the_shared_tensor_of_a_body_while_it_is_open(now, loop):
    @now.nki.jit
    def kernel(x):
        def body():
            shared = made(now, now.nl.shared_hbm)
            now.nisa.dma_copy(made(now), shared)

        LOOPS[loop](now, body)

    assert findings(kernel, X, cores=2) == []


# -- loops in loops -------------------------------------------------------------------------------


def nest(lang):
    def helper(total):
        for _ in lang.nl.dynamic_range(3):
            lang.nisa.tensor_scalar(total, total, lang.nl.add, 1.0)

    def kernel():
        total = lang.nl.zeros((1, 1), lang.nl.int32)
        for _ in lang.nl.dynamic_range(2):
            helper(total)
        return lang.out(total)

    return kernel


@pytest.mark.parametrize("version", BEFORE_0_6)
def test_before_0_6_dynamic_loops_do_not_nest(speak, version):
    lang = speak(version)

    with pytest.raises(UnsupportedError, match=r"dynamic_range in the body of another one") as seen:
        lang.run(nest(lang))
    assert "in lang.nl.dynamic_range(3)" in str(seen.value)


def test_from_0_6_on_they_nest(now):
    assert now.run(nest(now)).item() == 6


@pytest.mark.parametrize("version", BEFORE_0_6)
def test_one_after_the_other_is_no_nesting(speak, version):
    lang = speak(version)

    def kernel():
        total = lang.nl.zeros((1, 1), lang.nl.int32)
        for _ in range(2):
            for _ in lang.nl.dynamic_range(3):
                lang.nisa.tensor_scalar(total, total, lang.nl.add, 1.0)
        return lang.out(total)

    assert lang.run(kernel).item() == 6


def test_a_loop_of_no_turns_ends_what_its_body_and_inner_loops_make():
    lang, kept = speaker("0.7", loop_state="ignore"), []

    def inner(j):
        kept.append(made(lang))

    def outer(i):
        kept.append(made(lang))
        lang.nl.fori_loop(0, 2, inner)

    for number in (0, 1):

        @lang.nki.jit
        def kernel(x, number=number):
            lang.nl.fori_loop(0, 0, outer)
            return lang.out(kept[number])

        kept.clear()
        ended, unwritten = findings(kernel, X)
        assert ended == ("body", "error", "dma_copy", "src")
        assert unwritten[2:] == ("dma_copy", "src")
