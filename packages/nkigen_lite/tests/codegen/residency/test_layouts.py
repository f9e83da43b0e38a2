"""Accesses to an array in HBM as accesses to its layout in SBUF: the same elements in order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from neuroncore.program import Access, Affine
from neuroncore.spec import row_major
from nkigen_lite.codegen.residency.layouts import ResidentLayout

LAYOUTS = [ResidentLayout(r, p, 512) for r, p in ((4, 128), (8, 64), (4, 32), (512, 1), (16, 32))]


def elements(array: np.ndarray, access: Access, offset: int) -> list[int]:
    """What the access reads, in its order."""
    sizes = (range(n) for n in access.shape)
    places = (
        offset + sum(i * s for i, s in zip(index, access.strides, strict=True))
        for index in itertools.product(*sizes)
    )
    return [int(array[place]) for place in places]


def on_chip(layout: ResidentLayout) -> np.ndarray:
    """Partition after partition of an array of 0, 1, 2, …"""
    e = np.arange(layout.size)
    partition, free = e // layout.run % layout.partitions, e % layout.run
    made = np.full(layout.partitions * layout.row, -1)
    outer = e // (layout.run * layout.partitions)
    made[partition * layout.row + outer * layout.run + free] = e
    return made


def random_access(rng: np.random.Generator, run: int) -> Access | None:
    """Rows of runs and one or two axes of powers of two, inside 512 elements."""
    axes = [(2 ** rng.integers(0, 6), 2 ** rng.integers(0, 9)) for _ in range(rng.integers(1, 3))]
    axes.insert(0, (2 ** rng.integers(0, 8), np.int64(run)))
    shape, strides = (tuple(map(int, found)) for found in zip(*axes, strict=True))
    room = 512 - sum((n - 1) * s for n, s in axes)
    return Access("x", Affine(int(rng.integers(room))), shape, strides) if room > 0 else None


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda v: f"{v.run} in {v.partitions}")
def test_accesses_on_chip_read_the_same_elements(layout):
    rng, found = np.random.default_rng([28, layout.run]), 0
    array, resident = np.arange(512), on_chip(layout)
    for _ in range(4000):
        access = random_access(rng, layout.run % 512 or 1)
        direct = access and layout.direct("x", access, {})
        if access and direct:
            found += 1
            wanted = elements(array, access, access.offset.constant)
            assert elements(resident, direct, direct.offset.constant) == wanted

    assert found > 20


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda v: f"{v.run} in {v.partitions}")
def test_transfers_between_partitions_move_every_element_to_its_place(layout):
    rng, found = np.random.default_rng([29, layout.run]), 0
    array, resident = np.arange(512), on_chip(layout)
    for _ in range(4000):
        access = random_access(rng, layout.run % 512 or 1)
        if access is None:
            continue
        other = Access("y", Affine(), access.shape, row_major(access.shape))
        pairs = layout.transfers("x", access, other, {})
        if pairs is None:
            continue
        found += 1
        made = np.full(int(np.prod(access.shape)), -1)
        for here, there in pairs:
            values = elements(resident, here, here.offset.constant)
            places = elements(np.arange(made.size), there, there.offset.constant)
            made[places] = values
        assert made.tolist() == elements(array, access, access.offset.constant)

    assert found > 20


def test_a_loop_that_leaves_its_partition_is_no_access():
    layout, rows = ResidentLayout(4, 128, 512), {"t": range(4)}
    inside = Access("x", Affine.variable("t"), (128, 1), (4, 1))
    across = Access("x", Affine.variable("t", 2), (128, 1), (4, 1))

    assert layout.direct("x", inside, rows) is not None
    assert layout.direct("x", across, rows) is None
