"""An access that a number of the device moves means the same everywhere: in operators, methods,
functions and instructions, as what is read and as what is written, in every memory.
"""

from functools import partial

import numpy as np
import pytest

from neuroncore.errors import AccessError, MemorySpaceError
from nki_beta1 import nisa, nki, nl, nt
from nki_dtypes import bfloat16, float16

X = np.arange(1, 65, dtype=np.float32).reshape(8, 8)
LEFT, P, Q = X[:, :4], np.arange(8)[:, None], np.arange(4)[None, :]
START = 3
PART, AROUND = X[:, 3:7], (np.arange(4) * 3) % 4
COLUMN = np.s_[:, 3:4]


def stored(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=tile)
    return out


def axes():
    return nl.arange(8)[:, None], nl.arange(4)[None, :]


def number(start):
    return np.array([[start, 0]], np.int32)


FORMS = {
    "an index expression": lambda t, n: t[nl.arange(8)[:, None], n[0, 0] + nl.arange(4)[None, :]],
    "moved back and forth": lambda t, n: t[
        nl.arange(8)[:, None], nl.arange(4)[None, :] - 1 + n[0, 0] + 1
    ],
    "of another access": lambda t, n: t.reshape((8, 8))[
        nl.arange(8)[:, None], n[0, n[0, 1]] + nl.arange(4)[None, :]
    ],
}

