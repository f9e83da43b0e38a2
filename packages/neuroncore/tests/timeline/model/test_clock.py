"""How a transfer is dealt to DMA engines: more rows and more bytes never end sooner."""

from __future__ import annotations

from itertools import pairwise

import pytest

from neuroncore.program import parse_program
from neuroncore.targets import TARGETS
from neuroncore.timeline import constants, estimate
from neuroncore.timeline.model.clock import Clock
from neuroncore.timeline.model.constants import machine
from neuroncore.work import Transfer

ROW_BYTES = (1, 4, 64, 256, 2048, 2052, 8192, 32768)


def clock_of(target: str) -> Clock:
    return Clock(machine(target), constants().at(target))


def ends(clock: Clock, op: Transfer) -> tuple[float, float]:
    """When its last byte is there, ns after the first engine starts; the work of all engines."""
    engines, load, ticks = clock.transfer(op)
    return clock.ns(ticks) + clock.values["DMA_STAGGER"] * (engines - 1), load * ticks


def rows(partitions: int, run: int) -> Transfer:
    return Transfer(partitions * run, partitions, run, partitions)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("run", ROW_BYTES)
def test_more_partitions_never_end_sooner(target, run):
    clock = clock_of(target)

    for few, more in pairwise(ends(clock, rows(count, run)) for count in range(1, 129)):
        assert few[0] <= more[0]
        assert few[1] <= more[1] * 1.001 + 1, "of the bandwidth of all engines"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("partitions", [*range(18), 31, 64, 65, 127, 128])
def test_more_bytes_never_end_sooner(target, partitions):
    clock, count = clock_of(target), partitions or 1

    for few, more in pairwise(
        ends(clock, Transfer(count * run, count, run, partitions)) for run in range(1, 40000, 37)
    ):
        assert few[0] <= more[0]


def copy_ns(target: str, nki: str, partitions: int, columns: int, *, loads: bool) -> float:
    tile, array = f"t[0:{partitions}, :]", f"x[0:{partitions}, 0:{columns}]"
    dst, src = (tile, array) if loads else (array, tile)
    fill = "" if loads else "memset(dst=t[:, :], value=0.0)"
    text = f"""
program("{target}", "{nki}")
def copy(x: float32[128, 8192]):
    t = buffer(float32[128, {columns}], sbuf)
    {fill}
    dma_copy(dst={dst}, src={src})
    return x
"""
    return estimate(parse_program(text)).total_ns


@pytest.mark.parametrize("loads", [True, False], ids=["load", "store"])
@pytest.mark.parametrize(("target", "nki"), [("trn1", "0.1"), ("trn2", "0.6"), ("trn3", "0.7")])
def test_a_load_or_store_of_more_rows_takes_no_less_time(target, nki, loads):
    times = [copy_ns(target, nki, count, 8192, loads=loads) for count in range(1, 129)]

    assert times == sorted(times)


@pytest.mark.parametrize(
    ("target", "partitions", "engines", "rows_of_the_busiest"),
    [
        ("trn2", 4, 1, 4),  # the DMA overview's first example
        ("trn2", 9, 2, 8),
        ("trn2", 128, 16, 8),  # and its second
        ("trn1", 4, 4, 1),  # min(P, 16), measured on Inf2
        ("trn1", 17, 16, 2),
        ("trn1", 128, 16, 8),
    ],
)
def test_partitions_are_dealt_to_engines(target, partitions, engines, rows_of_the_busiest):
    clock = clock_of(target)
    one = clock.transfer(rows(1, 32768)).ticks

    shares = clock.transfer(rows(partitions, 32768))

    assert shares.engines == engines
    assert shares.ticks == pytest.approx(rows_of_the_busiest * one, rel=1e-3)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("partitions", [0, 1, 9, 128])
@pytest.mark.parametrize("total", [64, 4096, 1 << 20, 1 << 26])
def test_rows_that_are_merged_never_end_later(target, partitions, total):
    clock = clock_of(target)
    pieces = [1 << n for n in range(total.bit_length()) if 1 << n <= min(total, 1 << 20)]

    merged = [ends(clock, Transfer(total, n, total // n, partitions))[0] for n in pieces]

    assert merged == sorted(merged)


@pytest.mark.parametrize("target", TARGETS)
def test_a_contiguous_copy_within_hbm_uses_all_engines(target):
    clock = clock_of(target)

    shares = clock.transfer(Transfer(1 << 26, 1, 1 << 26, 0))

    assert shares.engines == 16
    least_ns = (1 << 26) / 16 / clock.values["DMA_BANDWIDTH"]
    assert clock.ns(shares.ticks) == pytest.approx(least_ns, rel=1e-3)


def test_a_few_bytes_within_hbm_use_one_engine():
    assert clock_of("trn2").transfer(Transfer(256, 1, 256, 0)).engines == 1
