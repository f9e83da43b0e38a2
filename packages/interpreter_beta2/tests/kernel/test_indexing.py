"""Subscripts of a tensor, and what they select."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from neuroncore.errors import AccessError, ShapeError
from nki_beta2 import BACKEND

X = np.arange(4 * 6 * 5, dtype=np.float32).reshape(4, 6, 5)


@pytest.fixture(params=["sbuf", "hbm"])
def cut(request, free_start):
    """`cut.read(key)`: what a kernel reads through t[key] of a tensor that holds X."""
    on_chip = request.param == "sbuf"

    def read(key):
        return free_start.run(
            lambda x: free_start.out((free_start.tile(x) if on_chip else x)[key]), X
        )

    return SimpleNamespace(read=read, on_chip=on_chip, version=free_start.version)


@pytest.fixture
def free_start(every, speak):
    """Each version with views of few partitions that may start anywhere."""
    return speak(every.version, start_partition="ignore")


SLICES = [
    np.s_[:, :, :],
    np.s_[1:3, :, 2:],
    np.s_[:, 1:6:2, :],
    np.s_[..., 4:5],
    np.s_[0:2],
    np.s_[:, 2:4],
    np.s_[1:2, ..., ::3],
]


@pytest.mark.parametrize("key", SLICES, ids=str)
def test_slices_read_what_numpys_do(cut, key):
    assert np.array_equal(cut.read(key), X[key])


@pytest.mark.parametrize("key", [np.s_[:, -3:, :], np.s_[:, :-1, 1:-1]], ids=str)
def test_slice_bounds_may_count_from_the_end(cut, key):
    assert np.array_equal(cut.read(key), X[key])


# On chip the partition dimension stays, and at least two dimensions do [NKI 0.5 indexing guide].
@pytest.mark.parametrize(
    ("key", "on_chip", "in_hbm"),
    [
        (np.s_[2], (1, 6, 5), (6, 5)),
        (np.s_[2, 3], (1, 5), (5,)),
        (np.s_[2, 3, 4], (1, 1), (1,)),
        (np.s_[:, 3], (4, 5), (4, 5)),
        (np.s_[:, :, 0], (4, 6), (4, 6)),
        (np.s_[:, 3, 4], (4, 1), (4,)),
        (np.s_[1:3, 3, 4], (2, 1), (2,)),
    ],
    ids=str,
)
def test_an_int_drops_its_dimension_but_never_the_partitions(cut, key, on_chip, in_hbm):
    result = cut.read(key)

    assert result.shape == (on_chip if cut.on_chip else in_hbm)
    assert np.array_equal(result.ravel(), X[key].ravel())


def test_an_option_drops_the_partition_dimension(speak):
    """Documents up to 0.4 show t[0] of a (4, 6, 5) tile as (6, 5)."""
    dropping = speak("0.4", partition_index="drop")

    shape = dropping.inside(lambda: dropping.nl.ndarray((4, 6, 5), dropping.nl.float32)[0].shape)

    assert shape == (6, 5)


def test_ds_is_a_slice_by_size(every):
    x = np.arange(24, dtype=np.float32).reshape(4, 6)

    result = every.run(lambda t: every.out(every.tile(t)[:, every.nl.ds(2, 3)]), x)

    assert np.array_equal(result, x[:, 2:5])


def test_views_of_views_read_the_same_storage(free_start):
    def kernel(x):
        return free_start.out(free_start.tile(x)[1:4][0:2, 2:6][:, 1:3, ::2])

    result = free_start.run(kernel, X)

    assert np.array_equal(result, X[1:4][0:2, 2:6][:, 1:3, ::2])


def test_a_view_is_written_through(every):
    nl, nisa = every.nl, every.nisa

    def kernel():
        tile = nl.zeros((4, 6), nl.float32)
        nisa.memset(tile[0:4, 1:6:2], 1.0)
        return every.out(tile)

    assert np.array_equal(every.run(kernel), np.tile([0.0, 1.0], (4, 3)))


# -- negative indices ------------------------------------------------------------------------------


def test_negative_indices_came_with_0_6(cut):
    """The parser frontend of earlier versions rejects them."""
    if cut.version >= "0.6":
        assert np.array_equal(cut.read(np.s_[:, -1]), X[:, -1])
    else:
        with pytest.raises(AccessError, match="negative"):
            cut.read(np.s_[:, -1])


@pytest.mark.parametrize("version", ["0.2", "0.6"])
def test_an_option_decides_about_negative_indices(speak, version):
    allowing, rejecting = (speak(version, negative_index=rule) for rule in ("allow", "reject"))

    def last(lang):
        return lang.run(lambda x: lang.out(lang.tile(x)[:, -1]), X)

    assert np.array_equal(last(allowing), X[:, -1])
    with pytest.raises(AccessError):
        last(rejecting)


# -- what is rejected ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    [
        np.s_[4],
        np.s_[-5],
        np.s_[:, 6],
        np.s_[0:5],
        np.s_[:, 4:2],
        np.s_[:, 0:7],
        np.s_[:, -7:2],
        np.s_[:, ::-1],
        np.s_[:, ::0],
        np.s_[0, 0, 0, 0],
        np.s_[..., 0, ...],
        np.s_[:, 1.0],
        np.s_[:, True],
        np.s_[:, None],
        np.s_[:, [0, 1]],
        np.s_[:, "a"],
        np.s_[:, 1.0:2.0],
        (slice(None), np.array([0, 1])),
    ],
    ids=str,
)
def test_anything_else_in_brackets_is_rejected(every, key):
    with pytest.raises(AccessError):
        every.inside(lambda: every.nl.ndarray((4, 6, 5), every.nl.float32)[key])


def test_there_is_no_stride_over_partitions(every):
    with pytest.raises(AccessError, match="step 2 over partitions"):
        every.inside(lambda: every.nl.ndarray((4, 6), every.nl.float32)[0:4:2])


def test_hbm_has_no_partitions_to_stride_over(every):
    result = every.run(lambda x: every.out(x[0:4:2]), X)

    assert np.array_equal(result, X[::2])


@pytest.mark.parametrize(("bound", "good"), [(127, True), (128, True), (129, False)])
def test_the_last_row_is_the_last_row(every, bound, good):
    def rows():
        return every.nl.ndarray((128, 2), every.nl.float32)[0:bound].shape

    if good:
        assert every.inside(rows) == (bound, 2)
    else:
        with pytest.raises(AccessError, match="slice 0:129 is outside dimension 0"):
            every.inside(rows)


@pytest.mark.parametrize("version", BACKEND.versions)
def test_a_slice_may_be_empty_up_to_0_3(speak, version, ramp):
    lang = speak(version)

    def kernel(x):
        return x[lang.nl.ds(4, 0)].shape, x[2:2, 1:3][0:0].shape, lang.tile(x)[0:4, 8:8].shape

    if version <= "0.3":
        shapes = []
        lang.run(lambda x: shapes.append(kernel(x)), ramp)
        assert shapes == [((0, 8), (0, 2), (4, 0))]
    else:
        with pytest.raises(AccessError, match="slice 4:4 is outside dimension 0"):
            lang.run(kernel, ramp)


@pytest.mark.parametrize(
    "use",
    [
        lambda lang, x, t: lang.nisa.dma_copy(x[0:0], t[0:0]),
        lambda lang, x, t: lang.nisa.tensor_copy(t[0:0], t[0:0]),
        lambda lang, x, t: lang.nisa.memset(t[:, 0:0], 0.0),
    ],
)
def test_no_instruction_takes_an_empty_slice(speak, use, ramp):
    lang = speak("0.3")

    with pytest.raises(ShapeError, match="has no elements"):
        lang.run(lambda x: use(lang, x, lang.tile(x)), ramp)
