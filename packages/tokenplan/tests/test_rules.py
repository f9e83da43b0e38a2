"""Each rule of the ladder: what it removes, what it leaves to the next, what it assumes."""

import pytest
from packages.tokenplan.tests.builders import access, kernel, loop, op

from neuroncore.layout import Swizzle
from tokenplan import analyse
from tokenplan.elision.elide import elide
from tokenplan.elision.tested_pairs import all_pairs
from tokenplan.rules import LADDER, NAMES, Pair, decide, says
from tokenplan.rules.candidate_orders import places


def first_to_second(found) -> tuple[str, str, tuple[int, ...]]:
    """Status, rule and distance of the one order from `u` to `v` over a."""
    (edge,) = (
        e for e in found.edges if (e.source, e.sink, e.buffer) == ("u", "v", "a")
    )  # fmt: skip
    return edge.status, edge.rule, edge.distance


def two(a, b, /, trips=4, **more):
    """u touches `a`, then v touches `b`, in a loop k."""
    return kernel(loop("k", trips, op("u", a), op("v", b)), **more)


@pytest.mark.parametrize(
    ("a", "b", "rule"),
    [
        (access("a", "W", 0, k=4), access("a", "R", 64, k=4), "boxes"),
        (access("a", "W", 0, k=16), access("a", "R", 4, k=8, width=2), "residues"),
        (access("a", "W", 0, k=8), access("a", "R", 4, k=16), "residues"),
        (access("a", "W", 0, k=-4, width=4), access("a", "R", 24, k=-4), "boxes"),
    ],
    ids=["disjoint", "odd-against-even", "steps-of-8-and-16", "backwards"],
)
def test_disjoint_accesses_are_removed_by_the_least_expensive_rule(a, b, rule):
    a = access("a", "W", a.offset.constant + 64, a.width, **dict(a.offset.terms))
    b = access("a", "R", b.offset.constant + 64, b.width, **dict(b.offset.terms))
    status, found, _ = first_to_second(analyse(two(a, b)))
    assert (status, found) == ("removed", rule)


def test_columns_of_a_tile_are_disjoint_though_their_bytes_interleave():
    tile = {"shape": (8,), "strides": (32,), "width": 8}
    found = analyse(two(access("a", "W", 0, **tile), access("a", "R", 8, **tile), a=(8, 32)))
    assert first_to_second(found)[:2] == ("removed", "boxes")


def test_what_moves_alike_is_decided_by_its_distance():
    near = analyse(two(access("a", "W", 8, k=4), access("a", "R", 0, k=4)))
    assert first_to_second(near) == ("kept", "shifts", (2,))
    (edge,) = (e for e in near.edges if (e.source, e.sink) == ("v", "u"))
    assert (edge.status, edge.rule) == ("removed", "shifts")


def test_one_byte_in_common_is_a_conflict():
    a, b = access("a", "W", 5, width=4, k=4), access("a", "R", 0, width=2, k=4)
    found = analyse(two(a, b))
    assert first_to_second(found) == ("kept", "shifts", (1,))
    (edge,) = (e for e in found.edges if (e.source, e.sink) == ("u", "v"))
    assert edge.witness is not None and edge.witness.byte == 5


def test_the_search_with_integer_sets_finds_the_nearest_iteration():
    found = analyse(two(access("a", "W", 12, k=4), access("a", "R", 0, k=8), trips=8))
    # u writes from 12 + 4 i on, v reads from 8 j on: in one iteration they meet at i = j = 3 alone.
    assert first_to_second(found) == ("kept", "isl", (0,))
    (edge,) = (e for e in found.edges if (e.source, e.sink) == ("u", "v"))
    assert edge.witness is not None
    assert (edge.witness.byte, edge.witness.source, edge.witness.sink) == (24, {"k": 3}, {"k": 3})


def test_reads_and_accumulations_commute_but_not_with_each_other():
    both = two(access("a", "A"), access("a", "A"))
    assert analyse(both).edges == ()
    mixed = analyse(two(access("a", "A"), access("a", "R")))
    assert first_to_second(mixed) == ("kept", "trial", (0,))
    assert {e.kind for e in mixed.edges} == {"accumulate"}


def test_a_tensor_that_is_made_anew_carries_nothing():
    inside = two(access("t", "W"), access("t", "R"), scopes={"t": ("k",)})
    rules = {(e.source, e.sink): (e.status, e.rule) for e in analyse(inside).edges}
    assert rules["u", "v"] == ("kept", "trial")
    assert rules["v", "u"] == ("removed", "instances")
    outside = analyse(two(access("t", "W"), access("t", "R")))
    assert ("v", "u", "kept") in {(e.source, e.sink, e.status) for e in outside.edges}


def test_a_loop_without_iterations_asks_for_nothing():
    found = analyse(two(access("a", "W"), access("a", "R"), trips=0))
    assert found.edges == ()
    assert found.counts is not None and found.counts.rules == {"commute": 1, "never": 3}


