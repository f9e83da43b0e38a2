"""The option traced_once: what 0.1, which ran a loop's body once, did not run as it stands."""

import numpy as np
import pytest

from neuroncore.backend import Choice
from neuroncore.errors import AccessError, UnsupportedError
from neuroncore.options import Options
from nki_beta1 import BACKEND, nki, nl

X = np.arange(32, dtype=np.float32).reshape(4, 8)
STRICT = Choice("beta1", "0.1", options=Options(traced_once="error"))


def strictly(kernel, *arguments):
    return BACKEND.simulate(kernel, STRICT)(*arguments)


def stored(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=tile)
    return out


@nki.jit
def branching(x):
    tile = nl.zeros((4, 8), dtype=x.dtype)
    for i in nl.affine_range(4):
        if i > 1:
            tile[...] = nl.load(x)
    return stored(tile)


@nki.jit
def choosing(x):
    tile = nl.load(x)
    for i in nl.sequential_range(4):
        tile[...] = nl.load(x) if i == 3 else nl.load(x) * 2.0
    return stored(tile)


@nki.jit
def used_after_its_block(x):
    for _ in nl.affine_range(4):
        tile = nl.ndarray((4, 8), dtype=x.dtype, buffer=nl.sbuf)
        tile[...] = nl.load(x)
    return stored(tile)  # pyrefly: ignore


@nki.jit
def counting(x):
    n = 0
    for _ in nl.affine_range(4):
        n += 1
    return stored(nl.load(x) * float(n))


@nki.jit
def collecting(x):
    tiles = []
    for _ in nl.sequential_range(2):
        tiles.append(nl.load(x))
    return stored(tiles[0] + tiles[-1])


REFUSED = {
    "control flow on an index": (branching, X, "if depends on an index, which is a symbol"),
    "a choice by an index": (choosing, X, "the conditional expression depends on the index of"),
    "a tensor outside its block": (
        used_after_its_block,
        X,
        "tile was made in a loop that has ended",
    ),
    "a number that counts": (counting, 4 * X, "n is 0 before a turn of the loop and 1 after"),
    "a list that grows": (collecting, 2 * X, "the length of tiles is 0 before a turn of the loop"),
}


@pytest.mark.parametrize(("kernel", "result", "says"), REFUSED.values(), ids=REFUSED)
def test_the_body_runs_for_every_number_unless_that_is_refused(kernel, result, says):
    np.testing.assert_array_equal(kernel(X), result)

    with pytest.raises(AccessError, match=says) as caught:
        strictly(kernel, X)
    place = caught.value.place
    assert place is not None and place.file == __file__
    assert place.line > kernel.function.__code__.co_firstlineno


@nki.jit
def traceable(x):
    tile, unrolled, tiles = nl.zeros((4, 8), dtype=x.dtype, buffer=nl.sbuf), 0, []
    total = nl.zeros((4, 8), dtype=x.dtype, buffer=nl.sbuf)
    for i in nl.affine_range(4):
        start = i * 2
        tile[:, start : start + 2] = nl.load(x[:, start : start + 2])
        total += tile
    for k in nl.static_range(3):
        if k > 0:
            unrolled += k
        tiles.append(nl.load(x))
    return stored(tile * float(unrolled) + tiles[2])


def test_what_tracing_once_can_do_runs_under_the_option_too():
    np.testing.assert_array_equal(traceable(X), 4 * X)
    np.testing.assert_array_equal(strictly(traceable, X), 4 * X)


def test_a_kernel_without_source_is_refused_under_the_option():
    space = {"nl": nl, "stored": stored}
    exec("def kernel(x):\n    return stored(nl.load(x))\n", space)

    np.testing.assert_array_equal(nki.jit(space["kernel"])(X), X)
    with pytest.raises(UnsupportedError, match="the source of kernel kernel cannot be read"):
        strictly(nki.jit(space["kernel"]), X)
