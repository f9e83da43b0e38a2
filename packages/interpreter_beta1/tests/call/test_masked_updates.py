"""`=` and `+=` of masked values: what lies outside the mask stays as it was."""

import operator

import numpy as np
import pytest

from nki_beta1 import nisa, nki, nl

P, F = 32, 24
WRAPPED = (np.arange(F) * 5) % F
ROWS, COLUMNS = np.mgrid[0:P, 0:F]
MASKS = {
    "columns": lambda i, j: j < 20,
    "rows": lambda i, j: i < 9,
    "a rectangle": lambda i, j: (i < 9) & (j >= 3),
    "a triangle": lambda i, j: i >= j,
    "nothing": lambda i, j: j < 0,
}
TARGETS = {
    "a view": (lambda i, j: (i, j), np.arange(F)),
    "steps that wrap around": (lambda i, j: (i, (j * 5) % F), WRAPPED),
}
OPERATORS = {
    "=": lambda old, new: new,
    "+=": operator.add, "-=": operator.sub, "*=": operator.mul, "/=": operator.truediv,
}  # fmt: skip
IN_PLACE = {
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv,
}  # fmt: skip
VALUES = {
    "load": (lambda x, t, m: nl.load(x, mask=m), lambda x: x),
    "activation": (lambda x, t, m: nl.exp(t, mask=m), np.exp),
    "two tiles": (lambda x, t, m: nl.add(t, t, mask=m), lambda x: x + x),
    "a number": (lambda x, t, m: nl.multiply(t, 3.0, mask=m), lambda x: 3 * x),
    "where": (lambda x, t, m: nl.where(t, t, 0.0, mask=m), lambda x: x),
    "memset": (lambda x, t, m: nisa.memset((P, F), 2.0, nl.float32, mask=m), lambda x: 0 * x + 2),
    "iota": (
        lambda x, t, m: nisa.iota(
            nl.arange(P)[:, None] + nl.arange(F)[None, :], nl.float32, mask=m
        ),
        lambda x: ROWS + COLUMNS,
    ),
}


def stored(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=tile)
    return out


def changed(x, make, mask, at, sign, buffer=nl.sbuf, first=False):
    """A tile of fives after `tile[at] op= make(...)`; `first`: the value has run before."""

    @nki.jit
    def kernel(x):
        i, j = nl.arange(P)[:, None], nl.arange(F)[None, :]
        tile = nl.full((P, F), 5, dtype=nl.float32, buffer=buffer)
        value = make(x, nl.load(x), mask(i, j))
        if first:
            nl.exp(nl.load(x))
        key = at(i, j)
        tile[key] = value if sign == "=" else IN_PLACE[sign](tile[key], value)
        return stored(nl.copy(tile))

    return kernel(x)


def expected(values, inside, columns, sign):
    found = np.full((P, F), 5, np.float32)
    part = found[:, columns]
    found[:, columns] = np.where(inside, OPERATORS[sign](part, values), part)
    return found


@pytest.fixture
def x(rng):
    return rng.integers(1, 5, (P, F)).astype(np.float32)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("sign", OPERATORS)
@pytest.mark.parametrize("first", [False, True], ids=["at once", "later"])
def test_what_the_mask_leaves_out_stays(mask, target, sign, first, x):
    if mask == "a triangle":
        make, of = VALUES["two tiles"]  # a load takes rectangles
    else:
        make, of = VALUES["load"]
    at, columns = TARGETS[target]

    result = changed(x, make, MASKS[mask], at, sign, first=first)

    wanted = expected(of(x), MASKS[mask](ROWS, COLUMNS), columns, sign)
    np.testing.assert_allclose(result, wanted, rtol=2**-22)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("buffer", [nl.sbuf, nl.psum], ids=["SBUF", "PSUM"])
def test_masked_values_of_every_kind_are_added(value, target, buffer, x):
    make, of = VALUES[value]
    at, columns = TARGETS[target]

    result = changed(x, make, MASKS["columns"], at, "+=", buffer)

    wanted = expected(of(x.astype(np.float64)), COLUMNS < 20, columns, "+=")
    np.testing.assert_allclose(result, wanted, rtol=2**-20)