def test_distinct_parameters_are_an_assumption_only_where_one_is_written():
    written = analyse(two(access("a", "W"), access("b", "R")))
    assert written.assumptions == ("parameters a and b are distinct tensors",)
    assert [found.code for found in written.diagnostics] == ["W2"]
    assert analyse(two(access("a", "R"), access("b", "R"))).assumptions == ()


def test_an_index_beyond_2_31_is_an_assumption():
    far = 2**31
    a, b = access("a", "W", 0), access("a", "R", far, width=4)
    found = analyse(two(a, b, a=(2**32,)))
    assert first_to_second(found)[:2] == ("removed", "boxes")
    assert found.assumptions == ("an index of v, which reaches 2^31, does not wrap",)
    assert [f.code for f in found.diagnostics] == ["W3"]


def test_an_opaque_access_keeps_its_orders_and_says_so():
    found = analyse(two(access("a", "W", k=4), access("a", "R", width=256, opaque="gather")))
    assert first_to_second(found)[0] == "kept"
    (said,) = (f for f in found.diagnostics if f.code == "W1")
    assert "v accesses is not known (gather)" in said.text and "keeps 2 orders" in said.text


XOR = Swizzle.xor(bits=2, base=4, shift=2)  # 16-byte blocks change places by the row of 64 bytes


def test_swizzled_accesses_that_never_meet_are_cosets():
    rows = {"shape": (4,), "strides": (64,), "width": 16, "swizzle": XOR}
    # The diagonal of blocks (swizzled column 0) against the first row's second block, plain.
    found = analyse(two(access("a", "W", 0, **rows), access("a", "R", 16, width=16)))
    assert first_to_second(found)[:2] == ("removed", "cosets")


def test_swizzled_accesses_that_meet_are_kept():
    rows = {"shape": (4,), "strides": (64,), "width": 16, "swizzle": XOR}
    found = analyse(two(access("a", "W", 0, **rows), access("a", "R", 80, width=16)))
    assert first_to_second(found)[0] == "kept"  # row 1 of the diagonal is block 1
    (edge,) = (e for e in found.edges if (e.source, e.sink) == ("u", "v"))
    assert edge.witness is not None and edge.witness.byte == 80
    assert edge.rule == "isl"


def test_swizzled_bytes_beyond_the_budget_are_kept_without_a_witness():
    rows = {"shape": (4,), "strides": (64,), "width": 16, "swizzle": XOR}
    program = two(access("a", "W", 0, **rows), access("a", "R", 80, width=16))
    found = elide(program, budget=300)  # 4 iterations of 64 + 16 bytes
    (edge,) = (e for e in found.edges if (e.source, e.sink) == ("u", "v"))
    assert (edge.status, edge.rule, edge.distance, edge.witness) == ("kept", "budget", (0,), None)


def test_one_swizzle_for_both_separates_nothing():
    found = analyse(two(access("a", "W", 80, swizzle=XOR), access("a", "R", 80, swizzle=XOR)))
    (edge,) = (e for e in found.edges if (e.source, e.sink) == ("u", "v"))
    assert edge.status == "kept" and edge.witness is not None
    assert edge.witness.byte == XOR(80)


def test_a_search_beyond_its_budget_keeps_the_order_at_the_least_distance():
    program = two(access("a", "W", 12, k=4), access("a", "R", 0, k=8), trips=8)
    found = elide(program, budget=10)
    (edge,) = (e for e in found.edges if (e.source, e.sink) == ("u", "v"))
    assert (edge.status, edge.rule, edge.distance, edge.witness) == ("kept", "budget", (0,), None)


def test_the_budget_counts_work_not_time():
    program = two(access("a", "W", 12, k=4), access("a", "R", 0, k=8), trips=8)
    outcomes = [[e.rule for e in elide(program, budget).edges] for budget in (3000, 3000, 3000)]
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_every_rule_has_words_and_a_place_in_the_ladder():
    assert [rule.name for rule in LADDER] == list(NAMES[: len(LADDER)])
    assert NAMES[-2:] == ("isl", "budget")
    assert all(says(name) for name in NAMES)


def test_the_ladder_gives_the_same_as_counting_does():
    """Distinct buffers and commuting modes are counted in bulk; the rules say the same."""
    program = kernel(
        op("p", access("a", "W"), access("b", "R")),
        loop("k", 3, op("u", access("a", "R"), access("b", "A")), op("v", access("b", "A", k=4))),
    )
    verdicts = [decide(Pair(*pair)).rule for pair in all_pairs(places(program))]
    counts = analyse(program).counts
    assert counts is not None and counts.pairs == len(verdicts)
    assert counts.rules["distinct"] == verdicts.count("distinct")
    assert counts.rules["commute"] == verdicts.count("commute")
