"""The latency of a program: the total of its estimate, and nothing kept."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import Any

import pytest

from neuroncore.enums import MemorySpace
from neuroncore.errors import AttributeValueError, LaunchError, ProgramError
from neuroncore.program import Allocate, Buffer, Call, Program, calls, parse_program
from neuroncore.timeline import estimate, latency_ns
from neuroncore.timeline.periodicity import steady_state
from neuroncore.timeline.playing.state import State
from nki_dtypes import float16

from .kernels import ALL, MATMUL, program
from .random_kernels import random_program


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
@pytest.mark.parametrize("name", ALL)
def test_the_latency_is_the_total_of_the_estimate(name, target):
    text = ALL[name] if target != "trn1" else ALL[name].replace(", dge_mode=swdge", "")
    kernel = program(text, target)

    assert latency_ns(kernel) == estimate(kernel, skip_periods=False, mode="as_written").total_ns


@pytest.mark.parametrize("worth", [0, 256])
@pytest.mark.parametrize("seed", range(80))
def test_the_latency_of_any_program_is_the_total_of_its_estimate(seed, worth, monkeypatch):
    monkeypatch.setattr(steady_state, "WORTH", worth)
    kernel = random_program(seed, ("trn1", "trn2", "trn3")[seed % 3])

    assert (
        latency_ns(kernel, verified=True)
        == estimate(kernel, skip_periods=False, mode="as_written").total_ns
    )


def test_what_was_played_is_freed_at_once():
    kernel = program(MATMUL)
    gc.collect()
    gc.disable()
    try:
        latency_ns(kernel)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_call_is_known_by_its_buffers_too():
    kernel = program(MATMUL)
    narrow = _in_float16(kernel)
    both = zip(calls(narrow.body), calls(kernel.body), strict=True)
    assert all(one is other for one, other in both)

    assert latency_ns(kernel, verified=True) != latency_ns(narrow, verified=True)
    assert latency_ns(narrow, verified=True) == latency_ns(
        parse_program(str(narrow)), verified=True
    )


@pytest.mark.parametrize("body", ["pass", "tile = buffer(float32[128, 64], sbuf)"])
def test_a_loop_without_a_call_takes_no_time(body, monkeypatch):
    monkeypatch.setattr(steady_state, "WORTH", 0)
    kernel = program(f"for i in range(500):\n    {body}\n{MATMUL}")

    assert latency_ns(kernel) == latency_ns(program(MATMUL))
    assert (
        estimate(kernel, mode="as_written").total_ns == estimate(kernel, mode="as_written").total_ns
    )
    assert estimate(kernel, mode="device").total_ns <= estimate(kernel, mode="as_written").total_ns


PLACED = """
read = buffer(float32[128, 64], sbuf{first})
written = buffer(float32[128, 64], sbuf{second})
copied = buffer(float32[128, 64], sbuf)
memset(dst=read[:, :], value=1.0, engine=vector)
tensor_copy(dst=copied[:, :], src=read[:, :], engine=scalar)
memset(dst=written[:, :], value=2.0, engine=gpsimd)
dma_copy(dst=out[0:128, 0:64], src=copied[:, :])
"""


def test_what_is_written_alone_waits_for_who_reads_the_same_bytes():
    at, elsewhere = ", address=(0, 0)", ", address=(0, 1024)"
    shared, separate = (program(PLACED.format(first=at, second=to)) for to in (at, elsewhere))

    starts = {}
    for name, kernel in {"shared": shared, "separate": separate}.items():
        bars = {bar.lane: bar for bar in estimate(kernel, verified=True, mode="as_written").bars}
        starts[name] = bars["gpsimd"].start_ns, bars["scalar"].end_ns
    assert starts["shared"][0] >= starts["shared"][1]
    assert starts["separate"][0] < starts["separate"][1]


def test_bad_input_is_rejected_as_an_estimate_rejects_it():
    no_program: Any = "matmul"
    with pytest.raises(LaunchError, match="not a program"):
        latency_ns(no_program)
    kernel = program(MATMUL)
    with pytest.raises(ProgramError):
        latency_ns(replace(kernel, body=kernel.body[1:]))


COPY = """\
program("TARGET", "0.6")
def kernel(x: float32[128, 512]):
    out = buffer(float32[128, 512], shared_hbm)
    tile = buffer(float32[128, 512], sbuf)
    dma_copy(dst=tile[:, :], src=x[:, :])
    dma_copy(dst=out[:, :], src=tile[:, :])
    return out
