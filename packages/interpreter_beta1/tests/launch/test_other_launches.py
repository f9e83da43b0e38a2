"""A tensor that Python code keeps from one launch is none of the next."""

import numpy as np
import pytest

from neuroncore.errors import AccessError
from nki_beta1 import nisa, nki, nl, nt

X = np.arange(64, dtype=np.float32).reshape(8, 8)


def stored(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=tile)
    return out


KEPT = {
    "a tile": lambda x: nl.load(x) + 1.0,
    "a loaded tile": lambda x: nl.load(x),
    "a waiting tile": lambda x: nl.exp(nl.load(x)),
    "a part": lambda x: nl.load(x)[:, 0:8],
    "a block": lambda x: nl.zeros((2, nl.par_dim(8), 8), dtype=nl.float32)[0],
}


def assign(kept, x):
    kept[...] = nl.load(x)
    return kept


def scatter(kept, x):
    kept[nl.arange(8)[:, None], (nl.arange(8)[None, :] * 3) % 8] = nl.load(x)
    return kept


def add_in_place(kept, x):
    kept += nl.load(x)
    return kept


USES = {
    "kept + tile": lambda kept, x: kept + nl.load(x),
    "tile + kept": lambda kept, x: nl.load(x) + kept,
    "kept * 2.0": lambda kept, x: kept * 2.0,
    "nl.exp": lambda kept, x: nl.exp(kept),
    "nl.sum": lambda kept, x: nl.sum(kept, axis=1, keepdims=True),
    "nl.add under a mask": lambda kept, x: nl.add(kept, 1.0, mask=nl.arange(8)[:, None] < 4),
    "an access": lambda kept, x: kept[nl.arange(8)[:, None], nl.arange(4)[None, :]] * 2.0,
    "a gathered access": lambda kept, x: nl.copy(
        kept[nl.arange(8)[:, None], (nl.arange(8)[None, :] * 3) % 8]
    ),
    "nc_matmul": lambda kept, x: nisa.nc_matmul(kept, nl.load(x)),
    "nisa.activation": lambda kept, x: nisa.activation(np.exp, kept),
    "nisa.tensor_tensor": lambda kept, x: nisa.tensor_tensor(nl.load(x), kept, op=np.add),
    "reduce_res": lambda kept, x: nisa.activation_reduce(
        nl.exp, nl.load(x), reduce_op=np.add, reduce_res=kept[:, 0:1]
    ),
    "assigned": assign,
    "scattered": scatter,
    "+=": add_in_place,
    "stored": lambda kept, x: kept,
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("what", KEPT)
def test_a_tensor_of_another_launch_is_rejected_where_it_is_used(what, use):
    found = []

    @nki.jit
    def keep(x):
        found.append(KEPT[what](x))
        return stored(nl.load(x))

    @nki.jit
    def own(x):
        return stored(USES[use](KEPT[what](x), x))

    @nki.jit
    def kernel(x):
        return stored(USES[use](found[0], x))

    keep(X)
    for _ in range(2):  # the second call of a kind takes another way
        own(X)
    with pytest.raises(AccessError, match=f"(?s){__file__}.*of another launch.*return what"):
        kernel(X)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("what", KEPT)
def test_a_tensor_of_another_program_is_rejected_where_it_is_used(what, use):
    found = []

    @nki.jit
    def kernel(x):
        out = nl.ndarray((2, *x.shape), dtype=nl.float32, buffer=nl.shared_hbm)
        found.append(KEPT[what](x))
        nl.store(out[nl.program_id(0)], value=nl.load(x))
        return stored(USES[use](found[0], x))

    with pytest.raises(AccessError, match=f"(?s){__file__}.*of another program of the grid"):
        kernel[2](X)


def test_arguments_and_outputs_belong_to_every_program():
    @nki.jit
    def kernel(x, more, m: nt.mutable_tensor):
        out = nl.ndarray((3, *x.shape), dtype=nl.float32, buffer=nl.shared_hbm)
        total = nl.load(m) + nl.load(more["a"][0])
        nl.store(m, value=total)
        nl.store(out[nl.program_id(0)], value=total + nl.load(x))
        return out, m

    total = np.zeros_like(X)
    out, _ = kernel[3](X, {"a": [np.ones_like(X)]}, total)
    np.testing.assert_array_equal(total, np.full_like(X, 3.0))
    np.testing.assert_array_equal(out, X + np.arange(1.0, 4.0)[:, None, None])


def test_an_output_of_another_launch_is_rejected():
    found = []

    @nki.jit
    def keep(x):
        found.append(stored(nl.load(x)))
        return found[0]

    keep(X)

    @nki.jit
    def reads(x):
        return stored(nl.load(found[0]))

    @nki.jit
    def writes(x):
        nl.store(found[0], nl.load(x))
        return stored(nl.load(x))

    for kernel in (reads, writes):
        with pytest.raises(AccessError, match="of another launch"):
            kernel(X)


RETURNED = {
    "an output": (lambda x: stored(nl.load(x)), lambda kept: kept),
    "an output among others": (lambda x: stored(nl.load(x)), lambda kept: {"a": (kept, 1)}),
    "a part of an output": (lambda x: stored(nl.load(x)), lambda kept: kept[0:4, :]),
    "a parameter": (lambda x: x, lambda kept: kept),
}


@pytest.mark.parametrize(("made", "returned"), RETURNED.values(), ids=RETURNED)
def test_a_tensor_of_another_launch_is_not_returned(made, returned):
    found = []

    @nki.jit
    def keep(x):
        found.append(made(x))
        return stored(nl.load(x))

    @nki.jit
    def kernel(x):
        stored(nl.load(x))
        return returned(found[0])

    keep(X)
    with pytest.raises(AccessError, match="of another launch") as caught:
        kernel(X)
    assert "return returned(found[0])" in str(caught.value) and "^^^" in str(caught.value)
