"""What a timeline says of memory: who is held from when to when, in bytes and banks."""

from __future__ import annotations

import pytest

from neuroncore.program import parse_program
from neuroncore.timeline import Timeline, estimate

HEAD = 'program("trn2", "0.6")\n'

TWO_TILES = """\
def two(x: float32[128, 64], y: float32[128, 256]):
    a = buffer(float32[128, 64], sbuf)
    b = buffer(float32[128, 256], sbuf)
    dma_copy(dst=a[:, :], src=x[:, :])
    dma_copy(dst=x[:, :], src=a[:, :])
    memset(dst=b[:, :], value=0.0)
    dma_copy(dst=y[:, :], src=b[:, :])
    return x, y
"""

PLACED = """\
def placed(x: float32[128, 64]):
    a = buffer(float32[128, 64], sbuf, address=(0, 0))
    b = buffer(float32[128, 64], sbuf, address=(0, 128))
    memset(dst=a[:, :], value=0.0)
    memset(dst=b[:, :], value=0.0)
    tensor_tensor(dst=a[:, :], data1=a[:, :], data2=b[:, :], op=add)
    dma_copy(dst=x[:, :], src=a[:, :])
    return x
"""

PRODUCT = """\
def product(w: bfloat16[128, 128], x: bfloat16[128, 512], y: float32[128, 512]):
    left = buffer(bfloat16[128, 128], sbuf)
    right = buffer(bfloat16[128, 512], sbuf)
    dma_copy(dst=left[:, :], src=w[:, :])
    dma_copy(dst=right[:, :], src=x[:, :])
    for i in range({trips}):
        total = buffer(float32[128, 512], psum)
        for k in range(12):
            nc_matmul(dst=total[:, :], stationary=left[:, :], moving=right[:, :])
        result = buffer(float32[128, 512], sbuf)
        tensor_copy(dst=result[:, :], src=total[:, :])
        dma_copy(dst=y[:, :], src=result[:, :])
    return y
"""


def played(text: str, skip_periods: bool = True) -> Timeline:
    return estimate(parse_program(HEAD + text), skip_periods=skip_periods, mode="as_written")


def test_a_buffer_is_held_from_its_first_micro_op_to_the_end_of_its_last():
    timeline = played(TWO_TILES)

    load, store, fill, write = timeline.bars
    first, second = (load.start_ns, store.end_ns), (fill.start_ns, write.end_ns)
    moments = timeline.occupancy()["sbuf"]

    assert dict(moments)[max(first[1], second[1])] == 0
    assert max(held for _, held in moments) == (64 + 256) * 4
    times = [time for time, _ in moments]
    assert times == sorted({*first, *second})


def test_an_unused_memory_holds_nothing_from_the_start():
    assert played(TWO_TILES).occupancy()["psum"] == [(0.0, 0)]


def test_tensors_at_one_address_are_counted_once():
    assert max(held for _, held in played(PLACED).occupancy()["sbuf"]) == 384


def test_psum_counts_banks():
    held = [held for _, held in played(PRODUCT.format(trips=3)).occupancy()["psum"]]

    assert held == [1, 0, 1, 0, 1, 0]


@pytest.mark.parametrize("trips", [40, 200])
def test_periods_that_were_carried_forward_are_unfolded(trips):
    text = PRODUCT.format(trips=trips)

    carried, every = played(text), played(text, skip_periods=False)

    assert carried.repeats
    assert carried.occupancy() == every.occupancy()


def test_what_is_waited_for_after_a_loop_is_its_last_iteration():
    """b is written behind a loop of repeated periods that reads it."""
    text = """\
def after(x: float32[128, 64]):
    a = buffer(float32[128, 64], sbuf)
    b = buffer(float32[128, 64], sbuf)
    memset(dst=b[:, :], value=0.0)
    for i in range(500):
        tensor_copy(dst=a[:, :], src=b[:, :], engine=vector)
    dma_copy(dst=b[:, :], src=x[:, :])
    return x
"""

    carried, every = played(text), played(text, skip_periods=False)

    assert carried.repeats
    assert carried.bars[-1].start_ns == every.bars[-1].start_ns
    assert carried.bars[-1].start_ns >= every.bars[-2].end_ns
