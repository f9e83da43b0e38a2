"""What instructions write beside their result (`reduce_res=`, `dst_idx=`), into tiles of any kind.

Random kernels run three times: watched, unwatched, and step by step in NumPy on arrays, where no
two names share memory unless the language says so.
"""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.machine.observe import Watcher, watched_by
from nki_beta1 import nisa, nki, nl

N = 8
STEPS = 16
_LARGEST = 64.0  # of an operand of a product: sums of them are exact in float32


def stored(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=tile)
    return out


class Known:
    """A tile, the array that it must hold, and the rows that assigning it writes."""

    def __init__(self, tile, array, rows=N):
        self.tile, self.array, self.rows = tile, array, rows


class Script:
    """A kernel of random steps on tiles and arrays: the same choices with the same seed."""

    def __init__(self, seed, arrays):
        self.rng, self.arrays = np.random.default_rng(seed), arrays
        self.log = []

    def run(self, *parameters):
        self.parameters = parameters
        self.i_p, self.one = nl.arange(N)[:, None], nl.arange(1)[None, :]
        self.tiles, self.columns, self.places, self.sums = [], [], [], []
        for step in (self.load, self.load_column, self.load_places, self.psum):
            step()
        for _ in range(STEPS):
            step = STEP_KINDS[self.rng.integers(len(STEP_KINDS))]
            self.log.append(step.__name__)
            step(self)
        self.known = [*self.tiles, *self.columns, *self.places, *self.sums]
        return tuple(stored(nl.copy(known.tile)) for known in self.known)

    def pick(self, known):
        return known[self.rng.integers(len(known))]

    def pick_defined(self, known):
        return self.pick([k for k in known if not np.isnan(k.array).any()])

    def number(self, limit):
        return int(self.rng.integers(limit))

    # -- tiles of every kind -----------------------------------------------------------------------

    def load(self):
        self.tiles.append(Known(nl.load(self.parameters[0]), self.arrays[0].copy()))

    def load_column(self):
        self.columns.append(Known(nl.load(self.parameters[1]), self.arrays[1].copy()))

    def load_places(self):
        self.places.append(Known(nl.load(self.parameters[2]), self.arrays[2].copy()))

    def psum(self):
        tile = nl.ndarray((N, 1), dtype=nl.float32, buffer=nl.psum)
        self.sums.append(Known(tile, np.full((N, 1), np.nan, np.float32)))

    def blocks(self):
        made = nl.zeros((2, nl.par_dim(N), 1), dtype=nl.float32)
        self.columns += [Known(made[b], np.zeros((N, 1), np.float32)) for b in range(2)]

    def column_of_a_tile(self):
        known, at = self.pick_defined(self.tiles), self.number(N)
        self.columns.append(Known(known.tile[:, at : at + 1], known.array[:, at : at + 1]))

    def largest(self):
        known = self.pick_defined(self.tiles)
        found = nl.max(known.tile, axis=[1], keepdims=True)
        self.columns.append(Known(found, known.array.max(1, keepdims=True)))

    def largest_of_some_rows(self):
        known, rows = self.pick_defined(self.tiles), 1 + self.number(N - 1)
        found = nl.max(known.tile, axis=[1], keepdims=True, mask=self.i_p < rows)
        array = known.array.max(1, keepdims=True)
        array[rows:] = np.nan
        self.columns.append(Known(found, array, rows))

    # -- assignments: the value lends what it was assigned to --------------------------------------

    def assign(self):
        value, into = self.pick(self.columns), self.pick(self.columns)
        into.tile[...] = value.tile
        into.array[: value.rows] = value.array[: value.rows]
        if into is not value:
            into.rows = N

    def assign_to_a_new_column(self):
        self.largest() if self.number(2) else self.largest_of_some_rows()
        value = self.columns[-1]
        into = nl.zeros((N, 1), dtype=nl.float32)
        into[self.i_p, self.one] = value.tile
        array = np.zeros((N, 1), np.float32)
        array[: value.rows] = value.array[: value.rows]
        self.columns.append(Known(into, array))

    def assign_to_a_part(self):
        self.largest()
        value, known, at = self.columns[-1], self.pick_defined(self.tiles), self.number(N)
        known.tile[:, at : at + 1] = value.tile
        known.array[:, at : at + 1] = value.array

    def assign_places(self):
        value, into = self.pick(self.places), nl.ndarray((N, N), dtype=nl.uint32)
        into[...] = value.tile
        self.places.append(Known(into, value.array.copy()))

    def found_places(self):
        known = self.pick_defined(self.tiles)
        vals = nisa.max8(src=known.tile)
        found = nisa.nc_find_index8(data=known.tile, vals=vals)
        into = nl.ndarray((N, N), dtype=nl.uint32)
        into[...] = found
        array = places_of(known.array, np.sort(known.array)[:, ::-1])
        self.places += [Known(found, array), Known(into, array.copy())]

    def scatter(self):
        value, into = self.pick(self.tiles), self.pick(self.tiles)
        array, i_f = value.array.copy(), nl.arange(N)[None, :]
        into.tile[self.i_p, (i_f * 3) % N] = value.tile
        into.array[:, (np.arange(N) * 3) % N] = array

    # -- second outputs ----------------------------------------------------------------------------

    def second(self):
        known = self.pick(self.sums if self.number(4) == 0 else self.columns)
        known.rows = N
        return known

    def activation_reduce(self):
        known, into = self.pick_defined(self.tiles), self.second()
        found = nisa.activation_reduce(nl.copy, known.tile, reduce_op=np.add, reduce_res=into.tile)
        array = known.array.copy()
        into.array[...] = array.sum(1, keepdims=True)
        self.tiles.append(Known(found, array))

    def activation_reduce_of_some_rows(self):
        known, into = self.pick_defined(self.tiles), self.pick_defined(self.columns)
        rows = 1 + self.number(N - 1)
        nisa.activation_reduce(
            nl.copy, known.tile, reduce_op=np.add, reduce_res=into.tile, mask=self.i_p < rows
        )
        into.array[:rows] = known.array[:rows].sum(1, keepdims=True)

    def activation(self):
        known, into = self.pick_defined(self.tiles), self.second()
        found = nisa.activation(
            nl.copy, known.tile, reduce_op=np.add, reduce_res=into.tile,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )  # fmt: skip
        array = known.array.copy()
        into.array[...] = array.sum(1, keepdims=True)
        self.tiles.append(Known(found, array))

    def tensor_scalar_reduce(self):
        known, by, into = (
            self.pick_defined(self.tiles),
            self.pick_defined(self.columns),
            self.second(),
        )
        found = nisa.tensor_scalar_reduce(
            data=known.tile, op0=np.minimum, operand0=by.tile, reduce_op=np.add,
            reduce_res=into.tile,
        )  # fmt: skip
        array = np.minimum(known.array, by.array)
        into.array[...] = array.sum(1, keepdims=True)
        self.tiles.append(Known(found, array))

    def range_select(self):
        known, into = self.pick_defined(self.tiles), self.second()
        low, high = (nl.full((N, 1), n, dtype=nl.float32) for n in (0.0, 5.0))
        found = nisa.range_select(
            on_true_tile=known.tile, comp_op0=np.greater_equal, comp_op1=np.less, bound0=low,
            bound1=high, reduce_res=into.tile, reduce_op=np.max,
            reduce_cmd=nisa.reduce_cmd.reset_reduce, on_false_value=nisa.fp32.min,
        )  # fmt: skip
        into.array[...] = array = known.array[:, :5].max(1, keepdims=True)
        self.columns.append(Known(nl.max(found, axis=[1], keepdims=True), array.copy()))

    def match_replace(self):
        known, into = self.pick_defined(self.tiles), self.pick(self.places)
        vals = nisa.max8(src=known.tile)
        nisa.nc_match_replace8(data=known.tile, vals=vals, imm=0.0, dst_idx=into.tile)
        into.array[...] = places_of(known.array, np.sort(known.array)[:, ::-1])

    # -- products, that rely on their operands -----------------------------------------------------

    def product(self):
        known, by, into = (
            self.pick_defined(self.tiles),
            self.pick_defined(self.columns),
            self.pick(self.sums),
        )
        largest = max(np.abs(known.array).max(), np.abs(by.array).max())
        if not largest <= _LARGEST:
            return
        product = nisa.nc_matmul(known.tile, by.tile)
        into.tile += product
        array = known.array.T @ by.array
        into.array[...] = np.where(np.isnan(into.array), array, into.array + array)
        self.sums.append(Known(product, array))

    def add(self):
        known, by = self.pick_defined(self.tiles), self.pick_defined(self.tiles)
        self.tiles.append(Known(nl.add(known.tile, by.tile), known.array + by.array))