READS = {
    "-t": (lambda a: -a, -PART),
    "abs": (abs, PART),
    "t + 0": (lambda a: a + 0.0, PART),
    "1 - t": (lambda a: 1 - a, 1 - PART),
    "t + t": (lambda a: a + a, 2 * PART),
    "t * tile": (lambda a: a * nl.full((8, 4), 3, dtype=nl.float32), 3 * PART),
    "t ** 2": (lambda a: a**2, PART**2),
    "t > 30": (lambda a: a > 30.5, PART > 30.5),
    "t == t": (lambda a: a == a, PART > 0),
    ".astype": (lambda a: a.astype(nl.float16), PART),
    ".reshape": (lambda a: nl.copy(a.reshape((8, 2, 2))), PART.reshape(8, 2, 2)),
    ".view": (lambda a: nl.copy(a.view(nl.int32)), PART.copy().view(np.int32)),
    ".view of halves": (lambda a: nl.copy(a.view(nl.int16)), PART.copy().view(np.int16)),
    ".expand_dims": (lambda a: nl.copy(a.expand_dims(1)), PART[:, None]),
    ".broadcast_to": (lambda a: nl.copy(a[:, 0:1].broadcast_to((8, 5))),
                      np.repeat(X[COLUMN], 5, axis=1)),
    "[slices]": (lambda a: nl.copy(a[:, 1:3]), PART[:, 1:3]),
    "[index expressions]": (lambda a: nl.copy(a[axes()[0], 1 + nl.arange(2)[None, :]]),
                            PART[:, 1:3]),
    "[no strides]": (lambda a: a[axes()[0], (axes()[1] * 3) % 4] + 0, PART[:, AROUND]),
    "nl.broadcast_to": (lambda a: nl.copy(nl.broadcast_to(a[:, 0:1], shape=(8, 5))),
                        np.repeat(X[COLUMN], 5, axis=1)),
    "nl.broadcast_to as it is": (lambda a: nl.copy(nl.broadcast_to(a, shape=(8, 4))), PART),
    "nl.expand_dims": (lambda a: nl.copy(nl.expand_dims(a, 1)), PART[:, None]),
    "nl.static_cast": (lambda a: nl.static_cast(a, nl.int32), PART),
    "nl.transpose": (nl.transpose, PART.T),
    "nl.copy": (nl.copy, PART),
    "nl.copy under a mask": (lambda a: nl.copy(a, mask=axes()[1] < 2)[:, 0:2], PART[:, :2]),
    "nl.add of a column": (lambda a: nl.add(nl.copy(a, dtype=nl.bfloat16), a[:, 0:1]),
                           PART + PART[:, :1]),
    "nl.where": (lambda a: nl.where(a > 30.0, a, 0.0), np.where(PART > 30, PART, 0)),
    "nl.max": (lambda a: nl.max(a, axis=1), PART.max(1, keepdims=True)),
    "nisa.tensor_copy": (nisa.tensor_copy, PART),
    "nisa.tensor_copy_dynamic_src": (nisa.tensor_copy_dynamic_src, PART),
    "nisa.nc_matmul": (lambda a: nisa.nc_matmul(a, nl.ones((8, 2), dtype=nl.float32)),
                       np.repeat(PART.sum(0)[:, None], 2, axis=1)),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", READS)
def test_what_is_read_begins_where_the_number_says(name, form):
    use, expected = READS[name]

    @nki.jit
    def kernel(x, start):
        return stored(use(FORMS[form](nl.load(x), nl.load(start))))

    assert kernel(X, number(START)).shape == expected.shape
    np.testing.assert_array_equal(kernel(X, number(START)).astype(np.float32), expected)


WHOLE = [name for name in READS if name not in {"nl.copy under a mask"}]


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("start", [-1, 5, 8])
def test_a_read_past_the_dimension_is_rejected(name, start):
    @nki.jit
    def kernel(x, start):
        return stored(READS[name][0](FORMS["an index expression"](nl.load(x), nl.load(start))))

    with pytest.raises(AccessError, match="index out of range in dimension 1") as caught:
        kernel(X, number(start))
    assert "^" in str(caught.value)


@pytest.mark.parametrize("kind", [np.int32, np.int16, np.uint8, np.float32, float16, bfloat16])
def test_elements_of_every_size_are_found(kind):
    def numpy_kind():
        return np.dtype(kind) if isinstance(kind, type) else kind.storage

    x = X.astype(numpy_kind())

    @nki.jit
    def kernel(x, start):
        part = FORMS["an index expression"](nl.load(x), nl.load(start))
        return stored(part + part), stored(nl.copy(part.reshape((8, 2, 2))))

    twice, folded = kernel(x, number(START))
    np.testing.assert_array_equal(twice.astype(np.float32), 2 * PART)
    np.testing.assert_array_equal(folded.astype(np.float32), PART.reshape(8, 2, 2))


@pytest.mark.parametrize("dim", [1, 2])
def test_a_number_in_any_free_dimension(dim):
    cube = np.arange(4 * 6 * 6, dtype=np.float32).reshape(4, 6, 6)

    @nki.jit
    def kernel(x, start):
        n, t = nl.load(start), nl.load(x)
        i, j, k = nl.mgrid[0:4, 0:2, 0:2]
        part = t[i, n[0, 0] + j, k] if dim == 1 else t[i, j, n[0, 0] + k]
        return stored(part * 2.0), stored(nl.copy(part.expand_dims(1)))

    part = cube[:, 3:5, :2] if dim == 1 else cube[:, :2, 3:5]
    twice, expanded = kernel(cube, number(START))
    np.testing.assert_array_equal(twice, 2 * part)
    np.testing.assert_array_equal(expanded, part[:, None])


# -- what is written ------------------------------------------------------------------------------


def assigned(make):
    def write(c, t, n):
        p, q = axes()
        c[p, n[0, 0] + q] = make(t, n, p, q)

    return write


def changed(op):
    def write(c, t, n):
        p, q = axes()
        key = p, n[0, 0] + q
        c[key] = op(c[key], t[p, q])

    return write


def by_a_name(c, t, n):
    p, q = axes()
    part = c[p, n[0, 0] + q]
    part += t[p, q]


def in_brackets(key, value):
    def write(c, t, n):
        p, q = axes()
        c[p, n[0, 0] + q][key(p, q)] = value(t, p, q)

    return write


def column(c, t, n):
    c[:, n[0, 0]] = 7.0


def column_from_another(c, t, n):
    c[:, n[0, 0]] = c[:, n[0, 1]]


def column_in_place(c, t, n):
    c[:, n[0, 0]] += 1


def _iadd(a, b):
    a += b
    return a


def _imul(a, b):
    a *= b
    return a


def _new(change):
    """Ten times X, changed by NumPy where the number says."""
    c = 10 * X
    change(c[:, 3:7])
    return c


def _set(value, where=np.s_[:]):
    def change(part):
        part[where] = value

    return partial(_new, change)


def _add(value, where=np.s_[:]):
    def change(part):
        part[where] += value

    return partial(_new, change)


BELOW = P >= Q
WRITES = {
    "= 5": (assigned(lambda t, n, p, q: 5.0), _set(5)),
    "= nl.exp": (assigned(lambda t, n, p, q: nl.exp(t[p, q] * 0)), _set(1)),
    "= nl.full": (assigned(lambda t, n, p, q: nl.full((8, 4), 2, dtype=nl.float32)), _set(2)),
    "= nisa.memset": (assigned(lambda t, n, p, q: nisa.memset((8, 4), 2, dtype=nl.float32)),
                      _set(2)),
    "= nisa.tensor_copy": (assigned(lambda t, n, p, q: nisa.tensor_copy(t[p, q])), _set(LEFT)),
    "= a column": (assigned(lambda t, n, p, q: t[:, 0:1]), _set(X[:, :1])),
    "= a moved access": (assigned(lambda t, n, p, q: t[p, n[0, 0] + q]), _set(PART)),
    "= a masked rectangle": (assigned(lambda t, n, p, q: nl.copy(t[p, q], mask=q < 2)),
                             _set(LEFT[:, :2], np.s_[:, :2])),
    "= masked elements": (assigned(lambda t, n, p, q: nl.copy(t[p, q], mask=p >= q)),
                          _set(LEFT[BELOW], BELOW)),
    "+= 5": (changed(lambda c, t: _iadd(c, 5.0)), _add(5)),
    "+= a tile": (changed(_iadd), _add(LEFT)),
    "+= a masked rectangle": (changed(lambda c, t: _iadd(c, nl.copy(t, mask=axes()[1] < 2))),
                              _add(LEFT[:, :2], np.s_[:, :2])),
    "+= masked elements": (
        changed(lambda c, t: _iadd(c, nl.copy(t, mask=axes()[0] >= axes()[1]))),
        _add(LEFT[BELOW], BELOW)),
    "*= a tile": (changed(_imul), lambda: _set(10 * PART * LEFT)()),
    "by a name": (by_a_name, _add(LEFT)),
    "[...] =": (in_brackets(lambda p, q: ..., lambda t, p, q: 7.0), _set(7)),
    "[slices] =": (in_brackets(lambda p, q: np.s_[:, 1:2], lambda t, p, q: 7.0),
                   _set(7, np.s_[:, 1:2])),
    "[no strides] =": (in_brackets(lambda p, q: (p, (q * 3) % 4), lambda t, p, q: t[p, q]),
                       _set(LEFT, np.s_[:, AROUND])),
    "a column =": (column, _set(7, np.s_[:, :1])),
    "a column = another": (column_from_another, _set(10 * X[:, :1], np.s_[:, :1])),
    "a column += 1": (column_in_place, _add(1, np.s_[:, :1])),
}  # fmt: skip


def written(write, start, memory):
    @nki.jit
    def kernel(x, start):
        n, t = nl.load(start), nl.load(x)
        c = nl.ndarray((8, 8), dtype=nl.float32, buffer=getattr(nl, memory))
        c[...] = nl.multiply(t, 10)
        write(c, t, n)
        return stored(c)

    return kernel(X, number(start))


@pytest.mark.parametrize("memory", ["sbuf", "psum"])
@pytest.mark.parametrize("name", WRITES)
def test_what_is_written_begins_where_the_number_says(name, memory):
    write, expected = WRITES[name]

    np.testing.assert_array_equal(written(write, START, memory), expected())


def test_a_load_is_written_where_the_number_says():
    @nki.jit
    def kernel(x, start):
        n, cache = nl.load(start), nl.zeros((8, 8), dtype=nl.float32)
        p, q = axes()
        cache[p, n[0, 0] + q] = nl.load(x[p, q])
        return stored(cache)

    expected = np.zeros((8, 8))
    expected[:, 3:7] = LEFT
    np.testing.assert_array_equal(kernel(X, number(START)), expected)


CUT_OFF = {"= a masked rectangle", "+= a masked rectangle"}  # their mask ends after two columns


@pytest.mark.parametrize("memory", ["sbuf", "psum"])
@pytest.mark.parametrize("name", [name for name in WRITES if name not in CUT_OFF])
@pytest.mark.parametrize("start", [-1, 8])
def test_a_write_past_the_dimension_is_rejected(name, start, memory):
    with pytest.raises(AccessError, match="index out of range in dimension 1") as caught:
        written(WRITES[name][0], start, memory)
    assert "^" in str(caught.value)


@pytest.mark.parametrize("starts", ["zeros", "ndarray"])
def test_a_product_is_accumulated_where_the_number_says(starts):
    @nki.jit
    def kernel(x, start):
        n, t = nl.load(start), nl.load(x)
        p, q = axes()
        acc = getattr(nl, starts)((8, 8), dtype=nl.float32, buffer=nl.psum)
        for _ in range(2):
            acc[p, n[0, 0] + q] += nisa.nc_matmul(t, t[p, q])
        return stored(acc)

    np.testing.assert_array_equal(kernel(X, number(START))[:, 3:7], 2 * X.T @ LEFT)


def test_a_block_is_written_where_the_number_says():
    @nki.jit
    def kernel(x, start):
        n, t = nl.load(start), nl.load(x)
        p, q = axes()
        blocks = nl.zeros((2, nl.par_dim(8), 8), dtype=nl.float32)
        blocks[1, p, n[0, 0] + q] = 9
        blocks[1, p, n[0, 0] + q] += t[p, q]
        return stored(blocks[0]), stored(blocks[1])

    other, block = kernel(X, number(START))
    expected = np.zeros((8, 8))
    np.testing.assert_array_equal(other, expected)
    expected[:, 3:7] = 9 + LEFT
    np.testing.assert_array_equal(block, expected)


def test_a_reduction_over_a_loop_is_collected_where_the_number_says():
    @nki.jit
    def kernel(x, start):
        n, t = nl.load(start), nl.load(x)
        p, q = axes()
        total = nl.ndarray((8, 8), dtype=nl.float32)
        for b in nl.affine_range(3):
            total[p, n[0, 0] + q] = nl.loop_reduce(t[p, q], op=np.add, loop_indices=[b])
        return stored(total)

    np.testing.assert_array_equal(kernel(X, number(START))[:, 3:7], 3 * LEFT)


def test_device_print_and_scalar_look_where_the_number_says(capsys):
    @nki.jit
    def kernel(x, start):
        n, t = nl.load(start), nl.load(x)
        nl.device_print("part", t[0:1, n[0, 0]])
        assert nt.scalar(nl.copy(t, dtype=nl.int32)[0:1, n[0, 0]]) == 4
        return stored(t)

    kernel(X, number(START))
    assert "[[4.]]" in capsys.readouterr().out


# -- in HBM ---------------------------------------------------------------------------------------

HBM = {
    "as it is": (lambda a: nl.load(a), PART),
    ".reshape": (lambda a: nl.load(a.reshape((8, 2, 2))), PART.reshape(8, 2, 2)),
    ".view": (lambda a: nl.load(a.view(nl.int32)), PART.copy().view(np.int32)),
    ".expand_dims": (lambda a: nl.load(a.expand_dims(1)), PART[:, None]),
    "[slices]": (lambda a: nl.load(a[2:4, 1:3]), PART[2:4, 1:3]),
    "[index expressions]": (lambda a: nl.load(a[axes()[0], nl.arange(2)[None, :]]), PART[:, :2]),
    "[no strides]": (lambda a: nl.load(a[axes()[0], (axes()[1] * 3) % 4]), PART[:, AROUND]),
    "load_transpose2d": (nl.load_transpose2d, PART.T),
    "load_transpose2d under a mask": (
        lambda a: nl.load_transpose2d(a, mask=axes()[1] < 2)[0:2, :], PART.T[:2]),
}  # fmt: skip


@pytest.mark.parametrize("name", HBM)
def test_what_is_loaded_begins_where_the_number_says(name):
    use, expected = HBM[name]

    @nki.jit
    def kernel(x, start):
        return stored(use(FORMS["an index expression"](x, nl.load(start))))

    np.testing.assert_array_equal(kernel(X, number(START)), expected)


def test_rows_from_a_number_on_are_transposed():
    @nki.jit
    def kernel(x, start):
        n = nl.load(start)
        return stored(
            nl.load_transpose2d(x[n[0, 0] + nl.arange(4)[:, None], nl.arange(3)[None, :]])
        ), stored(nl.load_transpose2d(x.reshape((8, 2, 4))[n[0, 0]]))

    rows, one = kernel(X, number(START))
    np.testing.assert_array_equal(rows, X[3:7, :3].T)
    np.testing.assert_array_equal(one, X[3].reshape(2, 4).T)


VIEWS_OF_ROWS = {
    "load_transpose2d": nl.load_transpose2d,
    ".reshape": lambda rows: nl.load(rows.reshape((4, 2, 2))),
    ".expand_dims": lambda rows: nl.load(rows.expand_dims(1)),
    "[slices]": lambda rows: nl.load(rows[0:2, 0:2]),
}


@pytest.mark.parametrize("name", VIEWS_OF_ROWS)
def test_rows_that_a_tile_names_are_gathered_before_they_are_seen_otherwise(name):
    @nki.jit
    def kernel(x, rows):
        return stored(VIEWS_OF_ROWS[name](x[nl.load(rows), axes()[1]]))

    with pytest.raises(AccessError, match="a view of rows that an index tile names") as caught:
        kernel(X, np.array([[3], [0], [7], [1]], np.int32))
    assert "nl.load" in str(caught.value) and "nl.transpose" in str(caught.value)


def test_an_operator_on_what_lies_in_hbm_asks_for_a_load():
    @nki.jit
    def kernel(x, start):
        return stored(FORMS["an index expression"](x, nl.load(start)) + 1)

    with pytest.raises(MemorySpaceError, match=r"nl\.load first"):
        kernel(X, number(START))


@pytest.mark.parametrize("on_chip", [True, False])
def test_two_numbers_do_not_move_one_access(on_chip):
    @nki.jit
    def kernel(x, start):
        n = nl.load(start)
        part = FORMS["an index expression"](nl.load(x) if on_chip else x, n)
        return stored(nl.copy(part[:, n[0, 0]]))

    with pytest.raises(AccessError, match="indexed with another tile"):
        kernel(X, number(START))


INDEX_TILES = {
    "a column": lambda rows, n: rows[:, n[0, 1]],
    "an index expression": lambda rows, n: rows[
        nl.arange(4)[:, None], n[0, 1] + nl.arange(1)[None, :]
    ],
    "no strides": lambda rows, n: rows[nl.arange(4)[:, None], nl.arange(1)[None, :] * 5 % 3],
}


@pytest.mark.parametrize("form", INDEX_TILES)
def test_an_index_tile_may_itself_be_such_an_access(form):
    @nki.jit
    def kernel(x, rows, start):
        tile, n = nl.load(rows), nl.load(start)
        return stored(nl.load(x[INDEX_TILES[form](tile, n), axes()[1]]))

    rows = np.array([[9, 3], [9, 0], [9, 7], [9, 1]], np.int32)
    if form == "no strides":
        rows = rows[:, ::-1].copy()
    found = kernel(X, rows, np.array([[0, 1]], np.int32))
    np.testing.assert_array_equal(found, X[[3, 0, 7, 1], :4])
