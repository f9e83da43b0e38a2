"""A result of rank 0 is a number or an array as NumPy has it: `y += 1` distinguishes them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from nkigen_lite import compile, trace
from nkigen_lite.tensors.errors import ArgumentError

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
    "nan_to_num in place": lambda x, a, z: np.nan_to_num(z, copy=False),
    "sinc": lambda x, a, z: np.sinc(z) * 0,
    "take": lambda x, a, z: np.take(x, 1),
    "x.take": lambda x, a, z: x.take(np.array(1)),
    "a number's axes moved": lambda x, a, z: np.moveaxis(x[1], (), ()),
    "a copy of that": lambda x, a, z: np.moveaxis(x[1], (), ()).copy(),
    "an array's axes moved": lambda x, a, z: np.moveaxis(z, (), ()),
    "numbers broadcast": lambda x, a, z: np.broadcast_arrays(x[1], 2)[0],
    "an array broadcast beside a number": lambda x, a, z: np.broadcast_arrays(z, 2)[0],
    "truth rounded": lambda x, a, z: (z > 0).round(),
    "a number's maximum into an array": lambda x, a, z: np.max(x[1], out=z),
    "an array's maximum into it": lambda x, a, z: np.max(z, out=z),
    "a number's sum into an array": lambda x, a, z: x[1].sum(out=z),
    "a number's mean into an array": lambda x, a, z: np.mean(x[1], out=z),
    "a number clipped into an array": lambda x, a, z: np.clip(x[3], 0, 2, out=z),
    "sum of a part of rank 0 into an array": lambda x, a, z: np.sum(x[2, ...], out=z),
    "a known number clipped into an array": lambda x, a, z: np.clip(2, 0, 1, out=z),
    "a known number's minimum into an array": lambda x, a, z: np.min(2, out=z),
    "a known number's mean into an array": lambda x, a, z: np.mean(2, out=z),
    "a known list's sum into an array": lambda x, a, z: np.add.reduce([1, 2, 4], out=z),
    "a known list's sum by a mask": lambda x, a, z: np.sum([1, 2, 4], where=x[:3] > 1),
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


@pytest.mark.parametrize(
    "result",
    [lambda z: z.conjugate(), lambda z: z[...].conj(), lambda z: np.nanmax(z, axis=()),
     lambda z: np.nanmin(np.reshape(z, 1), axis=())[0]],
    ids=["conjugate", "conj", "nanmax", "nanmin"],
)  # fmt: skip
def test_a_result_of_bfloat16_is_numpys_number_in_its_dtype(result):
    def changed(z):
        y = result(z)
        kept = y
        y += 1
        return kept, y, z

    z = np.array(3, ml_dtypes.bfloat16)
    expected, found = changed(z.copy()), compile(changed, z)(z.copy())
    for ours, numpys in zip(found, expected, strict=True):
        assert ours.dtype == numpys.dtype
        assert float(ours) == float(numpys)


def test_a_product_of_a_number_of_float16_and_an_integer_is_in_numpys_wider_dtype():
    def doubled(z):
        return np.dot(z, 2), np.inner(2, z)

    z = np.array(60_000, np.float16)
    assert [float(v) for v in doubled(z)] == [120_000, 120_000]
    assert [float(v) for v in compile(doubled, z)(z)] == [120_000, 120_000]


@pytest.mark.parametrize("product", [np.dot, np.vdot, np.inner])
def test_products_that_numpy_makes_objects_of_are_rejected_with_their_dtypes(product):
    with pytest.raises(ArgumentError, match="no dtype for products of bfloat16 and int64"):
        trace(lambda z: product(z, 2), np.array(3, ml_dtypes.bfloat16))


@pytest.mark.parametrize(
    "call", [lambda x, z: np.einsum("i->", out=z), lambda x, z: np.einsum(x)], ids=["text", "array"]
)
def test_einsum_without_operands_is_numpys_value_error(call):
    with pytest.raises(ValueError, match="must "):
        call(X.copy(), Z.copy())
    with pytest.raises(ValueError, match="must specify"):
        trace(call, X, Z)


def test_a_number_does_not_change_with_the_array_that_it_comes_from():
    def kept(x, z):
        first, all_of = np.take(x, 0), np.einsum("->", z)
        x += 1
        z += 1
        return first * 1, all_of * 1

    assert [float(v) for v in kept(X.copy(), Z.copy())] == [1, 3]
    assert [float(v) for v in compile(kept, X, Z)(X.copy(), Z.copy())] == [1, 3]
