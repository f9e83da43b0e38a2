"""Periods of loops that are carried forward: the same as playing every iteration."""

from __future__ import annotations

import pytest

from neuroncore.timeline import estimate

from .kernels import ALL, program


def facts(timeline):
    return (
        timeline.total_ns, timeline.num_ops, timeline.hbm_bytes, timeline.flops, timeline.lanes,
        timeline.mfu, timeline.mbu, timeline.dma_efficiency,
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["as_written", "compiled"])
@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
@pytest.mark.parametrize("name", ALL)
def test_a_loop_that_repeats_itself_takes_as_long_as_all_its_iterations(name, target, mode):
    text = ALL[name] if target != "trn1" else ALL[name].replace(", dge_mode=swdge", "")
    kernel = program(text, target)

    carried = estimate(kernel, mode=mode)
    played = estimate(kernel, mode=mode, skip_periods=False)

    assert facts(carried) == facts(played)


@pytest.mark.parametrize("name", ["tiled copy", "matmul", "columns"])
def test_most_of_a_long_loop_is_not_played(name):
    timeline = estimate(program(ALL[name]))

    assert timeline.repeats
    assert len(timeline.bars) < timeline.num_ops / 2
