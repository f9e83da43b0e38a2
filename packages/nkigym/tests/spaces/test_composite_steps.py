"""Moves are steps taken together: written down one by one, and worth more than each."""

from contextlib import suppress

import pytest
from packages.nkigym.tests.tuning_kernels import PRODUCT, SOFTMAX, TWO, product, softmax, two

from neuroncore.program import Call, Loop, check, parse_program, print_program, verify, walk
from neuroncore.timeline import estimate
from nkigym.analysis.legality import Verifier
from nkigym.analysis.roofline import Rooflines
from nkigym.baseline import baseline_kernel
from nkigym.search.protocol import RejectedStepError
from nkigym.spaces.composite_steps import (
    BalancedPipeline,
    CompositeStep,
    apply_balanced_pipeline,
    apply_composite,
    balanced_pipelines,
    composite_steps,
)
from nkigym.spaces.kernel_space import LoopSpace, structural_digest
from nkigym.transforms import TransformError, TransformStep, replay
from nkigym.tuning.execution import difference, run_program
from nkigym.tuning.input_ranges import integers

CASES = {"product": (product, PRODUCT), "softmax": (softmax, SOFTMAX), "two": (two, TWO)}


def loads(program):
    return [s for s in walk(program.body) if isinstance(s, Call) and s.is_dma]


@pytest.mark.parametrize("case", CASES)
def test_every_move_is_its_steps_and_keeps_what_is_computed(case):
    function, specs = CASES[case]
    root = baseline_kernel(function, *specs)
    inputs = integers(root, seed=2)
    wanted = run_program(root, inputs)
    taken = 0
    for move in composite_steps(root):
        try:
            program, steps = apply_composite(root, move)
        except TransformError:
            continue
        taken += 1
        again = replay(root, [TransformStep.from_json(step.to_json()) for step in steps])
        assert print_program(again) == print_program(program)
        check(program)
        assert difference(run_program(program, inputs), wanted) is None
    assert taken >= 3


def test_a_load_leaves_loops_that_do_not_move_it_and_becomes_one():
    """The right operand of a product is loaded once: 2 chunks of K, 2 of 512 columns."""
    root = baseline_kernel(product, *PRODUCT)
    (place,) = [
        move.at
        for move in composite_steps(root)
        if move == CompositeStep("stage", move.at, 3, 2) and loads(root)[1] is at(root, move.at)
    ]

    program, steps = apply_composite(root, CompositeStep("stage", place, 3, 2))

    moved = loads(program)[0]
    assert moved.accesses["src"].size == 256 * 1024
    assert [step.transform for step in steps] == ["hoist"] * 3 + ["widen"] * 2
    assert (
        estimate(program, mode="as_written").hbm_bytes < estimate(root, mode="as_written").hbm_bytes
    )


SEPARATE = """program("trn2", "0.6")
def apart(a: float32[512, 512], b: float32[512, 512]):
    out = buffer(float32[512, 512], shared_hbm)
    s = buffer(float32[128, 4, 512], sbuf)
    for i in range(4):
        dma_copy(dst=s[:, i, :], src=a[128*i : 128*i + 128, :])
    t = buffer(float32[128, 4, 512], sbuf)
    for j in range(4):
        dma_copy(dst=t[:, j, :], src=b[128*j : 128*j + 128, :])
    for k in range(4):
        tensor_tensor(dst=t[:, k, :], data1=s[:, k, :], data2=t[:, k, :], op=add)
        dma_copy(dst=out[128*k : 128*k + 128, :], src=t[:, k, :])
    return out
"""


def sources(program):
    """Of each load, outside the last loop, which parameter it reads, and in which iterations."""
    found = []
    for statement in program.body[:-1]:
        inner = statement.body[0] if isinstance(statement, Loop) else statement
        values = tuple(statement.values) if isinstance(statement, Loop) else None
        if isinstance(inner, Call):
            found.append((inner.accesses["src"].buffer, values))
    return found


@pytest.mark.parametrize(
    ("move", "wanted"),
    [
        (CompositeStep("trail", (2,), 1, 0), [("a", None), ("b", (0, 1, 2, 3)), ("a", (1, 2, 3))]),
        (CompositeStep("lead", (4,), 1, 0), [("b", None), ("a", (0, 1, 2, 3)), ("b", (1, 2, 3))]),
    ],
)
def test_what_is_needed_first_is_loaded_first(move, wanted):
    root = parse_program(SEPARATE)
    inputs = integers(root, seed=2)
    assert move in set(composite_steps(root))

    program, steps = apply_composite(root, move)

    assert sources(program) == wanted
    assert [step.transform for step in steps] == ["peel", "swap"]
    assert print_program(replay(root, steps)) == print_program(program)
    assert difference(run_program(program, inputs), run_program(root, inputs)) is None


def test_a_load_does_not_trail_behind_what_reads_it():
    """Behind the other load it may stand, behind the sums it may not."""
    with pytest.raises(TransformError, match="their order matters"):
        apply_composite(parse_program(SEPARATE), CompositeStep("trail", (2,), 2, 0))


