"""What a tile moves stays inside the dimension that it indexes; what does not names its place."""

from inspect import getsourcelines

import numpy as np
import pytest

from neuroncore.errors import AccessError, AttributeValueError, KernelError
from nki_beta1 import nisa, nki, nl

CUBE = np.arange(5 * 6 * 7, dtype=np.float32).reshape(5, 6, 7)
DIMENSIONS = [0, 1, 2]


def stored(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=tile)
    return out


def moved_by(number, dim, extent):
    """Three index expressions: two rows of the others, `number` and `extent` more in `dim`."""
    axes = [0, nl.arange(2)[:, None], nl.arange(extent)[None, :]]
    order = {0: (2, 0, 1), 1: (0, 2, 1), 2: (0, 1, 2)}[dim]
    items = [axes[n] for n in order]
    items[dim] = number + items[dim]
    return tuple(items)


def load_moved(start, dim, extent=3, mask=None):
    @nki.jit
    def kernel(x, start):
        n = nl.load(start)
        i, j = nl.arange(2)[:, None], nl.arange(extent)[None, :]
        tile = nl.full((2, extent), -1, dtype=nl.float32)
        tile[i, j] = nl.load(x[moved_by(n, dim, extent)], mask=mask and mask(i, j))
        return stored(tile)

    return kernel(CUBE, np.array([[start]], np.int32))


@pytest.mark.parametrize("dim", DIMENSIONS)
def test_a_load_reaches_the_last_element_of_its_dimension(dim):
    start = CUBE.shape[dim] - 3
    items = moved_by(start, dim, 3)
    expected = CUBE[tuple(i if isinstance(i, int) else i.values for i in items)]

    np.testing.assert_array_equal(load_moved(start, dim), expected)


@pytest.mark.parametrize("dim", DIMENSIONS)
@pytest.mark.parametrize("beyond", [1, 2, 3])
def test_a_load_does_not_run_into_what_lies_behind_its_dimension(dim, beyond):
    start = CUBE.shape[dim] - 3 + beyond
    says = rf"nl.load: index out of range in dimension {dim}\n(.*\n)*.*{start} to {start + 2} on"

    with pytest.raises(AccessError, match=says):
        load_moved(start, dim)


@pytest.mark.parametrize("dim", DIMENSIONS)
def test_a_load_does_not_begin_before_its_dimension(dim):
    with pytest.raises(AccessError, match=f"index out of range in dimension {dim}"):
        load_moved(-1, dim)


@pytest.mark.parametrize("dim", DIMENSIONS)
def test_a_mask_may_cut_off_what_is_beyond(dim):
    start = CUBE.shape[dim] - 2
    inside = load_moved(start, dim, 2)

    result = load_moved(start, dim, 3, mask=lambda i, j: j < 2)

    np.testing.assert_array_equal(result, np.hstack([inside, [[-1], [-1]]]))


