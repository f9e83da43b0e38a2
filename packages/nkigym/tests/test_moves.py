"""Moves are steps taken together: written down one by one, and worth more than each."""

import pytest
from packages.nkigym.tests.tuning_kernels import PRODUCT, SOFTMAX, TWO, product, softmax, two

from neuroncore.program import Call, check, print_program, walk
from neuroncore.timeline import estimate
from nkigym.loops import Refused, Step, replay
from nkigym.naive import naive
from nkigym.search.form import form_digest
from nkigym.search.loop_space import LoopSpace
from nkigym.search.moves import Move, apply_move, moves
from nkigym.tuning.running import difference, integers, run_program

CASES = {"product": (product, PRODUCT), "softmax": (softmax, SOFTMAX), "two": (two, TWO)}


def loads(program):
    return [s for s in walk(program.body) if isinstance(s, Call) and s.is_dma]


@pytest.mark.parametrize("case", CASES)
def test_every_move_is_its_steps_and_keeps_what_is_computed(case):
    function, specs = CASES[case]
    root = naive(function, *specs)
    inputs = integers(root, seed=2)
    wanted = run_program(root, inputs)
    taken = 0
    for move in moves(root):
        try:
            program, steps = apply_move(root, move)
        except Refused:
            continue
        taken += 1
        again = replay(root, [Step.from_json(step.to_json()) for step in steps])
        assert print_program(again) == print_program(program)
        check(program)
        assert difference(run_program(program, inputs), wanted) is None
    assert taken >= 3


def test_a_load_leaves_loops_that_do_not_move_it_and_becomes_one():
    """The right operand of a product is loaded once: 2 chunks of K, 2 of 512 columns."""
    root = naive(product, *PRODUCT)
    (place,) = [
        move.at
        for move in moves(root)
        if move == Move("stage", move.at, 3, 2) and loads(root)[1] is at(root, move.at)
    ]

    program, steps = apply_move(root, Move("stage", place, 3, 2))

    moved = loads(program)[0]
    assert moved.accesses["src"].size == 256 * 1024
    assert [step.transform for step in steps] == ["hoist"] * 3 + ["widen"] * 2
    assert estimate(program).hbm_bytes < estimate(root).hbm_bytes


def at(program, place):
    body = program.body
    for number in place[:-1]:
        body = body[number].body
    return body[place[-1]]


def test_a_move_that_cannot_be_taken_says_why():
    root = naive(two, *TWO)
    last = max(move.at for move in moves(root))

    with pytest.raises(Refused, match="it cannot come first in its loop"):
        apply_move(root, Move("stage", last, 1, 0))


# -- programs but for names ------------------------------------------------------------------------


def renamed(program, old, new):
    from neuroncore.program import parse_program

    return parse_program(print_program(program).replace(old, new))


def test_names_do_not_tell_programs_apart():
    root = naive(two, *TWO)

    for old in ("row", "x0_tile", "def two"):
        assert form_digest(renamed(root, old, f"{old}_other")) == form_digest(root)


@pytest.mark.parametrize(
    ("old", "new"),
    [("op=add", "op=subtract"), ("range(4)", "range(3)"), ("128*row", "64*row"), ("0.6", "0.5")],
)
def test_what_is_done_tells_programs_apart(old, new):
    root = naive(two, *TWO)

    assert form_digest(renamed(root, old, new)) != form_digest(root)


def test_what_the_space_offers_is_in_the_same_order_each_time():
    root = naive(product, *PRODUCT)

    assert LoopSpace(root).steps(root) == LoopSpace(root).steps(root)