"""


@pytest.mark.parametrize(
    ("other", "name"), [("inf2", "trn1"), ("gen2", "trn1"), ("gen3", "trn2"), ("gen4", "trn3")]
)
def test_every_name_of_a_generation_gives_the_same_estimate(other, name):
    found = estimate(parse_program(COPY.replace("TARGET", name)))

    in_text = estimate(parse_program(COPY.replace("TARGET", other)))
    as_argument = estimate(parse_program(COPY.replace("TARGET", "trn2")), target=other)

    heads = [str(each).splitlines()[:4] for each in (found, in_text, as_argument)]
    assert heads[0] == heads[1] == heads[2]
    assert {found.target, in_text.target, as_argument.target} == {name}


@pytest.mark.parametrize("cores", [0, -1, 1.5, True, "2", None])
def test_a_number_of_cores_that_no_launch_has_is_rejected(cores: Any):
    with pytest.raises(AttributeValueError) as error:
        estimate(program(MATMUL), cores=cores)

    assert f"cannot run on {cores!r} cores" in str(error.value)
    assert "expected: an integer from 1 on" in str(error.value)


def test_a_program_that_does_not_fit_has_a_time_and_is_no_candidate():
    text = COPY.replace("TARGET", "trn2").replace("[128, 512]", "[128, 60000]")
    large = parse_program(text)

    assert estimate(large).total_ns > estimate(program(MATMUL)).total_ns
    with pytest.raises(ProgramError, match="SBUF"):
        latency_ns(large)


def test_a_kernel_without_an_instruction_is_bound_by_its_launch():
    empty = parse_program('program("trn2", "0.6")\ndef kernel(x: float32[128]):\n    return x\n')

    timeline = estimate(empty)

    assert (timeline.bottleneck, timeline.busiest_ns, timeline.total_ns) == ("launch", 0, 0)
    assert str(timeline).splitlines()[1:3] == [
        "bottleneck: launch; 0 micro-ops, 0 HBM bytes; MFU 0.0%, MBU 0.0%, DMA efficiency 0.0%",
        "domain: no instruction; most uncertain: LAUNCH",
    ]


def _in_float16(kernel: Program) -> Program:
    """The very calls, on other buffers."""

    def changed(buffer: Buffer) -> Buffer:
        return buffer if buffer.space is MemorySpace.psum else replace(buffer, dtype=float16)

    def body(statements):
        for one in statements:
            if isinstance(one, Allocate):
                yield replace(one, buffer=changed(one.buffer))
            elif isinstance(one, Call):
                yield one
            else:
                yield replace(one, body=tuple(body(one.body)))

    parameters = tuple(map(changed, kernel.parameters))
    return replace(kernel, parameters=parameters, body=tuple(body(kernel.body)))


def test_a_candidate_is_abandoned_where_another_one_has_ended_before(monkeypatch):
    total, late = estimate(program(MATMUL)).total_ns, []

    def noted(state: State) -> bool:
        late.append(state.limit is not None and state.end > state.limit)
        return late[-1]

    monkeypatch.setattr(State, "is_too_late", property(noted))

    assert estimate(program(MATMUL), skip_periods=False).total_ns == total
    assert late.index(True) == len(late) - 1


@pytest.mark.parametrize("mode", ["as_written", "device"])
@pytest.mark.parametrize("seed", [1, 8, 13, 17])
def test_no_candidate_is_abandoned_that_would_end_sooner(seed, mode, monkeypatch):
    bounds: list[tuple[State, int]] = []

    def noted(state: State) -> bool:
        bounds.append((state, state.least_end))
        return False

    monkeypatch.setattr(State, "is_too_late", property(noted))
    estimate(random_program(seed, "trn2", True), mode=mode, verified=True)

    assert bounds
    assert all(bound <= state.end for state, bound in bounds)


def test_a_candidate_that_leaves_more_to_an_engine_than_another_took_is_not_played(monkeypatch):
    """Where the engines of the sums are left open, VectorE and ScalarE share them."""
    played: list[State] = []
    was_made = State.__init__

    def made(state: State, *args: Any) -> None:
        was_made(state, *args)
        played.append(state)

    monkeypatch.setattr(State, "__init__", made)
    body = """
a = buffer(float32[128, 2048], sbuf)
b = buffer(float32[128, 2048], sbuf)
dma_copy(dst=a[:, :], src=x[0:128, 0:2048])
for i in range(64):
    tensor_scalar(dst=b[:, :], data=a[:, :], operand0=2.0, op0=multiply)
    tensor_scalar(dst=b[:, :], data=b[:, :], operand0=1.0, op0=add)
"""
    estimate(replace(program(body, "trn1"), nki="0.1"), verified=True)

    assert [bool(state.bars) for state in played] == [True, False, False]