def writing(write, start):
    @nki.jit
    def kernel(x, start):
        out = nl.ndarray((5, 6, 7), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(out, value=0)
        n, value = nl.load(start), nl.full((2, 3), 9, dtype=nl.float32)
        write(out, n, value)
        return out

    return kernel(CUBE, np.array([[start]], np.int32))


WRITES = {
    "nl.store": lambda dim: lambda out, n, value: nl.store(out[moved_by(n, dim, 3)], value),
    "dma_copy": lambda dim: (
        lambda out, n, value: nisa.dma_copy(src=value, dst=out[moved_by(n, dim, 3)])
    ),
    "nl.atomic_rmw": lambda dim: (
        lambda out, n, value: nl.atomic_rmw(out[moved_by(n, dim, 3)], value, np.add)
    ),
}


@pytest.mark.parametrize("dim", DIMENSIONS)
@pytest.mark.parametrize("name", WRITES)
def test_a_write_stays_in_its_dimension(name, dim):
    start = CUBE.shape[dim] - 3
    items = moved_by(start, dim, 3)
    expected = np.zeros_like(CUBE)
    expected[tuple(i if isinstance(i, int) else i.values for i in items)] = 9

    np.testing.assert_array_equal(writing(WRITES[name](dim), start), expected)


@pytest.mark.parametrize("dim", DIMENSIONS)
@pytest.mark.parametrize("name", WRITES)
def test_a_write_does_not_run_into_what_lies_behind_its_dimension(name, dim):
    with pytest.raises(AccessError, match=f"{name}: index out of range in dimension {dim}"):
        writing(WRITES[name](dim), CUBE.shape[dim] - 2)


def test_what_one_number_drops_a_dimension_of_stays_inside_it():
    @nki.jit
    def kernel(x, start):
        return stored(nl.load(x[1:3, nl.load(start)[0, 0], :]))

    np.testing.assert_array_equal(kernel(CUBE, np.array([[5]], np.int32)), CUBE[1:3, 5])
    with pytest.raises(AccessError, match=r"nl.load: index out of range in dimension 1"):
        kernel(CUBE, np.array([[6]], np.int32))


def copied_on_chip(dim, start, to):
    """A (2, 2) piece of a (2, 6, 7) tile, from or to where the number says in dimension `dim`."""
    i, j = nl.arange(2)[:, None], nl.arange(2)[None, :]

    @nki.jit
    def kernel(x, start):
        tile, n = nl.load(x[0:2]), nl.load(start)
        at = (i, n[0, 0] + j, 0) if dim == 1 else (i, 0, n[0, 0] + j)
        if to:
            nisa.tensor_copy_dynamic_dst(dst=tile[at], src=nl.full((2, 2), 9, dtype=nl.float32))
            return stored(tile)
        piece = nl.ndarray((2, 2), dtype=nl.float32)
        piece[...] = nisa.tensor_copy_dynamic_src(tile[at])
        return stored(piece)

    return kernel(CUBE, np.array([[start]], np.int32))


@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("to", [False, True], ids=["from", "to"])
def test_a_copy_on_chip_stays_in_its_dimension(dim, to):
    start = CUBE.shape[dim] - 2
    expected = CUBE[:2].copy()
    part = np.s_[:, start:, 0] if dim == 1 else np.s_[:, 0, start:]
    expected[part] = 9

    result = copied_on_chip(dim, start, to)

    np.testing.assert_array_equal(result, expected if to else CUBE[:2][part])
    with pytest.raises(AccessError, match=f"index out of range in dimension {dim}"):
        copied_on_chip(dim, start + 1, to)


# -- the place of what shows late -----------------------------------------------------------------

BAD_ROWS = np.full((4, 1), 99, np.int32)


def _gathered(x, bad):
    return nl.load(x[nl.load(bad), 0, nl.arange(7)[None, :]])  # here


def _with_one_number(x, bad):
    return nl.load(x[nl.load(bad)[0, 0], :, :])  # here


def _on_chip(x, bad):
    tile, n = nl.load(x[:, 0, :]), nl.load(bad)
    return nisa.tensor_copy_dynamic_src(tile[nl.arange(5)[:, None], n[0, 0] + nl.arange(2)])  # here


def _flattened(x, bad):
    tile, n = nl.load(x[0:4, 0, :]), nl.copy(nl.load(bad), dtype=nl.uint32)
    return nl.gather_flattened(tile, n)  # here


def _local(x, bad):
    tile, n = nl.zeros((16, 8), dtype=nl.float32), nl.full((16, 1), 99, dtype=nl.uint16)
    return nisa.local_gather(tile, n)  # here


def _dropped(x, bad):
    return nisa.dropout(nl.load(x[0]), 2.0)  # here


LATE = {f.__name__[1:]: f for f in (_gathered, _with_one_number, _on_chip, _flattened, _local)}


def _line_of(function):
    lines, first = getsourcelines(function)
    return first + next(n for n, line in enumerate(lines) if line.rstrip().endswith("# here"))


@pytest.mark.parametrize("name", [*LATE, "dropped"])
@pytest.mark.parametrize("assigned", [False, True], ids=["used later", "assigned"])
def test_a_bad_value_is_reported_where_the_instruction_is_called(name, assigned):
    make = LATE.get(name, _dropped)

    @nki.jit
    def kernel(x, bad):
        value = make(x, bad)
        if assigned:
            target = nl.ndarray(value.shape, dtype=value.dtype)
            target[...] = value
            value = target
        return stored(nl.exp(value))

    with pytest.raises((AccessError, AttributeValueError)) as caught:
        kernel(CUBE, BAD_ROWS)
    place = caught.value.place
    assert place is not None and place.line == _line_of(make)


def test_messages_do_not_speak_of_later_versions():
    @nki.jit
    def kernel(x, bad):
        return stored(_gathered(x, bad))

    with pytest.raises(KernelError) as caught:
        kernel(CUBE, BAD_ROWS)
    assert "offset" not in str(caught.value) and ".ap" not in str(caught.value)
    assert "(5, 6, 7)" in str(caught.value)