def places_of(rows, vals):
    """The place of each value in its row; of equal values the first one that is still free."""
    found = np.zeros(vals.shape, np.uint32)
    for row, wanted, out in zip(rows, vals, found, strict=True):
        for n, value in enumerate(wanted):
            out[n] = next(k for k in np.flatnonzero(row == value) if k not in out[:n])
    return found


STEP_KINDS = (
    Script.load,
    Script.load_column,
    Script.load_places,
    Script.psum,
    Script.blocks,
    Script.column_of_a_tile,
    Script.largest,
    Script.largest_of_some_rows,
    Script.assign,
    Script.assign_to_a_new_column,
    Script.assign_to_a_part,
    Script.assign_places,
    Script.found_places,
    Script.scatter,
    Script.activation_reduce,
    Script.activation_reduce_of_some_rows,
    Script.activation,
    Script.tensor_scalar_reduce,
    Script.range_select,
    Script.match_replace,
    Script.product,
    Script.add,
)


def wrong_tiles(seed):
    """Where a run gives other elements than NumPy, unwatched and watched, and the steps."""
    rng = np.random.default_rng(seed)
    tile, column = (rng.integers(-3, 4, s).astype(np.float32) for s in ((N, N), (N, 1)))
    arrays = tile, column, rng.integers(0, 9, (N, N)).astype(np.uint32)
    script = Script(seed, arrays)
    kernel = nki.jit(lambda x, c, n: script.run(x, c, n))
    found = kernel(*arrays)
    expected = script.known
    script = Script(seed, arrays)
    with watched_by(Watcher()):
        watched = kernel(*arrays)
    return [
        (how, n, script.log)
        for how, run in (("unwatched", found), ("watched", watched))
        for n, (array, known) in enumerate(zip(run, expected, strict=True))
        if not np.array_equal(*in_mask(known, array), equal_nan=array.dtype.kind == "f")
    ]


