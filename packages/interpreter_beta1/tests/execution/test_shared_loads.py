"""A loaded tile may share a parameter's memory: no result shows it, and the parameter keeps it."""

from __future__ import annotations

import numpy as np
import pytest

import nki_beta1.execution.tensor
from neuroncore.machine.observe import Watcher, watched_by
from nki_beta1 import nisa, nki, nl, nt

P = F = 8
STEPS = 14


def stored(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=tile)
    return out


# -- any kernel ----------------------------------------------------------------------------------


class Script:
    """A kernel of random steps: the same choices on every run with the same seed."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.tiles, self.log = [], []

    def pick(self):
        return self.tiles[self.rng.integers(len(self.tiles))]

    def run(self, parameters, scratch):
        i_p, i_f = nl.arange(P)[:, None], nl.arange(F)[None, :]
        self.total = nl.zeros((P, F), dtype=nl.float32, buffer=nl.psum)
        self.parameters, self.scratch, self.i_p, self.i_f = parameters, scratch, i_p, i_f
        self.tiles.append(nl.load(parameters[0]))
        for _ in range(STEPS):
            step = STEP_KINDS[self.rng.integers(len(STEP_KINDS))]
            self.log.append(step.__name__)
            step(self)
        return tuple(stored(nl.copy(tile)) for tile in [*self.tiles, self.total])

    def load(self):
        source = self.parameters[self.rng.integers(len(self.parameters))]
        self.tiles.append(nl.load(source))

    def load_rows(self):
        at = int(self.rng.integers(0, P))
        rows = nl.load(self.parameters[0][self.i_p, self.i_f], mask=self.i_p < at + 1)
        full = nl.zeros((P, F), dtype=nl.float32, buffer=nl.sbuf)
        full[self.i_p, self.i_f] = rows
        self.tiles.append(full)

    def load_scratch(self):
        self.tiles.append(nl.load(self.scratch))

    def add(self):
        self.tiles.append(nl.add(self.pick(), self.pick()))

    def plus_equals(self):
        tile = self.pick()
        tile += self.pick()
        self.tiles.append(tile)

    def part_plus_equals(self):
        self.pick()[self.i_p, self.i_f] += self.pick()

    def assign(self):
        self.pick()[...] = self.pick()

    def assign_part(self):
        self.pick()[self.i_p, 2 + nl.arange(3)[None, :]] = float(self.rng.integers(9))

    def assign_a_slice(self):
        self.pick()[:, 0:4] = self.pick()[:, 4:8]

    def assign_in_a_loop_carried_view(self):
        view = self.pick().reshape((P, 2, F // 2))
        view[:, 0, :] = 3.0

    def masked_add(self):
        found = nl.add(self.pick(), self.pick(), mask=self.i_f < 5)
        self.pick()[self.i_p, self.i_f] = found

    def scatter(self):
        self.pick()[self.i_p, (self.i_f * 5) % F] = self.pick()

    def dma_into(self):
        nisa.dma_copy(dst=self.pick(), src=self.pick())

    def dma_from_a_parameter(self):
        nisa.dma_copy(dst=self.pick(), src=self.parameters[-1])

    def matmul(self):
        product = nisa.nc_matmul(self.pick(), self.pick())
        self.total[self.i_p, self.i_f] += product
        self.tiles.append(nl.copy(product))

    def matmul_asked_for_later(self):
        factor = self.pick()
        product = nisa.nc_matmul(factor, factor)
        self.total[self.i_p, self.i_f] += product
        factor[...] = 1.5
        self.tiles.append(nl.copy(product))

    def row(self):
        self.tiles.append(self.pick()[0:1, :].broadcast_to((P, F)))

    def transposed(self):
        self.tiles.append(nl.copy(nl.transpose(self.pick())))

    def store(self):
        nl.store(self.scratch, value=self.pick())

    def same_again(self):
        self.tiles.append(self.pick())


STEP_KINDS = (
    Script.pick,
    Script.load,
    Script.load_rows,
    Script.load_scratch,
    Script.add,
    Script.plus_equals,
    Script.part_plus_equals,
    Script.assign,
    Script.assign_part,
    Script.assign_a_slice,
    Script.assign_in_a_loop_carried_view,
    Script.masked_add,
    Script.scatter,
    Script.dma_into,
    Script.dma_from_a_parameter,
    Script.matmul,
    Script.matmul_asked_for_later,
    Script.row,
    Script.transposed,
    Script.store,
    Script.same_again,
)


def arrays(seed):
    """Parameters x, y and one that is written: apart, the same array, or overlapping rows."""
    rng = np.random.default_rng(seed)
    memory = rng.integers(-4, 5, (4 * P, F)).astype(np.float32)
    x, y = memory[:P], memory[P : 2 * P]
    written = [memory[3 * P :], x, memory[P // 2 : P // 2 + P]][seed % 3]
    return memory, (x, y, written)


def outcome(seed):
    memory, (x, y, written) = arrays(seed)
    script = Script(seed)

    @nki.jit
    def kernel(x, y, w: nt.mutable_tensor):
        return (*script.run((x, y), w), w)

    found = kernel(x, y, written)
    return [a.tobytes() for a in found], memory.tobytes(), script.log


@pytest.mark.parametrize("first", range(0, 300, 25))
def test_any_kernel_gives_the_bytes_that_copies_give(monkeypatch, first):
    shares, said = nki_beta1.execution.tensor.shares_parameter, []
    monkeypatch.setattr(
        nki_beta1.execution.tensor,
        "shares_parameter",
        lambda *a: said.append(shares(*a)) or said[-1],
    )
    shared = {seed: outcome(seed) for seed in range(first, first + 25)}
    assert True in said

    monkeypatch.setattr(nki_beta1.execution.tensor, "shares_parameter", lambda tile, waiting: False)

    for seed, found in shared.items():
        assert found == outcome(seed), f"seed {seed}: {found[2]}"


def test_any_kernel_gives_the_bytes_that_it_gives_when_watched():
    for seed in range(60):
        with watched_by(Watcher()):
            watched = outcome(seed)
        assert outcome(seed) == watched, f"seed {seed}: {watched[2]}"


# -- what is shared, and what is not ---------------------------------------------------------------


@pytest.fixture
def loads(monkeypatch):
    """Whether each load that ran shared memory."""
    seen, really = [], nki_beta1.execution.tensor.shares_parameter

    def noted(tile, waiting):
        found = really(tile, waiting)
        if waiting.used.record.name == "dma_copy":
            seen.append(found)
        return found

    monkeypatch.setattr(nki_beta1.execution.tensor, "shares_parameter", noted)
    return seen


X = np.arange(64, dtype=np.float32).reshape(8, 8)


@nki.jit
def doubled(x):
    return stored(nl.load(x) + nl.load(x))


@nki.jit
def doubled_columns(x):
    i_p, i_f = nl.arange(8)[:, None], nl.arange(4)[None, :]
    return stored(nl.load(x[i_p, i_f]) * 2.0)


@nki.jit
def doubled_in_float16(x):
    return stored(nl.load(x, dtype=nl.float16) * 2.0)


@nki.jit
def doubled_in_place(x: nt.mutable_tensor):
    nl.store(x, nl.load(x) * 2.0)
    return x


def test_adjacent_elements_are_shared(loads):
    np.testing.assert_array_equal(doubled(X), 2 * X)
    assert loads == [True, True]


@pytest.mark.parametrize("kernel", [doubled_columns, doubled_in_float16, doubled_in_place])
def test_other_loads_copy(loads, kernel):
    found = kernel(X.copy())
    np.testing.assert_array_equal(found, 2 * X[:, : found.shape[1]])
    assert loads == [False]


def test_a_parameter_that_shares_memory_with_a_written_one_is_copied(loads):
    @nki.jit
    def kernel(x, w: nt.mutable_tensor):
        tile = nl.load(x)
        before = tile + 0.0
        nl.store(w, before * 2.0)
        return stored(tile), w

    memory = X.copy()
    kept, written = kernel(memory, memory)

    np.testing.assert_array_equal(kept, X)
    np.testing.assert_array_equal(written, 2 * X)
    assert loads == [False]


def test_a_watched_kernel_copies(loads):
    with watched_by(Watcher()):
        doubled(X)
    assert True not in loads


def test_writing_to_a_loaded_tile_leaves_the_parameter(loads):
    @nki.jit
    def kernel(x):
        tile = nl.load(x)
        sum_before = tile + 0.0
        tile[...] = 7.0
        return stored(tile), stored(sum_before)

    x = X.copy()
    tile, before = kernel(x)

    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(tile, np.full_like(X, 7))
    np.testing.assert_array_equal(before, X)
    assert loads == [True]


def test_a_product_of_an_assigned_value_outlives_that_value():
    @nki.jit
    def kernel(x):
        tile, total = nl.ndarray((8, 8), nl.float32), nl.zeros((8, 8), nl.float32, buffer=nl.psum)
        value = nl.exp(nl.load(x))
        tile[...] = value
        product = nisa.nc_matmul(value, value)
        total += product
        value[...] = 0
        return stored(product + 0.0)

    np.testing.assert_array_equal(kernel(np.zeros((8, 8), np.float32)), np.full((8, 8), 8))
