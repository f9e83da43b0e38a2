"""Operators and methods on every kind of access: what fits a view, what no strides describe, and
what leaves the tensor.
"""

import operator
from functools import partial

import numpy as np
import pytest

from neuroncore.errors import AccessError, KernelError, UnsupportedError
from nki_beta1 import nki, nl

P, F = 16, 8
STEPS = (np.arange(F) * 5) % F
ACCESSES = {
    "a view": (lambda i, j: (i, j), np.arange(F)),
    "steps that wrap around": (lambda i, j: (i, (j * 5) % F), STEPS),
}
FLOATS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
INTEGERS = {"&": operator.and_, "|": operator.or_, "^": operator.xor}
ALONE = {"-t": operator.neg, "abs(t)": operator.abs}
IN_PLACE = {
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv,
}  # fmt: skip


def stored(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=tile)
    return out


def axes():
    return nl.arange(P)[:, None], nl.arange(F)[None, :]


@pytest.fixture
def x(rng):
    return rng.integers(1, 9, (P, F)).astype(np.float32)


@pytest.fixture
def y(rng):
    return rng.integers(1, 9, (P, F)).astype(np.float32)


@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize("sign", FLOATS)
def test_an_operator_takes_an_access_on_either_side(sign, access, x, y):
    at, columns = ACCESSES[access]
    op = FLOATS[sign]

    @nki.jit
    def kernel(x, y):
        t, u = nl.load(x), nl.load(y)
        part = t[at(*axes())]
        return stored(op(part, u)), stored(op(u, part)), stored(op(part, 2.0)), stored(op(2, part))

    found = kernel(x, y)
    part = x[:, columns]
    for result, expected in zip(found, (op(part, y), op(y, part), op(part, 2), op(2, part))):  # noqa: B905
        np.testing.assert_allclose(result, expected, rtol=2**-23)


@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize("sign", INTEGERS)
def test_bits_of_an_access_are_combined(sign, access, x, y):
    at, columns = ACCESSES[access]
    op = INTEGERS[sign]

    @nki.jit
    def kernel(x, y):
        return stored(op(nl.load(x)[at(*axes())], nl.load(y)))

    x, y = x.astype(np.int32), y.astype(np.int32)
    np.testing.assert_array_equal(kernel(x, y), op(x[:, columns], y))


@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize("name", ALONE)
def test_an_access_alone(name, access, x):
    at, columns = ACCESSES[access]

    @nki.jit
    def kernel(x):
        return stored(ALONE[name](nl.load(x)[at(*axes())]))

    np.testing.assert_array_equal(kernel(-x), ALONE[name](-x[:, columns]))


METHODS = {
    "astype": (lambda t: t.astype(nl.float16), lambda a: a.astype(np.float16)),
    "reshape": (lambda t: t.reshape((P, 2, 4)), lambda a: a.reshape(P, 2, 4)),
    "view": (lambda t: t.view(nl.int32), lambda a: np.ascontiguousarray(a).view(np.int32)),
    "expand_dims": (lambda t: t.expand_dims(1), lambda a: a[:, None]),
    "broadcast_to": (lambda t: t.broadcast_to((P, F)), lambda a: a),
    "nl.broadcast_to": (lambda t: nl.broadcast_to(t, shape=(P, F)), lambda a: a),
    "nl.expand_dims": (lambda t: nl.expand_dims(t, 1), lambda a: a[:, None]),
    "nl.static_cast": (lambda t: nl.static_cast(t, nl.int32), lambda a: a.astype(np.int32)),
}


@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize("name", METHODS)
def test_an_access_has_the_methods_of_a_tile(name, access, x):
    at, columns = ACCESSES[access]
    method, expected = METHODS[name]

    @nki.jit
    def kernel(x):
        return stored(nl.copy(method(nl.load(x)[at(*axes())])))

    np.testing.assert_array_equal(kernel(x), expected(x[:, columns]))


@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize("sign", IN_PLACE)
@pytest.mark.parametrize("named", [False, True], ids=["in brackets", "by a name"])
def test_an_access_is_changed_in_place(sign, access, named, x, y):
    at, columns = ACCESSES[access]
    op = IN_PLACE[sign]

    @nki.jit
    def kernel(x, y):
        t, u = nl.load(x), nl.load(y)
        held = nl.ndarray((P, F), dtype=nl.float32)
        held[...] = t
        if named:
            part = held[at(*axes())]
            part = op(part, u)
            part = op(part, u)
        else:
            key = at(*axes())
            held[key] = op(held[key], u)
            held[key] = op(held[key], u)
        return stored(held)

    expected = x.copy()
    for _ in range(2):
        part = op(expected[:, columns].copy(), y)
        expected[:, columns] = part
    np.testing.assert_allclose(kernel(x, y), expected, rtol=2**-22)


def _before_two(op, t):
    return op(t, 2.0)


def _after_two(op, t):
    return op(2.0, t)


OUT_OF_RANGE = {
    **{f"t {sign} 2": partial(_before_two, op) for sign, op in (FLOATS | IN_PLACE).items()},
    **{f"2 {sign} t": partial(_after_two, op) for sign, op in FLOATS.items()},
    **ALONE,
    **{f".{name}": method for name, (method, _) in METHODS.items()},
    "t[...]": lambda t: t[...],
    "bool(t)": bool,
    "iter(t)": iter,
    "nl.exp": nl.exp,
}


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_what_leaves_the_tensor_is_rejected_by_every_operator(name, x):
    @nki.jit
    def kernel(x):
        t = nl.load(x)
        i, j = nl.mgrid[0:P, 0 : F + 1]
        return stored(OUT_OF_RANGE[name](t[i, j]))

    with pytest.raises(AccessError, match="index out of range in dimension 1") as caught:
        kernel(x)
    assert "^" in str(caught.value) and f"({P}, {F})" in str(caught.value)


def test_elements_without_strides_are_not_indexed_again(x):
    @nki.jit
    def kernel(x):
        i, j = axes()
        t = nl.load(x)
        t[i, (j * 5) % F][...] = 0

    with pytest.raises(AccessError, match="that no strides describe is indexed again"):
        kernel(x)


def test_elements_without_strides_have_no_truth_value(x):
    @nki.jit
    def kernel(x):
        i, j = axes()
        assert nl.load(x)[i, (j * 5) % F]

    with pytest.raises(AccessError, match="a tile has no truth value"):
        kernel(x)


LATER = ["ap", "broadcast", "expand_dim", "get_pattern", "permute", "squeeze_dim"]


@pytest.mark.parametrize("name", LATER)
def test_methods_of_later_versions_are_rejected(name, x):
    @nki.jit
    def kernel(x):
        return getattr(nl.load(x), name)([[1, 2]])

    with pytest.raises(UnsupportedError, match=f"a tile of NKI 0.1 has no {name}\n"):
        kernel(x)
    with pytest.raises(KernelError):
        nki.jit(lambda x: getattr(x, name)([[1, 2]]))(x)
