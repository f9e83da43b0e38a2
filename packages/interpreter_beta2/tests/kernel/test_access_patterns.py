"""`.ap`: explicit [step, count] patterns over a tensor's storage."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.errors import AccessError, DTypeError

X = np.arange(4 * 24, dtype=np.float32).reshape(4, 24)
TABLE = np.arange(40, dtype=np.float32).reshape(10, 4)


def elements(array, pattern, offset=0):
    """The documented meaning: element (i0, …) is flat[offset + Σ step · index]."""
    index = np.int64(offset)
    for step, count in pattern:
        index = np.asarray(index)[..., None] + step * np.arange(count)
    return array.ravel()[index]


@pytest.mark.parametrize("where", ["sbuf", "hbm"])
@pytest.mark.parametrize(
    ("pattern", "offset"),
    [
        ([[24, 4], [1, 24]], 0),
        ([(24, 4), (1, 6)], 5),
        ([[24, 4], [6, 4], [1, 2]], 3),
        ([[24, 4], [1, 4], [6, 4]], 0),
        ([[24, 4], [0, 7]], 2),
        ([[24, 4], [-1, 24]], 23),
        ([[24, 1], [1, 3]], 0),
    ],
    ids=str,
)
def test_a_pattern_reads_step_times_index(every, where, pattern, offset):
    def kernel(x):
        source = every.tile(x) if where == "sbuf" else x
        return every.out(source.ap(pattern, offset=offset))

    assert np.array_equal(every.run(kernel, X), elements(X, pattern, offset))


def test_hbm_has_patterns_of_any_kind(every):
    pattern = [[1, 24], [24, 4]]

    assert np.array_equal(every.run(lambda x: every.out(x.ap(pattern)), X), X.T)


def test_a_pattern_is_written_through(every):
    nl = every.nl

    def kernel():
        tile = nl.zeros((4, 6), nl.float32)
        every.nisa.memset(tile.ap([[6, 4], [2, 3]], offset=1), 1.0)
        return every.out(tile)

    assert np.array_equal(every.run(kernel), np.tile([0.0, 1.0], (4, 3)))


def test_a_pattern_may_see_other_formats(every):
    """Steps, counts and offset are in elements of the new dtype; little-endian halves."""
    pattern = [[48, 4], [2, 24]]

    result = every.run(lambda x: every.out(x.ap(pattern, offset=1, dtype=every.nl.uint16)), X)

    assert np.array_equal(result, (X.view(np.uint32) >> 16).astype(np.uint16))


# -- on views that have been indexed ---------------------------------------------------------------


@pytest.mark.parametrize("version", ["0.2", "0.3", "0.4"])
def test_up_to_0_4_a_view_has_no_pattern(speak, version):
    old = speak(version)

    with pytest.raises(AccessError, match="indexed already"):
        old.run(lambda x: old.tile(x)[:, 4:8].ap([[24, 4], [1, 2]]), X)


@pytest.mark.parametrize("version", ["0.5", "0.6"])
def test_from_0_5_on_a_pattern_starts_at_the_view(speak, version):
    new = speak(version)

    result = new.run(lambda x: new.out(new.tile(x)[:, 4:8].ap([[24, 4], [1, 2]], offset=1)), X)

    assert np.array_equal(result, X[:, 5:7])


@pytest.mark.parametrize(("rule", "first"), [("replace", 1), ("compose", 5)])
@pytest.mark.parametrize("version", ["0.2", "0.6"])
def test_an_option_decides_where_a_pattern_starts(speak, version, rule, first):
    lang = speak(version, ap_offset=rule)

    result = lang.run(lambda x: lang.out(lang.tile(x)[:, 4:8].ap([[24, 4], [1, 2]], offset=1)), X)

    assert np.array_equal(result, X[:, first : first + 2])


# -- dynamic offsets -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
@pytest.mark.parametrize("row", [0, 3, 6])
def test_a_scalar_offset_moves_the_pattern_by_rows(every, row, dtype):
    def kernel(table, start):
        moved = table.ap([[4, 4], [1, 4]], scalar_offset=every.tile(start), indirect_dim=0)
        return every.out(moved)

    result = every.run(kernel, TABLE, np.array([[row]], dtype))

    assert np.array_equal(result, TABLE[row : row + 4])


def test_a_scalar_offset_counts_in_the_indexed_dimension(every):
    def kernel(x, start):
        columns = every.tile(x).ap([[24, 4], [1, 3]], scalar_offset=every.tile(start),
                                   indirect_dim=1)  # fmt: skip
        tile = every.nl.ndarray((4, 3), every.nl.float32)
        every.nisa.tensor_copy(tile, columns)
        return every.out(tile)

    assert np.array_equal(every.run(kernel, X, np.array([[7]], np.int32)), X[:, 7:10])


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_a_vector_offset_gathers_rows(every, dtype):
    rows = np.array([[9], [0], [3], [3]], dtype)

    def kernel(table, rows):
        gathered = table.ap([[4, 4], [1, 4]], vector_offset=every.tile(rows), indirect_dim=0)
        return every.out(gathered)

    assert np.array_equal(every.run(kernel, TABLE, rows), TABLE[rows[:, 0]])


def test_a_vector_offset_scatters_rows(every):
    rows = np.array([[2], [0], [1]], np.int32)

    def kernel(x, rows):
        out = every.nl.zeros((3, 4), every.nl.float32, every.nl.shared_hbm)
        target = out.ap([[4, 3], [1, 4]], vector_offset=every.tile(rows), indirect_dim=0)
        every.nisa.dma_copy(dst=target, src=every.tile(x))
        return out

    result = every.run(kernel, TABLE[:3], rows)

    assert np.array_equal(result[rows[:, 0]], TABLE[:3])


@pytest.mark.parametrize("kind", ["scalar_offset", "vector_offset"])
@pytest.mark.parametrize("index", [10, -1])
def test_an_index_outside_the_tensor_is_an_error(every, kind, index):
    count = 1 if kind == "scalar_offset" else 2

    def kernel(table, rows):
        moved = table.ap([[4, count], [1, 4]], indirect_dim=0, **{kind: every.tile(rows)})
        return every.out(moved)

    with pytest.raises(AccessError, match=f"is {index}, outside the indexed dimension"):
        every.run(kernel, TABLE, np.full((count, 1), index, np.int32))


def test_skip_leaves_rows_outside_untouched(every):
    nl, nisa = every.nl, every.nisa

    def kernel(table, rows):
        tile = nl.full((2, 4), -1.0, nl.float32) if hasattr(nl, "full") else minus_one()
        source = table.ap([[4, 2], [1, 4]], vector_offset=every.tile(rows), indirect_dim=0)
        nisa.dma_copy(dst=tile, src=source, oob_mode=nisa.oob_mode.skip)
        return every.out(tile)

    def minus_one():
        tile = nl.ndarray((2, 4), nl.float32)
        nisa.memset(tile, -1.0)
        return tile

    result = every.run(kernel, TABLE, np.array([[99], [1]], np.int32))

    assert np.array_equal(result, [[-1.0] * 4, TABLE[1]])


# -- what is rejected ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "offset", "why"),
    [
        ([[24, 4], [1, 25]], 0, "leaves the tensor"),
        ([[24, 4], [1, 24]], 1, "leaves the tensor"),
        ([[24, 4], [-1, 2]], 0, "leaves the tensor"),
        ([[24, 3], [1, 25]], 0, "runs into the next partition"),
        ([[48, 2], [1, 24]], 0, "the partition access"),
        ([[1, 4], [1, 2]], 0, "the partition access"),
        ([[24, 0]], 0, "list of"),
        ([], 0, "list of"),
        ("ab", 0, "list of"),
        (None, 0, "list of"),
        ([[24, 4], [1]], 0, "list of"),
        ([[24, 4], [1, 4]], "x", "offset cannot be a str"),
        ([[24, 4], [1, 4]], 1.5, "offset cannot be a float"),
    ],
    ids=str,
)
def test_a_pattern_stays_inside_and_keeps_the_partitions(every, pattern, offset, why):
    nl = every.nl

    with pytest.raises(AccessError, match=why):
        every.inside(lambda: nl.ndarray((4, 24), nl.float32).ap(pattern, offset=offset).shape)


def test_a_pattern_that_leaves_the_tensor_matters_only_where_it_is_used(every):
    def kernel(x, uses):
        tile = every.tile(x)
        views = [tile.ap([[24, 4], [1, 12]], offset=12 * i) for i in range(3)]
        return every.out(views[2 if uses else 1])

    assert np.array_equal(every.run(kernel, X, False), X[:, 12:])
    with pytest.raises(AccessError, match="leaves the tensor") as wrong:
        every.run(kernel, X, True)
    assert ".ap(" in str(wrong.value)


@pytest.mark.parametrize(
    ("index", "why"),
    [
        (lambda t, nl: {"scalar_offset": 3}, "a dynamic offset is a tensor in SBUF"),
        (lambda t, nl: {"vector_offset": 3}, "a dynamic offset is a tensor in SBUF"),
        (lambda t, nl: {"scalar_offset": t(1, nl.float32)}, "does not fit"),
        (lambda t, nl: {"scalar_offset": t(1, nl.int16)}, "does not fit"),
        (lambda t, nl: {"scalar_offset": t(2, nl.int32)}, "does not fit"),
        (lambda t, nl: {"vector_offset": t(2, nl.int32)}, "does not fit"),
        (
            lambda t, nl: {"scalar_offset": t(1, nl.int32), "vector_offset": t(4, nl.int32)},
            "exclude each other",
        ),
        (lambda t, nl: {"vector_offset": t(4, nl.int32), "indirect_dim": 1}, "dimension 0"),
        (lambda t, nl: {"scalar_offset": t(1, nl.int32), "indirect_dim": 2}, "indirect_dim 2"),
    ],
)
def test_an_index_fits_its_use(every, index, why):
    nl = every.nl

    def kernel(table):
        table.ap([[4, 4], [1, 4]], **index(lambda n, dtype: nl.ndarray((n, 1), dtype), nl))

    with pytest.raises(AccessError, match=why):
        every.run(kernel, TABLE)


def test_a_dynamic_view_is_not_indexed_again(every):
    def kernel(table, start):
        table.ap([[4, 4], [1, 4]], scalar_offset=every.tile(start), indirect_dim=0)[0:2]

    with pytest.raises(AccessError, match="view with a dynamic offset"):
        every.run(kernel, TABLE, np.zeros((1, 1), np.int32))


def test_the_dtype_of_a_pattern_is_an_nki_dtype(every):
    with pytest.raises(DTypeError, match="'float31' is not an NKI dtype"):
        every.run(lambda x: x.ap([[1, 1]], dtype="float31"), X)


@pytest.mark.parametrize("kind", ["uint8", "int16", "uint32"])
def test_a_pattern_of_a_tensor_seen_as_another_dtype_is_one_of_its_bits(now, kind):
    nl = now.nl
    numbers = np.arange(64, dtype=np.float32).reshape(4, 16)

    def kernel(x):
        seen = x.view(getattr(nl, kind))
        width = seen.shape[1]
        return now.out(now.tile(seen.ap([[width, 4], [1, width]], 0)))

    assert now.run(kernel, numbers).tobytes() == numbers.tobytes()
