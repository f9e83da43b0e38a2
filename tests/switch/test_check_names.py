"""How findings tell apart the tensors that one line makes."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.checks import watching
from nki_runtime import use


@pytest.fixture(autouse=True)
def beta2():
    with use("beta2", nki="0.6"):
        yield


def test_of_several_tensors_made_by_one_line_findings_say_which():
    import nki
    import nki.isa as nisa
    import nki.language as nl

    @nki.jit
    def kernel(x):
        out = nl.ndarray((32, 8), x.dtype, buffer=nl.shared_hbm)
        tiles = [nl.ndarray((32, 8), x.dtype, nl.sbuf, address=(0, 4 * i)) for i in range(3)]
        nisa.memset(dst=tiles[0], value=1.0)
        nisa.memset(dst=tiles[2], value=2.0)
        nisa.dma_copy(dst=out, src=tiles[0])
        nisa.dma_copy(dst=out, src=tiles[1])
        return out

    with watching("overlap", "memory") as report:
        kernel(np.ones((1, 1), np.float32))

    lost, unwritten = sorted(report, key=lambda f: f.rule, reverse=True)[:2]
    assert lost.message == (
        "tiles (3rd of 3 made there) overwrites tiles (1st of 3 made there), "
        "which is used afterwards"
    )
    assert unwritten.notes[0].endswith(" (2nd of 3 made there)")


def test_what_comes_round_again_is_counted_in_each_launch_anew():
    import nki
    import nki.isa as nisa
    import nki.language as nl

    @nki.jit
    def kernel(x):
        out = nl.ndarray((32, 8), x.dtype, buffer=nl.shared_hbm)
        for i in range(4):
            tile = nl.ndarray((32, 8), x.dtype, nl.sbuf)
            if i != 1:
                nisa.memset(dst=tile, value=1.0)
            nisa.dma_copy(dst=out, src=tile)
        return out

    for _ in range(2):
        with watching("memory") as report:
            kernel(np.ones((1, 1), np.float32))
            kernel(np.ones((1, 1), np.float32))

        (found,) = report
        assert found.notes[0].endswith(" (2nd of 2 made there)")


@pytest.mark.parametrize("which", [0, 1])
def test_two_names_on_one_line_are_two_names(which):
    import nki
    import nki.isa as nisa
    import nki.language as nl

    @nki.jit
    def kernel(x):
        out = nl.ndarray((32, 8), x.dtype, buffer=nl.shared_hbm)
        a, b = nl.ndarray((32, 8), x.dtype, nl.sbuf), nl.ndarray((32, 8), x.dtype, nl.sbuf)
        pair = (c := nl.ndarray((32, 8), x.dtype, nl.sbuf)), nl.ndarray((32, 8), x.dtype, nl.sbuf)
        nisa.dma_copy(dst=out, src=(a, b)[which])
        nisa.dma_copy(dst=out, src=(c, pair[1])[which])
        return out

    with watching("memory") as report:
        kernel(np.ones((1, 1), np.float32))

    names = [str(found.got).partition("[")[0] for found in report]
    assert names == [["a", "c"], ["b", "pair"]][which]
