"""Loops whose transfers ask for more than the DMA engines give: the queues lead by ever more."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from neuroncore.program import Program, parse_program
from neuroncore.timeline import Timeline, estimate
from neuroncore.timeline.periodicity import steady_state

SEEDS = 40
"""Random nests that are compared with all of their iterations played."""


def facts(timeline: Timeline) -> tuple:
    return (
        timeline.total_ns, timeline.num_ops, timeline.hbm_bytes, timeline.flops, timeline.lanes,
        timeline.mfu, timeline.mbu, timeline.dma_efficiency, timeline.occupancy(),
    )  # fmt: skip


def kernel(statements: list[str], target: str = "trn2") -> Program:
    head = [
        f'program("{target}", "0.6")',
        "def f(x: float32[128, 8192]):",
        "    out = buffer(float32[128, 8192], shared_hbm)",
        *[f"    {tile} = buffer(float32[128, 2048], sbuf)" for tile in "abcuv"],
    ]
    return parse_program("\n".join([*head, *("    " + s for s in statements), "    return out\n"]))


def nest(random: Random, target: str) -> Iterator[str]:
    """Transfers of all sizes and instructions of engines, before, in, between and behind loops."""
    yield "dma_copy(dst=u[:, :], src=x[:, 0:2048])"
    yield from statements(random, 1, "", target)
    for number in range(random.choice((1, 1, 2))):
        outer, inner = f"i{number}", f"j{number}"
        yield f"for {outer} in range({random.choice((5, 40, 90))}):"
        yield from statements(random, random.randint(1, 3), "    ", target)
        if random.random() < 0.5:
            yield f"    for {inner} in range({random.choice((3, 20, 60))}):"
            yield from statements(random, random.randint(1, 3), "        ", target)
            yield from statements(random, random.randint(0, 1), "    ", target)
        yield from statements(random, random.randint(0, 3), "", target)


def statements(random: Random, count: int, indent: str, target: str) -> Iterator[str]:
    dynamic = ", dge_mode=swdge" if target != "trn1" and random.random() < 0.2 else ""
    for _ in range(count):
        size = random.choice((8, 300, 640, 1024, 2048))
        load, store = random.sample("abc", 2)
        at = random.choice((0, 4096))
        yield (
            indent
            + random.choices(
                (
                    f"dma_copy(dst={load}[:, 0:{size}], src=x[:, {at}:{at + size}]{dynamic})",
                    f"dma_copy(dst=out[:, {at}:{at + size}], src={store}[:, 0:{size}]{dynamic})",
                    f"activation(dst=v[:, 0:{size}], data=u[:, 0:{size}], scale=1.0, op=exp)",
                    f"tensor_copy(dst=u[:, 0:{size}], src={store}[:, 0:{size}], engine=vector)",
                ),
                (6, 4, 3, 1),
            )[0]
        )


@pytest.mark.parametrize("seed", range(SEEDS))
def test_adding_up_what_transfers_take_is_as_playing_them(monkeypatch, seed):
    random = Random(seed)
    target = random.choice(("trn1", "trn2", "trn3"))
    made = kernel([*nest(random, target)], target)
    monkeypatch.setattr(steady_state, "WORTH", 0)
    monkeypatch.setattr(steady_state, "LOOKED", random.choice((6, 12)))

    for mode in ("as_written", "device"):
        added = estimate(made, mode=mode, verified=True)
        played = estimate(made, mode=mode, verified=True, skip_periods=False)

        assert facts(added) == facts(played)
        assert added.by_line() == pytest.approx(played.by_line())


@pytest.mark.parametrize("mode", ["as_written", "device"])
@pytest.mark.parametrize(("target", "size"), [("trn1", 512), ("trn2", 1024), ("trn3", 2048)])
def test_a_million_million_transfers_take_no_time_to_add_up(target, size, mode):
    loop = [
        "for i in range(1000000000000):",
        f"    dma_copy(dst=a[:, 0:{size}], src=x[:, 0:{size}])",
    ]
    short = [loop[0].replace("1000000000000", "1000"), loop[1]]

    timeline = estimate(kernel(loop, target), mode=mode)

    each = estimate(kernel(short, target), mode=mode, skip_periods=False)
    assert timeline.total_ns == pytest.approx(each.total_ns * 1e9, rel=1e-2)
    assert len(timeline.bars) < 200