@pytest.mark.parametrize("started", [False, True], ids=["first", "after zeros"])
def test_a_masked_product_accumulates_in_its_part_of_psum(started, rng):
    a, b = rng.integers(0, 5, (2, 128, P)).astype(np.float32)

    @nki.jit
    def kernel(a, b):
        i, j = nl.arange(P)[:, None], nl.arange(F)[None, :]
        tile = (nl.zeros if started else nl.ndarray)((P, F), dtype=nl.float32, buffer=nl.psum)
        left, right = nl.load(a), nl.load(b[:, 0:F])
        for _ in nl.affine_range(3):
            tile[i, j] += nisa.nc_matmul(left, right, mask=j < 20)
        return stored(nl.copy(tile))

    result = kernel(a, b)

    np.testing.assert_array_equal(result[:, :20], 3 * (a.T @ b)[:, :20])
    rest = result[:, 20:]
    assert not rest.any() if started else np.isnan(rest).all()


def test_a_masked_column_is_repeated_where_its_mask_lets_it(x):
    @nki.jit
    def kernel(x):
        i = nl.arange(P)[:, None]
        tile, more = nl.full((P, F), 5, dtype=nl.float32), nl.full((P, F), 5, dtype=nl.float32)
        column = nl.load(x[i, nl.arange(1)[None, :]], mask=i < 9)
        tile[...] = column
        more[...] += column
        return stored(tile), stored(more)

    inside = ROWS < 9
    assigned, added = kernel(x)
    np.testing.assert_array_equal(assigned, np.where(inside, x[:, :1], 5))
    np.testing.assert_array_equal(added, np.where(inside, x[:, :1] + 5, 5))


def test_a_masked_value_keeps_its_mask_when_axes_of_extent_1_go(x):
    @nki.jit
    def kernel(x):
        i, j = nl.arange(P)[:, None], nl.arange(F)[None, :]
        tile = nl.full((P, 1, F), 5, dtype=nl.float32)
        value = nl.load(x[i, j], mask=j < 20)
        tile[...] = value
        return stored(tile)

    np.testing.assert_array_equal(kernel(x)[:, 0], np.where(COLUMNS < 20, x, 5))


@pytest.mark.parametrize("sign", ["=", "+="])
def test_what_the_mask_cuts_off_may_lie_outside_the_target(sign, x):
    @nki.jit
    def kernel(x):
        i, j = nl.arange(P)[:, None], nl.arange(F)[None, :]
        tile = nl.full((P, 10), 5, dtype=nl.float32)
        if sign == "=":
            tile[i, j] = nl.load(x[i, j], mask=j < 10)
        else:
            tile[i, j] += nl.load(x[i, j], mask=j < 10)
        return stored(tile)

    np.testing.assert_array_equal(kernel(x), x[:, :10] + (0 if sign == "=" else 5))


def over_the_end(v, i, x):
    v[i, 60 + nl.arange(4)[None, :]] = -1.0


def under_another_name(v, i, x):
    other = v
    other[i, 60 + nl.arange(4)[None, :]] = -1.0


def by_an_instruction(v, i, x):
    nisa.dma_copy(dst=v[:, 60:64], src=x[0:128, 60:64])


def as_a_whole(v, i, x):
    v[...] = nl.load(x)


def by_the_rest_of_the_mask(v, i, x):
    j = nl.arange(64)[None, :]
    v[i, j] = nl.load(x[i, j], mask=j >= 60)


@pytest.mark.parametrize(
    ("write", "tail"),
    [
        (over_the_end, -1.0), (under_another_name, -1.0), (by_an_instruction, 2.0),
        (as_a_whole, 2.0), (by_the_rest_of_the_mask, 2.0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("adds", [True, False])
def test_what_is_written_to_a_masked_value_later_counts(write, tail, adds):
    @nki.jit
    def kernel(x):
        i, j = nl.arange(128)[:, None], nl.arange(64)[None, :]
        v = nl.load(x[i, j], mask=j < 60)
        write(v, i, x)
        out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
        total = nl.zeros((128, 64), dtype=nl.float32)
        if adds:
            total += v
        else:
            total[...] = v
        nl.store(out, value=total)
        return out

    found = kernel(np.full((128, 64), 2.0, np.float32))

    np.testing.assert_array_equal(found[:, :60], 2.0)
    np.testing.assert_array_equal(found[:, 60:], tail)
