"""print(), f-strings and breakpoint() inside kernels."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from neuroncore.errors import KernelError

X = np.array([[0.5, 1.5], [2.0, -3.0]], np.float32)


def shown(lang, make):
    """What print() shows of the tensor that `make` gives for a tile of X."""
    return lang.run(lambda x: str(make(lang.tile(x))), X)


def test_a_printed_tensor_is_shape_dtype_memory_and_values(every):
    assert shown(every, lambda t: t) == "<(2, 2), float32, SBUF>\n[[ 0.5  1.5]\n [ 2.  -3. ]]"


def test_print_writes_it(every, capsys):
    every.run(lambda x: print(every.tile(x)[:, 0:1], f"{x}"), X)

    assert capsys.readouterr().out == (
        "<(2, 1), float32, SBUF>\n[[0.5]\n [2. ]] <(2, 2), float32, HBM>\n"
        "[[ 0.5  1.5]\n [ 2.  -3. ]]\n"
    )


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2", "float16"])
def test_narrow_floats_print_as_numbers(every, dtype):
    def kernel(x):
        narrow = every.nl.ndarray(x.shape, dtype=getattr(every.nl, dtype), buffer=every.nl.sbuf)
        every.nisa.tensor_copy(dst=narrow, src=every.tile(x))
        return str(narrow)

    assert every.run(kernel, X) == f"<(2, 2), {dtype}, SBUF>\n[[ 0.5  1.5]\n [ 2.  -3. ]]"


def test_memory_that_nothing_has_written_says_so(every):
    nl = every.nl

    text = every.inside(lambda: str(nl.ndarray((2, 2), dtype=nl.int32, buffer=nl.psum)))

    assert text == "<(2, 2), int32, PSUM> never written"


def test_printing_changes_nothing(every):
    """Memory that was printed before it was written is still found to be unwritten."""
    nl = every.nl

    def kernel():
        tile = nl.ndarray((2, 2), dtype=nl.float32, buffer=nl.sbuf)
        str(tile)
        every.nisa.memset(tile[:, 0:1], 1.0)
        return every.out(tile)

    assert np.array_equal(every.run(kernel), [[1, np.nan], [1, np.nan]], equal_nan=True)


def test_large_tensors_print_their_corners(now):
    text = now.run(lambda x: str(x), np.zeros((128, 512), np.float32))

    assert "..." in text and len(text) < 600


def test_a_selected_row_prints_as_it_is_now(now):
    def kernel(x, at):
        index = now.tile(at)
        part = x.select(0, index)
        before = str(part)
        now.nisa.memset(index, 0)
        return before, str(part), str(x.vector_select(0, index))

    seen = now.run(kernel, X, np.array([[1]], np.int32))

    assert [text.partition("\n")[2] for text in seen] == ["[ 2. -3.]", "[0.5 1.5]", "[[0.5 1.5]]"]


def test_a_breakpoint_stops_in_the_kernel(every, monkeypatch):
    stopped = []

    def look():
        frame = sys._getframe(1)
        stopped.append((frame.f_code.co_name, frame.f_locals["t"].array.copy()))

    def kernel(x):
        t = every.tile(x)
        breakpoint()
        every.nisa.memset(t, 0)
        return every.out(t)

    monkeypatch.setattr(sys, "breakpointhook", look)
    result = every.run(kernel, X)

    assert [name for name, _ in stopped] == ["kernel"]
    assert np.array_equal(stopped[0][1], X)
    assert not result.any()


def test_what_a_debugger_raises_leaves_nothing_behind(every, monkeypatch):
    """As `q` does; the next run is a run of its own."""

    def leave():
        raise KeyboardInterrupt

    def kernel(x):
        t = every.tile(x)
        if stops:
            breakpoint()
        return every.out(t)

    stops = [True]
    monkeypatch.setattr(sys, "breakpointhook", leave)
    with pytest.raises(KeyboardInterrupt):
        every.run(kernel, X)
    stops.clear()
    assert np.array_equal(every.run(kernel, X), X)
    with pytest.raises(KernelError, match="outside a kernel"):
        every.nl.ndarray((2, 2), dtype=every.nl.float32, buffer=every.nl.sbuf)
