"""The minimal graph: nothing is lost, nothing is left over; large programs stay affordable."""

import random

import pytest
from packages.tokenplan.tests import brute_force
from packages.tokenplan.tests.builders import access, kernel, loop, op

from neuroncore.layout import Swizzle
from neuroncore.program import Affine
from tokenplan import Access, Buffer, Kernel, Mode, Op, analyse
from tokenplan.elision.elide import elide
from tokenplan.graph.token_graph import REMOVED, Join
from tokenplan.kernel.model import PLAIN
from tokenplan.reduction.transitive_reduction import (
    _Search,
    moved,
    next_point,
    reduce,
    representatives,
)

Arrow = tuple[str, str, tuple[int, ...]]


def arrows(edges, *but: str) -> list[Arrow]:
    return [(e.source, e.sink, e.distance) for e in edges if e.status not in but]


def in_order(kernel: Kernel, edges: list[Arrow]) -> bool:
    """Whether the edges order all that conflicts."""
    run = brute_force.instances(kernel)
    number = {(x.op.id, *x.at.values()): n for n, x in enumerate(run)}
    before = brute_force.closure(kernel, edges)
    return all(
        before[number[b.op.id, *b.at.values()]] >> number[a.op.id, *a.at.values()] & 1
        for _, _, a, b in brute_force.conflicts(kernel)
    )


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_kept_edges_order_what_all_needed_ones_do(first):
    for seed in range(first, first + 20):
        found = brute_force.random_kernel(seed)
        edges = reduce(found, elide(found).edges, looks=0)
        kept = brute_force.closure(found, arrows(edges, REMOVED, "implied"))
        assert kept == brute_force.closure(found, arrows(edges, REMOVED)), seed


@pytest.mark.parametrize("exhaustive", [10**9, -1], ids=["every-pair", "near-pairs"])
@pytest.mark.parametrize("first", range(0, 80, 20))
def test_every_conflict_is_in_order_and_every_edge_is_needed_for_one(first, exhaustive):
    for seed in range(first, first + 20):
        found = brute_force.random_kernel(seed)
        elision = elide(found, exhaustive=exhaustive)
        kept = arrows(reduce(found, elision.edges), REMOVED, "implied")
        counts = elision.counts
        assert counts.pairs == counts.removed + counts.conflicts + counts.untested
        assert counts.untested >= 0
        assert in_order(found, kept), seed
        for at in range(len(kept)):
            assert not in_order(found, kept[:at] + kept[at + 1 :]), (seed, kept[at])


def test_an_order_through_the_next_iteration_is_implied():
    # u -> v in one iteration, v -> u in the next: u -> u and v -> v follow.
    found = analyse(kernel(loop("k", 9, op("u", access("a", "W")), op("v", access("a", "W")))))
    assert sorted(arrows(found.edges, REMOVED, "implied")) == [
        ("u", "v", (0,)), ("v", "u", (1,)),
    ]  # fmt: skip


def test_two_steps_of_an_inner_loop_do_not_add_up_across_its_end():
    """(0, 1) twice is not (0, 2): from a row's last iteration it ends one later than it should."""
    found = kernel(loop("m", 3, loop("k", 4, op("u", access("a", "W")), op("v", access("a", "R")))))
    edges = [
        edge for edge in elide(found).edges if (edge.source, edge.sink) in (("u", "v"), ("v", "u"))
    ]
    assert {edge.distance for edge in reduce(found, edges)} == {(0, 0), (0, 1)}
    assert next_point((0, 4), (3, 4)) == (1, 0)
    assert next_point((1, -1), (3, 4)) == (1, 0)
    assert moved((2, 3), (0, 1), (3, 4)) is None
    assert moved((0, 1), (1, -3), (3, 4)) == (1, 0)


def test_representatives_are_ends_and_a_middle():
    assert [at for (at,) in representatives([100], 2, 1)] == [0, 1, 2, 99]
    assert [at for (at,) in representatives([3], 2, 1)] == [0, 1, 2]


def test_a_join_is_an_edge_like_any_other():
    program = kernel(loop("k", 4, op("u", access("a", "R")), op("v", access("b", "R"))))
    found = analyse(program, [Join("u", "v"), Join("v", "u")])
    assert arrows(found.edges) == [("u", "v", (0,)), ("v", "u", (1,))]


def test_a_write_that_covers_a_part_does_not_stand_for_the_rest():
    found = kernel(
        op("u", access("a", "R", 4, width=8)),
        op("v", access("a", "W", 0, width=8)),
        op("w", access("a", "W", 8, width=8)),
    )
    kept = arrows(reduce(found, elide(found, exhaustive=-1).edges), REMOVED, "implied")
    assert kept == [("u", "v", ()), ("u", "w", ())]


SHAPES = ((), (), (3,), (2, 2))
STRIDES = (1, 2, 4, 8, 16, 17, 24, -8)
SWIZZLES = (*(PLAIN,) * 8, Swizzle.xor(2, 1, 3))


