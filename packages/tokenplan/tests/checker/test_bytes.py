"""Bytes of accesses, iterations that edges reach: against plain loops."""

from itertools import product
from random import Random

import numpy as np

from tokenplan.checker.memory import atoms, footprint, runs
from tokenplan.checker.ordering import last_iteration
from tokenplan.checker.reading import read_plan_file
from tokenplan.checker.records import Access, Affine, Swizzle
from tokenplan.checker.timings import Times, races
from tokenplan.checker.unrolled import unroll


def random_access(random, swizzle=None):
    rank = random.randint(0, 3)
    shape = tuple(random.randint(0 if random.random() < 0.05 else 1, 4) for _ in range(rank))
    strides = tuple(random.choice((-9, -4, -2, 0, 1, 2, 3, 4, 8, 16)) for _ in range(rank))
    width = random.choice((1, 2, 4, 8))
    return Access("a", "R", Affine(0, {}), shape, strides, width, "", swizzle)


def bytes_of(access, offset):
    """Every byte, one by one."""
    found = set()
    for index in product(*map(range, access.shape)):
        first = offset + sum(n * s for n, s in zip(index, access.strides, strict=True))
        found |= set(range(first, first + access.width))
    return found


def covered(intervals):
    return {byte for first, last in intervals.tolist() for byte in range(first, last)}


def test_runs_are_the_bytes_of_the_box_in_disjoint_intervals():
    for seed in range(300):
        access = random_access(Random(seed))
        found = footprint(access, runs(access), 100)
        assert covered(found) == bytes_of(access, 100), seed
        assert (np.diff(found.ravel()) > 0).all(), seed


def moved(byte, swizzle):
    result = swizzle.constant ^ (byte >> len(swizzle.columns) << len(swizzle.columns))
    for bit, column in enumerate(swizzle.columns):
        result ^= column * (byte >> bit & 1)
    return result


def test_a_swizzle_moves_each_byte_by_its_own_bits():
    for seed in range(60):
        random = Random(seed)
        columns = tuple(1 << bit | random.getrandbits(bit) for bit in range(random.randint(1, 6)))
        swizzle = Swizzle(columns, random.getrandbits(3))

        access = random_access(random, swizzle)
        found = footprint(access, runs(access), 100)
        assert covered(found) == {moved(byte, swizzle) for byte in bytes_of(access, 100)}, seed


def test_atoms_tell_any_two_footprints_where_they_meet():
    for seed in range(60):
        random = Random(seed)
        accesses = [random_access(random) for _ in range(random.randint(1, 9))]
        places = [random.randint(0, 40) + 100 for _ in accesses]
        footprints = [footprint(a, runs(a), at) for a, at in zip(accesses, places, strict=True)]
        found = atoms(footprints)
        for one, other in product(range(len(accesses)), repeat=2):
            both = set(found.of_footprint[one]) & set(found.of_footprint[other])
            shared = covered(footprints[one]) & covered(footprints[other])
            assert sum(found.num_bytes[atom] for atom in both) == len(shared), seed
            first = min((found.first_byte[atom] for atom in both), default=0)
            assert first == min(shared, default=0), seed


DISTANCES = [d for d in product((0, 1, 2), (-9, -2, 0, 1, 9), (-9, -1, 0, 2, 9)) if d >= (0, 0, 0)]


def test_the_last_iteration_that_is_early_enough_is_the_lexicographically_last(made):
    sizes = (3, 4, 2)
    nest = made.loop("i", 3, made.loop("j", 4, made.loop("k", 2, made.op("op"))))
    unrolled = unroll(read_plan_file(made.text(made.plan_file([], nest))))
    every = list(product(*map(range, sizes)))
    for distance in DISTANCES:
        found = last_iteration(unrolled, unrolled.ops[0], 0, distance)
        for at, number in zip(every, found.tolist(), strict=True):
            limit = tuple(n - d for n, d in zip(at, distance, strict=True))
            early = [n for n, other in enumerate(every) if other <= limit]
            assert number == (early[-1] if early else -1), (distance, at)


def test_instances_race_when_one_starts_while_the_other_runs(pipeline, made):
    """Later starts at 1.5 while earlier runs from 1 to 2, and at 2 when it is done."""
    queues, needed = made.queues(pipeline), [[0, 0, 0] for _ in range(12)]
    needed[1] = [1, 0, 0]  # work[k=0] needs load[k=0], the first of its queue
    start, end = np.zeros((12, 2)), np.zeros((12, 2))
    start[0], end[0], start[1] = 1, 2, (1.5, 2)
    found = races(queues, needed, Times(start, end))
    assert {pair: early.tolist() for pair, early in found.items()} == {(0, 1): [True, False]}
