"""Tensor methods of 0.5 to 0.7: every view against NumPy, its limits from both sides."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.errors import AccessError, KernelError, ShapeError, UnsupportedError
from neuroncore.program import capture, execute_program
from nki_beta2 import BACKEND

X = np.arange(4 * 3 * 4 * 2, dtype=np.float32).reshape(4, 3, 4, 2)
ROWS = np.arange(10 * 4 * 3, dtype=np.float32).reshape(10, 4, 3)


@pytest.fixture(params=["0.5", "0.6"])
def new(request, speak):
    """The versions whose tensors have all the views."""
    return speak(request.param)


def filled(lang, view):
    """A kernel output with what a view on chip shows."""
    tile = lang.nl.ndarray(view.shape, dtype=view.dtype, buffer=lang.nl.sbuf)
    lang.nisa.tensor_copy(dst=tile, src=view)
    return lang.out(tile)


VIEWS = {
    "slice": (lambda t: t.slice(2, 1, 4), lambda x: x[:, :, 1:4]),
    "slice-step": (lambda t: t.slice(2, 0, 4, 2), lambda x: x[:, :, 0:4:2]),
    "slice-rows": (lambda t: t.slice(0, 0, 3), lambda x: x[0:3]),
    "select": (lambda t: t.select(1, 2), lambda x: x[:, 2]),
    "select-row": (lambda t: t.select(0, 0), lambda x: x[0:1]),
    "permute": (lambda t: t.permute((0, 3, 1, 2)), lambda x: x.transpose(0, 3, 1, 2)),
    "broadcast": (
        lambda t: t.slice(1, 0, 1).broadcast(1, 5),
        lambda x: np.repeat(x[:, 0:1], 5, axis=1),
    ),
    "expand": (lambda t: t.expand_dim(1), lambda x: x[:, None]),
    "expand-last": (lambda t: t.expand_dim(4), lambda x: x[..., None]),
    "squeeze": (lambda t: t.slice(1, 2, 3).squeeze_dim(1), lambda x: x[:, 2]),
    "split": (lambda t: t.reshape_dim(2, (2, 2)), lambda x: x.reshape(4, 3, 2, 2, 2)),
    "split-open": (lambda t: t.reshape_dim(2, (-1, 2)), lambda x: x.reshape(4, 3, 2, 2, 2)),
    "split-trivial": (lambda t: t.reshape_dim(0, (4,)), lambda x: x),
    "flatten": (lambda t: t.flatten_dims(1, 2), lambda x: x.reshape(4, 12, 2)),
    "flatten-all": (lambda t: t.flatten_dims(1, 3), lambda x: x.reshape(4, 24)),
    "flatten-one": (lambda t: t.flatten_dims(2, 2), lambda x: x),
    "flatten-slice": (
        lambda t: t.slice(1, 1, 3).flatten_dims(1, 2),
        lambda x: x[:, 1:3].reshape(4, 8, 2),
    ),
    "rearrange": (
        lambda t: t.rearrange(("p", "a", ("b", "c"), "d"), ("p", "c", "a", "b", "d"), {"c": 2}),
        lambda x: x.reshape(4, 3, 2, 2, 2).transpose(0, 3, 1, 2, 4),
    ),
    "rearrange-merge": (
        lambda t: t.rearrange(("p", "a", "b", "c"), ("p", ("a", "b"), "c")),
        lambda x: x.reshape(4, 12, 2),
    ),
    "cast": (lambda t: t.reinterpret_cast("int32"), lambda x: x.view(np.int32)),
    "chain": (
        lambda t: t.permute((0, 2, 1, 3)).select(3, 1).slice(1, 1, 3).reshape_dim(2, (3, 1)),
        lambda x: x.transpose(0, 2, 1, 3)[..., 1][:, 1:3].reshape(4, 2, 3, 1),
    ),
    "ap-of-a-slice": (
        lambda t: t.slice(1, 1, 3).ap([[24, 4], [1, 16]]),
        lambda x: x[:, 1:3].reshape(4, 16),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_shows_what_numpy_shows(new, name):
    view, reference = VIEWS[name]

    assert np.array_equal(new.run(lambda x: filled(new, view(new.tile(x))), X), reference(X))


@pytest.mark.parametrize("name", [n for n in VIEWS if n not in ("select-row",)])
def test_in_hbm_a_view_shows_the_same(new, name):
    view, reference = VIEWS[name]

    assert np.array_equal(new.run(lambda x: new.out(view(x)), X), reference(X))


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_copies_nothing(new, name):
    def kernel(x):
        tile = new.tile(x)
        view = VIEWS[name][0](tile)
        assert np.shares_memory(view.array, tile.array)
        return new.out(tile)

    new.run(kernel, X)


def test_a_view_is_written_through(new):
    def kernel(x):
        tile = new.tile(x)
        new.nisa.memset(tile.rearrange(("p", "a", "b", "c"), ("p", "c", "a", "b")).select(1, 1), 0)
        return new.out(tile)

    expected = X.copy()
    expected[..., 1] = 0
    assert np.array_equal(new.run(kernel, X), expected)


def test_hbm_moves_and_drops_its_first_dimension(new):
    def kernel(x):
        permuted = x.permute((1, 0, 2, 3)).expand_dim(0)
        assert permuted.shape == (1, 3, 4, 4, 2)
        return new.out(permuted.squeeze_dim(0).select(0, 2))

    assert np.array_equal(new.run(kernel, X), X.transpose(1, 0, 2, 3)[2])


@pytest.mark.parametrize(
    ("view", "contiguous"),
    [
        (lambda t: t, True),
        (lambda t: t.slice(0, 1, 3), True),
        (lambda t: t.reshape((4, 24)), True),
        (lambda t: t.permute((0, 2, 1, 3)), False),
        (lambda t: t.slice(3, 0, 1), False),
        (lambda t: t.select(1, 0).select(1, 0), True),
    ],
)
def test_contiguity_is_that_of_a_partition(new, view, contiguous):
    assert new.run(lambda x: view(new.tile(x)).is_contiguous(), X) is contiguous


def test_in_hbm_contiguity_counts_the_first_dimension(new):
    seen = new.run(lambda x: (x.is_contiguous(), x.slice(1, 0, 2).is_contiguous(),
                              x.slice(0, 0, 1).select(0, 0).is_contiguous()), X)  # fmt: skip

    assert seen == (True, False, True)


# -- the limits, from both sides -------------------------------------------------------------------

INSIDE_AND_OUTSIDE = {
    "slice-end": (lambda t: t.slice(2, 0, 4), lambda t: t.slice(2, 0, 5)),
    "slice-start": (lambda t: t.slice(2, 0, 2), lambda t: t.slice(2, -1, 2)),
    "slice-order": (lambda t: t.slice(2, 1, 2), lambda t: t.slice(2, 2, 2)),
    "slice-step": (lambda t: t.slice(2, 0, 4, 1), lambda t: t.slice(2, 0, 4, 0)),
    "slice-dim": (lambda t: t.slice(3, 0, 1), lambda t: t.slice(4, 0, 1)),
    "slice-partitions": (lambda t: t.slice(0, 0, 4, 1), lambda t: t.slice(0, 0, 4, 2)),
    "select-last": (lambda t: t.select(2, 3), lambda t: t.select(2, 4)),
    "select-first": (lambda t: t.select(2, 0), lambda t: t.select(2, -1)),
    "select-dim": (lambda t: t.select(3, 0), lambda t: t.select(4, 0)),
    "select-int": (lambda t: t.select(2, 1), lambda t: t.select(2, True)),
    "permute": (lambda t: t.permute((0, 2, 1, 3)), lambda t: t.permute((2, 0, 1, 3))),
    "permute-twice": (lambda t: t.permute([0, 1, 3, 2]), lambda t: t.permute((0, 1, 3, 3))),
    "permute-all": (lambda t: t.permute((0, 1, 2, 3)), lambda t: t.permute((0, 1, 2))),
    "permute-tuple": (lambda t: t.permute((0, 1, 2, 3)), lambda t: t.permute(0)),
    "broadcast-one": (lambda t: t.slice(1, 0, 1).broadcast(1, 2), lambda t: t.broadcast(1, 2)),
    "broadcast-size": (
        lambda t: t.slice(1, 0, 1).broadcast(1, 1),
        lambda t: t.slice(1, 0, 1).broadcast(1, 0),
    ),
    "broadcast-partition": (
        lambda t: t.slice(1, 0, 1).broadcast(1, 2),
        lambda t: t.slice(0, 0, 1).broadcast(0, 2),
    ),
    "expand-first": (lambda t: t.expand_dim(1), lambda t: t.expand_dim(0)),
    "expand-one-partition": (
        lambda t: t.slice(0, 0, 1).expand_dim(1),
        lambda t: t.slice(0, 0, 1).expand_dim(0),
    ),
    "expand-last": (lambda t: t.expand_dim(4), lambda t: t.expand_dim(5)),
    "dimensions": (lambda t: t.expand_dim(1), lambda t: t.expand_dim(1).expand_dim(1)),
    "squeeze-one": (
        lambda t: t.slice(1, 0, 1).squeeze_dim(1),
        lambda t: t.slice(1, 0, 2).squeeze_dim(1),
    ),
    "squeeze-partition": (
        lambda t: t.slice(0, 0, 1).slice(1, 0, 1).squeeze_dim(1),
        lambda t: t.slice(0, 0, 1).squeeze_dim(0),
    ),
    "split-product": (lambda t: t.reshape_dim(2, (2, 2)), lambda t: t.reshape_dim(2, (2, 3))),
    "split-open": (lambda t: t.reshape_dim(2, (2, -1)), lambda t: t.reshape_dim(2, (3, -1))),
    "split-one-open": (lambda t: t.reshape_dim(2, (-1,)), lambda t: t.reshape_dim(2, (-1, -1))),
    "split-negative": (lambda t: t.reshape_dim(2, (1, 4)), lambda t: t.reshape_dim(2, (-2, -2))),
    "split-partition": (lambda t: t.reshape_dim(0, (4,)), lambda t: t.reshape_dim(0, (2, 2))),
    "split-trivial": (lambda t: t.reshape_dim(0, (-1,)), lambda t: t.reshape_dim(0, (4, 1))),
    "flatten-partition": (lambda t: t.flatten_dims(1, 2), lambda t: t.flatten_dims(0, 1)),
    "flatten-order": (lambda t: t.flatten_dims(2, 2), lambda t: t.flatten_dims(2, 1)),
    "flatten-end": (lambda t: t.flatten_dims(1, 3), lambda t: t.flatten_dims(1, 4)),
    "flatten-contiguous": (
        lambda t: t.slice(1, 0, 2).flatten_dims(1, 2),
        lambda t: t.slice(2, 0, 3).flatten_dims(1, 2),
    ),
    "rearrange-names": (
        lambda t: t.rearrange(("p", "a", "b", "c"), ("p", "a", "c", "b")),
        lambda t: t.rearrange(("p", "a", "b", "c"), ("p", "a", "c", "d")),
    ),
    "rearrange-twice": (
        lambda t: t.rearrange(("p", "a", "b", "c"), ("p", "a", "c", "b")),
        lambda t: t.rearrange(("p", "a", "a", "c"), ("p", "a", "a", "c")),
    ),
    "rearrange-rank": (
        lambda t: t.rearrange(("p", "a", "b", "c"), ("p", "a", "c", "b")),
        lambda t: t.rearrange(("p", "a", "b"), ("p", "b", "a")),
    ),
    "rearrange-open": (
        lambda t: t.rearrange(("p", "a", ("b", "c"), "d"), ("p", "a", "b", "c", "d"), {"b": 4}),
        lambda t: t.rearrange(("p", "a", ("b", "c"), "d"), ("p", "a", "b", "c", "d")),
    ),
    "rearrange-sizes": (
        lambda t: t.rearrange(("p", "a", "b", "c"), ("p", "a", "b", "c"), {"b": 4}),
        lambda t: t.rearrange(("p", "a", "b", "c"), ("p", "a", "b", "c"), {"b": 3}),
    ),
    "rearrange-unknown": (
        lambda t: t.rearrange(("p", "a", "b", "c"), ("p", "a", "b", "c"), {"a": 3}),
        lambda t: t.rearrange(("p", "a", "b", "c"), ("p", "a", "b", "c"), {"x": 3}),
    ),
    "rearrange-partition": (
        lambda t: t.rearrange((("p",), "a", "b", "c"), ("p", "a", "b", "c")),
        lambda t: t.rearrange(("p", "a", "b", "c"), ("a", "p", "b", "c")),
    ),
    "rearrange-pattern": (
        lambda t: t.rearrange(["p", "a", "b", ["c"]], ("p", "a", "b", "c")),
        lambda t: t.rearrange("p a b c", "p a c b"),
    ),
    "cast-whole": (
        lambda t: t.view("uint8").slice(3, 0, 4).reinterpret_cast("float32"),
        lambda t: t.view("uint8").slice(3, 0, 3).reinterpret_cast("float32"),
    ),
    "cast-contiguous": (
        lambda t: t.slice(2, 0, 2).reinterpret_cast("uint8"),
        lambda t: t.slice(3, 0, 2, 2).permute((0, 1, 3, 2)).reinterpret_cast("uint8"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", INSIDE_AND_OUTSIDE)
def test_a_limit_holds_and_is_no_narrower(new, name):
    inside, outside = INSIDE_AND_OUTSIDE[name]

    new.run(lambda x: [inside(new.tile(x)), None][1], X)
    with pytest.raises((ShapeError, AccessError), match=r"\S"):
        new.run(lambda x: outside(new.tile(x)), X)


# -- indices computed on the device ----------------------------------------------------------------


def moved(lang, start, as_register):
    """The index in `start` (1, 1), as a tile or a register."""
    tile = lang.tile(start)
    if not as_register:
        return tile
    register = lang.nisa.register_alloc()
    lang.nisa.register_load(register, tile)
    return register


@pytest.mark.parametrize("as_register", [False, True], ids=["tensor", "register"])
@pytest.mark.parametrize("row", [0, 9])
def test_the_device_selects_from_hbm(new, row, as_register):
    def kernel(rows, at):
        part = rows.select(0, moved(new, at, as_register))
        assert part.shape == (4, 3)
        assert part.is_indirect()
        return new.out(part)

    assert np.array_equal(new.run(kernel, ROWS, np.array([[row]], np.int32)), ROWS[row])


@pytest.mark.parametrize("row", [-1, 10])
def test_a_selected_row_outside_is_an_error(new, row):
    with pytest.raises(AccessError, match=f"is {row}, outside the indexed dimension"):
        new.run(lambda rows, at: new.out(rows.select(0, new.tile(at))), ROWS,
                np.array([[row]], np.int32))  # fmt: skip


@pytest.mark.parametrize("at", [0, 2])
def test_the_device_selects_on_chip(new, at):
    def kernel(x, at):
        return filled(new, new.tile(x).select(1, new.tile(at)))

    assert np.array_equal(new.run(kernel, X, np.array([[at]], np.int32)), X[:, at])


def test_a_selection_counts_in_the_view(new):
    """Of rows 2, 4, 6, the second is row 4."""

    def kernel(rows, at):
        return new.out(rows.slice(0, 2, 8, 2).select(0, new.tile(at)))

    assert np.array_equal(new.run(kernel, ROWS, np.array([[1]], np.int32)), ROWS[4])
    with pytest.raises(AccessError, match="outside the indexed dimension"):
        new.run(kernel, ROWS, np.array([[3]], np.int32))


AFTER = {
    "slice": (lambda t: t.slice(1, 1, 3), lambda x: x[:, 1:3]),
    "brackets": (lambda t: t[..., 0:2], lambda x: x[..., 0:2]),
    "int": (lambda t: t[..., 1:3, 2], lambda x: x[..., 1:3, 2]),
    "select": (lambda t: t.select(2, 2), lambda x: x[:, :, 2]),
    "permute": (lambda t: t.permute((0, 2, 1)), lambda x: x.transpose(0, 2, 1)),
    "reshape": (lambda t: t.reshape((3, 12)), lambda x: x.reshape(3, 12)),
    "flatten": (lambda t: t.flatten_dims(1, 2), lambda x: x.reshape(3, 12)),
    "split": (lambda t: t.reshape_dim(1, (2, 2)), lambda x: x.reshape(3, 2, 2, 3)),
    "expand": (lambda t: t.expand_dim(1), lambda x: x[:, None]),
    "broadcast": (
        lambda t: t.slice(1, 0, 1).broadcast(1, 3), lambda x: np.repeat(x[:, 0:1], 3, axis=1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AFTER)
def test_views_of_selected_rows_keep_the_indices(new, name):
    view, reference = AFTER[name]
    at = np.array([[9], [0], [3]], np.int32)

    def kernel(rows, at):
        return new.out(view(rows.vector_select(0, new.tile(at))))

    assert np.array_equal(new.run(kernel, ROWS, at), reference(ROWS[at[:, 0]]))


@pytest.mark.parametrize("name", AFTER)
def test_views_of_one_selection_keep_the_index(new, name):
    view, reference = AFTER[name]
    many = np.arange(5 * 3 * 4 * 3, dtype=np.float32).reshape(5, 3, 4, 3)

    def kernel(many, at):
        return new.out(view(many.select(0, new.tile(at))))

    assert np.array_equal(new.run(kernel, many, np.array([[4]], np.int32)), reference(many[4]))


def test_selected_rows_are_written(new):
    def kernel(rows, at):
        new.nisa.dma_copy(dst=rows.vector_select(0, new.tile(at)).select(2, 1),
                          src=new.nl.zeros((3, 4), new.nl.float32, new.nl.sbuf))  # fmt: skip

    rows, at = ROWS.copy(), np.array([[9], [0], [3]], np.int32)
    new.run(kernel, rows, at)

    expected = ROWS.copy()
    expected[[9, 0, 3], :, 1] = 0
    assert np.array_equal(rows, expected)


REJECTED_AFTER = {
    "slice-0": lambda t, at: t.slice(0, 0, 2),
    "int-0": lambda t, at: t[0],
    "select-0": lambda t, at: t.select(0, 1),
    "permute-0": lambda t, at: t.permute((1, 0, 2)),
    "expand-0": lambda t, at: t.expand_dim(0),
    "flatten-0": lambda t, at: t.flatten_dims(0, 1),
    "split-0": lambda t, at: t.reshape_dim(0, (3, 1)),
    "reshape": lambda t, at: t.reshape((36,)),
    "again": lambda t, at: t.vector_select(0, at),
    "select-again": lambda t, at: t.select(1, at[0:1]),
    "ap": lambda t, at: t.ap([[12, 3], [1, 12]]),
    "view": lambda t, at: t.view("int32"),
}


@pytest.mark.parametrize("name", REJECTED_AFTER)
def test_the_indexed_dimension_stays_as_it_is(new, name):
    def kernel(rows, at):
        index = new.tile(at)
        REJECTED_AFTER[name](rows.vector_select(0, index), index)

    with pytest.raises((AccessError, ShapeError)):
        new.run(kernel, ROWS, np.array([[9], [0], [3]], np.int32))


@pytest.mark.parametrize(
    "use",
    [
        lambda lang, t, rows, at: t.select(0, at),
        lambda lang, t, rows, at: rows.vector_select(1, at),
        lambda lang, t, rows, at: t.vector_select(0, at),
        lambda lang, t, rows, at: rows.select(0, 1.0),
        lambda lang, t, rows, at: rows.select(0, lang.nl.ndarray((2, 1), lang.nl.int32)),
        lambda lang, t, rows, at: rows.select(0, lang.nl.ndarray((1, 1), lang.nl.float32)),
        lambda lang, t, rows, at: rows.vector_select(0, lang.nl.ndarray((2, 2), lang.nl.int32)),
        lambda lang, t, rows, at: rows.vector_select(0, 3),
        lambda lang, t, rows, at: rows.vector_select(0, lang.nisa.register_alloc(0)),
    ],
)
def test_what_the_device_may_not_index_is_rejected(new, use):
    def kernel(x, rows, at):
        use(new, new.tile(x), rows, new.tile(at))

    with pytest.raises(AccessError):
        new.run(kernel, X, ROWS, np.zeros((1, 1), np.int32))


def test_a_program_says_a_selection(new):
    """What is selected from the whole of a tensor can be captured and gives the same."""

    def kernel(rows, at):
        return new.out(rows.select(0, new.tile(at)).slice(1, 0, 2))

    at = np.array([[7]], np.int32)
    program = capture(new.nki.jit(kernel), ROWS, at)

    assert "scalar_offset" in str(program)
    assert np.array_equal(execute_program(program, [ROWS, at])[0], ROWS[7][:, :2])


# -- by version ------------------------------------------------------------------------------------

LATER = ["slice", "select", "vector_select", "permute", "broadcast", "expand_dim", "squeeze_dim",
         "reshape_dim", "flatten_dims", "rearrange", "reinterpret_cast", "is_contiguous",
         "is_indirect", "indirect"]  # fmt: skip


@pytest.mark.parametrize("version", ["0.2", "0.3", "0.4"])
@pytest.mark.parametrize("name", LATER)
def test_earlier_versions_say_when_a_view_came(speak, version, name):
    old = speak(version)

    with pytest.raises(UnsupportedError, match=rf"(?s)NkiTensor\.{name} is not part of NKI "
                       rf"{version}.*it is part of NKI 0\.5 to 0\.7"):  # fmt: skip
        old.run(lambda x: getattr(x, name), X)
    assert old.run(lambda x: hasattr(x, name), X) is False


def test_only_0_4_shows_values_and_identity(speak):
    old = speak("0.4")

    def kernel(x):
        tile = old.tile(x)
        return (x.is_identity(), tile[0:2].is_identity(), tile.sim_value, tile.device_value)

    whole, part, values, none = old.run(kernel, X)
    assert (whole, part, none) == (True, False, None)
    assert np.array_equal(values, X)
    with pytest.raises(UnsupportedError, match=r"it is part of NKI 0\.4"):
        speak("0.5").run(lambda x: x.sim_value, X)


def test_0_4_knows_two_names_of_a_shape(speak):
    old = speak("0.4")

    shapes = old.run(
        lambda x: (x.reshape(new_shape=(4, 24)).shape, x.reshape(shape=(96,)).shape), X
    )

    assert shapes == ((4, 24), (96,))


def test_only_0_2_reshapes_to_less_memory(speak):
    """A quarter of each partition, as its language guide says; later guides want all of it."""
    old = speak("0.2")

    part = old.run(lambda x: old.out(old.tile(x).reshape((4, 2, 3))), X)

    assert np.array_equal(part, X.reshape(4, 24)[:, :6].reshape(4, 2, 3))
    with pytest.raises(ShapeError, match="changes the element count"):
        old.run(lambda x: old.tile(x).reshape((4, 25)), X)
    with pytest.raises(ShapeError, match="changes the element count"):
        speak("0.3").run(lambda x: x.reshape((4, 2, 3)), X)


def test_a_tensor_is_made_by_ndarray(every):
    with pytest.raises(KernelError, match=r"(?s)bound to a storage handle.*nl\.ndarray"):
        every.inside(lambda: every.run.__self__.nki.tensor.NkiTensor((2, 2), "float32", None))


@pytest.mark.parametrize("version", BACKEND.versions)
def test_an_indexed_tensor_is_reshaped_from_0_5_on(speak, version):
    lang = speak(version)
    x = np.arange(32, dtype=np.float32).reshape(4, 8)

    def whole_first(x):
        return lang.out(lang.tile(x).reshape((4, 2, 4))[0:2])

    def indexed_first(x):
        return lang.out(lang.tile(x)[0:2].reshape((2, 2, 4)))

    expected = x.reshape(4, 2, 4)[:2]
    assert np.array_equal(lang.run(whole_first, x), expected)
    assert np.array_equal(lang.run(lambda x: lang.out(lang.tile(x)[...].reshape((4, 2, 4))), x),
                          x.reshape(4, 2, 4))  # fmt: skip
    if version >= "0.5":
        assert np.array_equal(lang.run(indexed_first, x), expected)
        return
    with pytest.raises(AccessError, match=r"indexed already\n(?s:.*)reshape the whole tensor"):
        lang.run(indexed_first, x)