def test_only_loops_of_transfers_lead_and_trail():
    found = [
        move for move in composite_steps(parse_program(SEPARATE)) if move.kind in ("lead", "trail")
    ]

    assert {move.at for move in found} == {(2,), (4,)}


def at(program, place):
    body = program.body
    for number in place[:-1]:
        body = body[number].body
    return body[place[-1]]


def test_a_move_that_cannot_be_taken_says_why():
    root = baseline_kernel(two, *TWO)
    last = max(move.at for move in composite_steps(root))

    with pytest.raises(TransformError, match="it cannot come first in its loop"):
        apply_composite(root, CompositeStep("stage", last, 1, 0))


# -- overlaps --------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_every_overlap_is_a_pipeline_step_and_keeps_what_is_computed(case):
    function, specs = CASES[case]
    root = baseline_kernel(function, *specs)
    inputs = integers(root, seed=2)
    wanted = run_program(root, inputs)
    rooflines = Rooflines(root.target, root.nki)
    taken = 0
    for overlap in balanced_pipelines(root):
        try:
            program, (step,) = apply_balanced_pipeline(root, overlap, rooflines)
        except TransformError:
            continue
        taken += 1
        assert (step.transform, step.at) == ("pipeline", overlap.at)
        assert print_program(replay(root, [step])) == print_program(program)
        assert difference(run_program(program, inputs), wanted) is None
    assert taken >= 2


CHAIN = """program("trn2", "0.6")
def chain(a: float32[1024, 512]):
    out = buffer(float32[1024, 512], shared_hbm)
    for i in range(8):
        t = buffer(float32[128, 512], sbuf)
        dma_copy(dst=t[:, :], src=a[128*i : 128*i + 128, :])
        activation(dst=t[:, :], data=t[:, :], scale=1.0, op=exp)
        tensor_scalar(dst=t[:, 0:8], data=t[:, 0:8], operand0=2.0, op0=multiply)
        tensor_tensor(dst=t[:, :], data1=t[:, :], data2=t[:, :], op=add)
        dma_copy(dst=out[128*i : 128*i + 128, :], src=t[:, :])
    return out
"""


def test_an_overlap_cuts_where_the_longest_part_is_shortest():
    """Transfers take longest: of three parts, each has one alone."""
    program = parse_program(CHAIN)
    rooflines = Rooflines("trn2", "0.6")
    work = dict(rooflines.work(program, (1,)))
    assert min(work, key=lambda number: work[number]) == 3
    assert sorted(work, key=lambda number: work[number])[-2:] == [1, 5]

    _, (step,) = apply_balanced_pipeline(program, BalancedPipeline((1,), 3, "0,1,2"), rooflines)

    assert step.option("cuts", str) == "2,5"


def test_an_overlap_that_cannot_be_taken_says_why():
    with pytest.raises(TransformError, match="fewer iterations"):
        apply_balanced_pipeline(
            parse_program(CHAIN.replace("range(8)", "range(2)")),
            BalancedPipeline((1,), 3, "0,1,2"),
            Rooflines("trn2", "0.6"),
        )


# -- what is remembered of calls -------------------------------------------------------------------


def test_findings_of_a_search_are_those_of_the_verifier():
    """Of every program one step from a product and from one that breaks rules, asked twice."""
    root = baseline_kernel(product, *PRODUCT)
    space = LoopSpace(root)
    verifier = Verifier(root.target, root.nki)
    broken = parse_program(CHAIN.replace("[128, 512], sbuf", "[128, 60000], sbuf"))
    wrong = parse_program(CHAIN.replace("128*i : 128*i + 128", "128*i + 128 : 128*i + 256"))
    programs = [root, broken, wrong]
    for step in space.steps(root)[:80]:
        with suppress(RejectedStepError):
            programs.append(space.apply(root, step).state)
    for program in programs * 2:
        assert verifier.findings(program) == verify(program, content=False)
    assert verifier.findings(broken)
    assert verifier.findings(wrong)


# -- programs but for names ------------------------------------------------------------------------


def renamed(program, old, new):
    return parse_program(print_program(program).replace(old, new))


def test_names_do_not_distinguish_programs():
    root = baseline_kernel(two, *TWO)

    for old in ("row", "x0_tile", "def two"):
        assert structural_digest(renamed(root, old, f"{old}_other")) == structural_digest(root)


@pytest.mark.parametrize(
    ("old", "new"),
    [("op=add", "op=subtract"), ("range(4)", "range(3)"), ("128*row", "64*row"), ("0.7", "0.6")],
)
def test_operations_distinguish_programs(old, new):
    root = baseline_kernel(two, *TWO)

    assert structural_digest(renamed(root, old, new)) != structural_digest(root)


def test_what_the_space_offers_is_in_the_same_order_each_time():
    root = baseline_kernel(product, *PRODUCT)

    assert LoopSpace(root).steps(root) == LoopSpace(root).steps(root)
