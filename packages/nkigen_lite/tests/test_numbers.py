"""A result of rank 0 is a number or an array as NumPy has it: `y += 1` tells them apart."""

from __future__ import annotations

import numpy as np
import pytest

from nkigen_lite import compile

X = np.arange(1, 5, dtype=np.float32)
A = np.arange(1, 10, dtype=np.float32).reshape(3, 3)
Z = np.array(3, np.float32)

RESULTS = {
    "an element": lambda x, a, z: x[0],
    "an element by an array": lambda x, a, z: x[np.array(1)],
    "an element by an array and a number": lambda x, a, z: a[np.array(1), 1],
    "an element by an array and an ellipsis": lambda x, a, z: a[np.array(1), ..., 1],
    "a part of rank 0": lambda x, a, z: x[0, ...],
    "a number's copy": lambda x, a, z: x[0].copy(),
    "a number's transpose": lambda x, a, z: x[0].T,
    "a number squeezed": lambda x, a, z: x[0].squeeze(),
    "a number reshaped": lambda x, a, z: x[0].reshape(()),
    "squeeze of a number": lambda x, a, z: np.squeeze(x[0]),
    "transpose of a number": lambda x, a, z: np.transpose(x[0]),
    "copy of a number": lambda x, a, z: np.copy(x[0]),
    "an array's copy": lambda x, a, z: z.copy(),
    "an array's transpose": lambda x, a, z: z.T,
    "an array reshaped": lambda x, a, z: x[:1].reshape(()),
    "an array squeezed": lambda x, a, z: x[:1].squeeze(),
    "squeeze of an array": lambda x, a, z: np.squeeze(x[:1]),
    "where of numbers": lambda x, a, z: np.where(x[0] > 0, x[0], x[1]),
    "where of arrays": lambda x, a, z: np.where(z > 0, z, 1),
    "select": lambda x, a, z: np.select([z > 0], [z], 1),
    "clip": lambda x, a, z: np.clip(z, 0, 1),
    "sum": lambda x, a, z: x.sum(),
    "dot": lambda x, a, z: np.dot(x, x),
    "inner": lambda x, a, z: np.inner(x, x),
    "einsum": lambda x, a, z: np.einsum("i,i->", x, x),
    "sum by einsum": lambda x, a, z: np.einsum("i->", x),
    "einsum of a number": lambda x, a, z: np.einsum("->", z),
    "vecdot": lambda x, a, z: np.vecdot(x, x),
    "tensordot": lambda x, a, z: np.tensordot(x, x, 1),
    "kron": lambda x, a, z: np.kron(z, z),
    "cross": lambda x, a, z: np.cross(a[0], a[1])[0],
    "clip of a number": lambda x, a, z: x[0].clip(0, 2),
    "clip into an array": lambda x, a, z: np.clip(z, 0, 2, out=z),
    "a norm": lambda x, a, z: np.linalg.norm(a, 1),
    "an integer rounded": lambda x, a, z: z.astype(np.int32).round(),
    "a planned einsum": lambda x, a, z: np.einsum("i,i->", x, x, optimize=True),
    "squeeze of a number by name": lambda x, a, z: np.squeeze(a=x[0]),
    "nanmax": lambda x, a, z: np.nanmax(x),
    "nan_to_num": lambda x, a, z: np.nan_to_num(z),
    "sinc": lambda x, a, z: np.sinc(z) * 0,
    "take": lambda x, a, z: np.take(x, 1),
    "x.take": lambda x, a, z: x.take(np.array(1)),
    "broadcast to rank 0": lambda x, a, z: np.broadcast_to(z, ()) * 1,
}


@pytest.mark.parametrize("result", RESULTS)
def test_a_result_of_rank_0_changes_in_place_where_numpys_does(result):
    def changed(x, a, z):
        y = RESULTS[result](x, a, z)
        kept = y
        y += 1
        return kept * 1, y * 1, x * 1, z * 1

    expected = changed(X.copy(), A.copy(), Z.copy())
    found = compile(changed, X, A, Z)(X.copy(), A.copy(), Z.copy())
    for ours, numpys in zip(found, expected, strict=True):
        assert np.array_equal(ours, numpys)


def test_a_number_does_not_change_with_the_array_that_it_comes_from():
    def kept(x, z):
        first, all_of = np.take(x, 0), np.einsum("->", z)
        x += 1
        z += 1
        return first * 1, all_of * 1

    assert [float(v) for v in kept(X.copy(), Z.copy())] == [1, 3]
    assert [float(v) for v in compile(kept, X, Z)(X.copy(), Z.copy())] == [1, 3]
