"""Arguments that share memory are one memory to the kernel, or it does not write them."""

import numpy as np
import pytest

from neuroncore.errors import ImmutableError
from neuroncore.machine.backend import Choice
from neuroncore.options import Options
from nki_beta1 import BACKEND, nisa, nki, nl, nt
from nki_dtypes import bfloat16

KINDS = {
    "C": lambda kind: np.zeros((8, 8), kind),
    "transposed": lambda kind: np.zeros((8, 8), kind).T,
    "every other row": lambda kind: np.zeros((16, 8), kind)[::2],
    "columns": lambda kind: np.zeros((8, 24), kind)[:, 5:13],
    "reversed": lambda kind: np.zeros((8, 8), kind)[::-1],
    "cut of a cube": lambda kind: np.zeros((8, 3, 8), kind)[:, 1],
}
PRECISE = {
    "precise": (np.dtype(np.float32), Options()),
    "low": (bfloat16.storage, Options(precise=False)),
}


def filled(tensor, number):
    nl.store(tensor, value=nl.load(tensor) * 0.0 + number)


@nki.jit
def halves(a: nt.mutable_tensor, b: nt.mutable_tensor):
    filled(a[0:4, :], 1.0)
    filled(b[4:8, :], 2.0)
    return a, b


@pytest.mark.parametrize(("kind", "options"), PRECISE.values(), ids=PRECISE)
@pytest.mark.parametrize("made", KINDS.values(), ids=KINDS)
def test_an_array_given_twice_is_one_tensor(made, kind, options):
    z = made(kind)
    results = BACKEND.simulate(halves, Choice("beta1", "0.1", options=options))(z, z)

    expected = np.repeat([1.0, 2.0], 4)[:, None] * np.ones(8)
    for found in (z, *results):
        np.testing.assert_array_equal(found.astype(np.float32), expected)


@pytest.mark.parametrize("made", KINDS.values(), ids=KINDS)
def test_what_is_written_by_one_name_is_read_by_the_other(made):
    @nki.jit
    def kernel(a: nt.mutable_tensor, b, both):
        before = nl.load(b)
        filled(a, 3.0)
        after = nl.load(both[0])
        out = nl.ndarray((2, 8, 8), dtype=a.dtype, buffer=nl.shared_hbm)
        nl.store(out[0], value=before)
        nl.store(out[1], value=after)
        return a, out

    z = made(np.float32)
    _, out = kernel(z, z, [z])
    assert (out[0] == 0).all() and (out[1] == 3).all() and (z == 3).all()


@pytest.mark.parametrize("made", KINDS.values(), ids=KINDS)
def test_outputs_that_are_arguments_are_one_tensor_too(made):
    def kernel(x, one, other):
        nl.store(one[0:4, :], value=nl.load(x[0:4, :]))
        nl.store(other[4:8, :], value=nl.load(x[4:8, :]))

    z, x = made(np.float32), np.arange(64, dtype=np.float32).reshape(8, 8)
    nki.simulate_kernel(kernel, x, z, z)
    np.testing.assert_array_equal(z, x)


BASE = {
    "every other row": (lambda base: base, lambda base: base[::2]),
    "transposed": (lambda base: base, lambda base: base.T),
    "two steps": (lambda base: base[::2], lambda base: base[::3]),
    "a column": (lambda base: base[:, 3:5], lambda base: base[:, 4:6]),
}


@pytest.mark.parametrize("writes", [0, 1])
@pytest.mark.parametrize(("one", "other"), BASE.values(), ids=BASE)
def test_overlapping_arrays_of_which_one_is_a_copy_are_read_only(one, other, writes):
    @nki.jit
    def kernel(a: nt.mutable_tensor, b: nt.mutable_tensor):
        filled((a, b)[writes], 1.0)
        return a, b

    base = np.zeros((12, 12), np.float32)
    with pytest.raises(ImmutableError, match="two arguments share memory, and the kernel writes"):
        kernel(one(base), other(base))
    assert not base.any()


def test_what_is_written_and_restored_is_rejected_before_the_other_array_is_read():
    @nki.jit
    def kernel(a: nt.mutable_tensor, b: nt.mutable_tensor):
        out = nl.ndarray(b.shape, dtype=b.dtype, buffer=nl.shared_hbm)
        old = nl.load(a) * 1.0
        nisa.dma_copy(dst=a, src=old + 1.0)
        nl.store(out, value=nl.load(b))
        nisa.dma_copy(dst=a, src=old)
        return a, b, out

    base = np.zeros((12, 12), np.float32)
    with pytest.raises(ImmutableError, match="shares no memory with another"):
        kernel(base, base[::2])


@pytest.mark.parametrize(("one", "other"), BASE.values(), ids=BASE)
def test_overlapping_arrays_are_read(one, other):
    @nki.jit
    def kernel(a: nt.mutable_tensor, b: nt.mutable_tensor):
        return tuple(copied(nl.load(v)) for v in (a, b))

    def copied(tile):
        out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
        nl.store(out, value=tile)
        return out

    base = np.arange(144, dtype=np.float32).reshape(12, 12)
    for found, given in zip(kernel(one(base), other(base)), (one(base), other(base)), strict=True):
        np.testing.assert_array_equal(found, given)


def test_arrays_that_lie_between_each_other_are_distinct():
    base = np.zeros((8, 16), np.float32)
    halves(base[:, ::2], base[:, 1::2])

    np.testing.assert_array_equal(base[:, ::2], np.repeat([1.0, 0.0], 4)[:, None] * np.ones(8))
    np.testing.assert_array_equal(base[:, 1::2], np.repeat([0.0, 2.0], 4)[:, None] * np.ones(8))


def test_contiguous_parts_of_one_array_are_seen_through_each_other():
    base = np.zeros((12, 8), np.float32)
    halves(base[0:8], base[4:12])
    np.testing.assert_array_equal(base[:, 0], [1] * 4 + [0] * 4 + [2] * 4)


READ_ONLY = {
    "a broadcast": lambda: np.broadcast_to(np.float32(0), (8, 8)),
    "a constant": lambda: np.frombuffer(bytes(256), np.float32).reshape(8, 8),
}


@pytest.mark.parametrize("made", READ_ONLY.values(), ids=READ_ONLY)
def test_a_read_only_array_is_no_mutable_tensor(made):
    with pytest.raises(ImmutableError, match="the caller's array is read-only") as caught:
        halves(made(), made())
    assert "pass a copy" in str(caught.value) and "annotate" not in str(caught.value)
