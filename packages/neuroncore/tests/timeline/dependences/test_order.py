"""An order from outside: instructions wait for what it says and for nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import pytest

from neuroncore.errors import AttributeValueError
from neuroncore.timeline import estimate

from ..kernels import MATMUL, TILED_COPY, program

ADDS = """a = buffer(float32[128, 512], sbuf)
memset(dst=a[:, :], value=0.0, engine=vector)
tensor_scalar(dst=a[:, :], data=a[:, :], operand0=1.0, op0=add, engine=scalar)
"""


@dataclass
class Free:
    """Nothing waits."""

    bar: int = -1
    why: int = 2

    def look(self) -> int:
        return 0

    def done(self, release: int, bar: int) -> None:
        pass


@dataclass
class AfterTheLast(Free):
    """Each waits for the one before it."""

    ready: int = 0

    def look(self) -> int:
        return self.ready

    def done(self, release: int, bar: int) -> None:
        self.ready, self.bar = release, bar


class Ordered:
    def __init__(self, gate, queue: int = 0) -> None:
        self.one, self.number = gate, queue

    def gate(self, call: int):
        return self.one

    def queue(self, call: int) -> int:
        return self.number


def test_an_order_replaces_what_the_bytes_would_ask_for():
    by_bytes = estimate(program(ADDS), verified=True, mode="as_written")
    free = estimate(program(ADDS), verified=True, order=Ordered(Free()), mode="as_written")

    assert by_bytes.bars[1].start_ns > by_bytes.bars[0].start_ns
    assert [bar.start_ns for bar in free.bars] == [0, 0]


@pytest.mark.parametrize("body", [ADDS, MATMUL, TILED_COPY], ids=["passes", "matmul", "copies"])
def test_in_one_stream_nothing_starts_before_the_one_ahead_is_complete(body):
    timeline = estimate(
        program(body), verified=True, order=Ordered(AfterTheLast()), mode="as_written"
    )
    changes = [(a, b) for a, b in pairwise(timeline.bars) if a.call is not b.call]

    assert changes and all(b.start_ns >= a.end_ns for a, b in changes)


def test_an_order_says_which_queue_a_transfer_goes_to():
    timeline = estimate(
        program(TILED_COPY), verified=True, order=Ordered(AfterTheLast(), 5), mode="as_written"
    )

    assert {bar.queue for bar in timeline.bars if bar.lane == "dma"} == {5}


def test_every_iteration_is_played_in_a_given_order():
    assert (
        estimate(
            program(TILED_COPY), verified=True, order=Ordered(Free()), mode="as_written"
        ).repeats
        == []
    )


def test_an_order_and_a_mode_that_makes_another_are_rejected():
    with pytest.raises(AttributeValueError, match="order is given"):
        estimate(program(ADDS), mode="device", verified=True, order=Ordered(Free()))
