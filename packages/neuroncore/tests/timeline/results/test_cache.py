"""Programs that were played before: what is remembered is what playing them gives, to the bit."""

import re
from dataclasses import replace
from typing import Any

import pytest

from neuroncore.program import Call, Loop, Program, calls, parse_program
from neuroncore.timeline import constants, estimate
from neuroncore.timeline.results import cache
from neuroncore.timeline.results.cache import form_of

from ..kernels import ALL, program
from ..random_kernels import random_program

SEEDS = range(12)
NAME = re.compile(r"\b(out|[abcdwpijk]|t\d+)\b")


def renamed(kernel: Program) -> Program:
    """The same with other names of buffers and loop variables, and other source lines."""
    return parse_program("\n\n" + NAME.sub(r"\1_other", str(kernel)))


def everything(timeline) -> tuple:
    bars = [replace(bar, place=None, call=None) for bar in timeline.bars]
    return (
        timeline.total_ns, timeline.launch_ns, timeline.num_ops, timeline.hbm_bytes,
        timeline.flops, timeline.repeats, timeline.lanes, timeline.mfu, timeline.mbu,
        timeline.dma_efficiency, bars, timeline.occupancy(),
        [(step.bar.number, step.path_ns) for step in timeline.critical_path()],
    )  # fmt: skip


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_remembered_is_what_playing_gives(seed, target):
    kernel = random_program(seed, target)
    other = renamed(kernel)
    estimate(kernel)

    known = estimate(other)
    assert len(cache._known) == 1
    cache.forget()
    played = estimate(other)

    assert everything(known) == everything(played)


def test_a_remembered_timeline_speaks_of_the_program_that_was_asked_for():
    kernel = random_program(3, "trn2")
    other = renamed(kernel)
    estimate(kernel)

    found = estimate(other)

    assert found.program is other
    own = {id(call) for call in calls(other.body)}
    assert all(id(bar.call) in own for bar in found.bars)
    assert all(bar.place == bar.call.origin for bar in found.bars)


def test_random_programs_are_never_taken_for_one_another():
    kernels = [random_program(seed, target) for seed in SEEDS for target in ("trn2", "trn3")]
    together = [estimate(kernel).total_ns for kernel in kernels]
    alone = []
    for kernel in kernels:
        cache.forget()
        alone.append(estimate(kernel).total_ns)

    assert together == alone


def test_target_constants_and_periods_are_told_apart():
    kernel = program(next(iter(ALL.values())))
    slow = constants().but("DMA_START", "trn2", 1e6)
    asked: list[dict[str, Any]] = [
        {}, {"constants": slow}, {"skip_periods": False}, {"target": "trn3"},
        {"target": "trn3", "constants": slow},
    ]  # fmt: skip
    together = [everything(estimate(kernel, **options)) for options in (*asked, *asked)]
    alone = []
    for options in asked:
        cache.forget()
        alone.append(everything(estimate(kernel, **options)))

    assert together == alone + alone
    assert alone[1][0] > alone[0][0]


TEXT = """program("trn2", "0.6")
def kernel(x: float32[128, 512]):
    a = buffer(float32[128, 512], sbuf)
    for i in range(4):
        dma_copy(dst=a[:, 128*i : 128*i + 128], src=x[:, 128*i : 128*i + 128])
        activation(dst=a[:, 0:128], data=a[:, 0:128], op=exp, scale=1.0)
    return x
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("range(4)", "range(3)"),
        ("op=exp", "op=tanh"),
        ("scale=1.0", "scale=2.0"),
        ("scale=1.0", "scale=1"),
        ("src=x[:, 128*i : 128*i + 128]", "src=x[:, 0:128]"),
        ("data=a[:, 0:128]", "data=a[:, 128:256]"),
        ("float32[128, 512], sbuf", "float32[128, 640], sbuf"),
        ("float32[128, 512], sbuf", "float32[128, 512], sbuf, address=(0, 0)"),
        ("x: float32[128, 512]", "x: float32[128, 1024]"),
        ("dst=a[:, 0:128], data=a", "dst=a[:, 0:128], data=x"),
    ],
)
def test_whatever_time_may_depend_on_is_part_of_a_form(old, new):
    assert old in TEXT
    form = form_of(parse_program(TEXT))

    assert form is not None
    assert form == form_of(parse_program(TEXT))
    assert form != form_of(parse_program(TEXT.replace(old, new)))


def test_calls_with_values_that_cannot_be_compared_have_no_form():
    kernel = parse_program(TEXT)
    (loop,) = kernel.body[1:]
    assert isinstance(loop, Loop)
    load, *others = loop.body
    assert isinstance(load, Call)
    strange = replace(load, attrs={**load.attrs, "dge_mode": object()})

    assert form_of(replace(kernel, body=(replace(loop, body=(strange, *others)),))) is None


def test_few_programs_and_few_bars_are_kept(monkeypatch):
    monkeypatch.setattr(cache, "MOST_PROGRAMS", 3)
    kernels = [random_program(seed, "trn2") for seed in range(5)]
    for kernel in kernels:
        estimate(kernel)
    assert len(cache._known) == 3

    estimate(kernels[2])
    estimate(kernels[0])
    kept = [timeline.program for timeline in cache._known.values()]
    assert kept == [kernels[4], kernels[2], kernels[0]]

    monkeypatch.setattr(cache, "MOST_BARS", 0)
    estimate(kernels[1])
    assert not cache._known