def in_mask(known, array):
    """What is defined of an array, and what it must be."""
    return array[: known.rows], known.array[: known.rows]


@pytest.mark.parametrize("first", range(0, 500, 50))
def test_any_kernel_gives_what_numpy_gives(first):
    wrong = {seed: found for seed in range(first, first + 50) if (found := wrong_tiles(seed))}
    assert not wrong


# -- each kind of tile, by eye ---------------------------------------------------------------------

X = np.arange(64, dtype=np.float32).reshape(8, 8)
EIGHT = np.full((8, 1), 8, np.float32)  # the sum of a row of exp(0)


def ones(tile, into):
    """Write the number of a row's elements to `into`."""
    nisa.activation_reduce(nl.exp, tile * 0.0, reduce_op=np.add, reduce_res=into)


def test_a_value_outlives_a_second_output_into_what_it_was_assigned_to(evaluate):
    def expression(tile):
        total = nl.ndarray((8, 1), dtype=nl.float32)
        value = nl.max(tile, axis=[1], keepdims=True)
        total[...] = value
        ones(tile, total)
        return value

    np.testing.assert_array_equal(evaluate(expression, X), X.max(1, keepdims=True))


def test_a_second_output_into_a_loaded_tile_leaves_the_parameter(evaluate):
    column = X[:, 0:1].copy()

    def expression(tile, loaded):
        ones(tile, loaded)
        return loaded

    np.testing.assert_array_equal(evaluate(expression, X, column), EIGHT)
    np.testing.assert_array_equal(column, X[:, 0:1])


def test_a_product_adds_to_a_second_output_in_psum(evaluate):
    def expression(tile):
        total = nl.ndarray((8, 1), dtype=nl.float32, buffer=nl.psum)
        ones(tile, total)
        total += nisa.nc_matmul(tile, tile[:, 0:1])
        return total

    np.testing.assert_array_equal(evaluate(expression, X), EIGHT + X.T @ X[:, 0:1])


def test_a_product_adds_to_elements_that_were_scattered_in_psum(evaluate):
    def expression(tile):
        i_p, i_f = nl.arange(8)[:, None], nl.arange(8)[None, :]
        total = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.psum)
        total[i_p, (i_f * 3) % 8] = tile
        total += nisa.nc_matmul(tile, tile)
        return total

    scattered = np.empty_like(X)
    scattered[:, np.arange(8) * 3 % 8] = X
    np.testing.assert_array_equal(evaluate(expression, X), scattered + X.T @ X)


def test_a_product_outlives_a_second_output_into_its_operand(evaluate):
    def expression(tile):
        total = nl.zeros((8, 1), dtype=nl.float32, buffer=nl.psum)
        one = nl.ones((8, 1), dtype=nl.float32)
        product = nisa.nc_matmul(tile, one)
        total += product
        ones(tile, one)
        return product + 0.0

    np.testing.assert_array_equal(evaluate(expression, X), X.sum(0).reshape(8, 1))


def test_a_second_output_into_a_masked_value_makes_it_whole(evaluate):
    def expression(tile):
        value = nl.max(tile, axis=[1], keepdims=True, mask=nl.arange(8)[:, None] < 4)
        ones(tile, value)
        total = nl.zeros((8, 1), dtype=nl.float32)
        total[...] = value
        return total

    np.testing.assert_array_equal(evaluate(expression, X), EIGHT)