def random_straight(seed: int, count: int = 36) -> Kernel:
    """Operations without a loop on parts of one tensor: rows, columns, blocks, every other byte."""
    rng = random.Random(seed)
    widths = rng.choice(((1, 2, 4), (8, 16), (1, 2, 4, 8, 16, 64)))
    most = rng.choice((1, 2, 3))

    def part() -> Access:
        shape = rng.choice(SHAPES)
        strides, width = tuple(rng.choice(STRIDES) for _ in shape), rng.choice(widths)
        ends = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
        low = sum(min(0, end) for end in ends)
        start = rng.randint(-low, 255 - sum(max(0, end) for end in ends) - width)
        mode = rng.choice("RRRWWA")
        return access("a", mode, start, width, shape, strides, swizzle=rng.choice(SWIZZLES))

    ops = [op(f"op{n}", *(part() for _ in range(rng.randint(1, most)))) for n in range(count)]
    inside = rng.choice((0, 0, 3))
    return kernel(*ops[inside:], *([loop("k", 2, *ops[:inside])] if inside else ()), a=(16, 16))


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_pairs_that_are_not_looked_at_need_no_edge_of_their_own(first):
    for seed in range(first, first + 10):
        found = random_straight(seed)
        every, near = (elide(found, exhaustive=most) for most in (10**9, -1))
        counts = near.counts
        assert counts.untested + counts.removed + counts.conflicts == every.counts.pairs
        assert counts.removed <= every.counts.removed
        kept = [sorted(arrows(reduce(found, e.edges), REMOVED, "implied")) for e in (every, near)]
        assert kept[0] == kept[1], seed


def random_nest(seed: int) -> Kernel:
    """Eight operations on up to three parts of one tensor each, some of them in loops."""
    rng = random.Random(seed)
    inside, outer = rng.choice((2, 5, 8)), rng.choice((0, 2))

    def part(moves: bool) -> Access:
        shape = rng.choice(SHAPES)
        strides, width = (
            tuple(rng.choice((1, 2, 4, 8, 16)) for _ in shape),
            rng.choice((1, 2, 4, 8)),
        )
        reach = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + width
        step = rng.choice((0, 0, 1, 2, 4, 16)) if moves else 0
        step = step if reach + 2 * step <= 64 else 0
        start = rng.choice((0, rng.randint(0, 64 - reach - 2 * step)))
        return access("a", rng.choice("RRRWWA"), start, width, shape, strides, k=step)

    ops = [op(f"op{n}", *(part(n < inside) for _ in range(rng.randint(1, 3)))) for n in range(8)]
    inner = (loop("m", 2, *ops[outer:inside]),) if outer else ops[outer:inside]
    return kernel(loop("k", 3, *ops[:outer], *inner), *ops[inside:], a=(4, 16))


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_what_is_listed_of_a_tensor_with_many_accesses_holds_for_all_of_them(first):
    """Also where pairs were not looked at because others imply their order."""
    for seed in range(first, first + 20):
        found = random_nest(seed)
        nearest = brute_force.nearest(found)
        for edge in elide(found, exhaustive=-1).edges:
            needed = None if edge.status == REMOVED else edge.distance
            key = edge.source, edge.sink, edge.buffer, edge.kind
            assert nearest.get(key) == needed, (seed, edge)


WAYS = {
    "columns and all": lambda n: (
        [("W", 4 * n % 64, 4), ("R", 4 * n % 64, 4)] if n % 2 else [("R", 0, 64)]
    ),
    "windows": lambda n: [("R", n * 37 % 49, 3 + n % 12), ("W", n * 23 % 49, 3 + n * 5 % 12)],
    "every other": lambda n: [("R", n % 2, 1), ("W", n % 2, 1)],
}


@pytest.mark.parametrize("way", WAYS)
def test_what_has_to_be_looked_at_grows_with_the_program_not_with_its_pairs(way):
    shape, strides = ((32,), (2,)) if way == "every other" else ((), ())

    def conflicts(count: int) -> int:
        touched = (WAYS[way](n) for n in range(count))
        ops = [
            op(f"op{n}", *(access("a", mode, at, wide, shape, strides) for mode, at, wide in parts))
            for n, parts in enumerate(touched)
        ]
        counts = analyse(kernel(*ops, a=(64,))).counts
        assert counts is not None
        return counts.conflicts

    assert conflicts(1_200) < 2.2 * conflicts(600)


def straight(count: int) -> Kernel:
    """`count` operations, each on one of ten rows: it reads a row and writes it."""

    def touch(n: int) -> Op:
        row = Affine(64 * (n % 10))
        accesses = tuple(Access("a", mode, row, (), (), 64) for mode in (Mode.read, Mode.write))
        return Op(f"op{n}", "copy", "vector", (), accesses)

    buffers = {"a": Buffer("a", "sbuf", (10, 64), 1)}
    return Kernel("straight", "trn2", buffers, tuple(touch(n) for n in range(count)))


def test_a_long_straight_program_is_not_tested_pair_by_pair():
    found = analyse(straight(2_000))
    counts = found.counts
    assert counts is not None
    assert counts.pairs == 4 * (2_000 * 1_999 // 2)
    assert counts.conflicts < 4 * 2_000
    assert counts.untested > 0
    # Each operation waits for the one that had its row before.
    kept = {(e.source, e.sink) for e in found.with_status("kept")}
    assert kept == {(f"op{n}", f"op{n + 10}") for n in range(1_990)}


@pytest.mark.parametrize("limit, is_tested", [(10_000, True), (1, False)])
def test_iterations_are_tested_where_there_is_time_for_all_of_them(limit, is_tested, monkeypatch):
    tested = []
    monkeypatch.setattr(_Search, "_in_order", lambda search, source: tested.append(source))

    for found in map(random_nest, range(10)):
        reduce(found, elide(found).edges, looks=limit)

    assert bool(tested) is is_tested
