"""The rules of every instruction: partitions, starts, memories, several violations at once."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from neuroncore.errors import KernelError, PartitionError
from neuroncore.instructions import KernelWarning
from neuroncore.options import Options

STARTS = [(0, 128), (0, 1), (32, 32), (64, 64), (96, 32), (64, 33)]
BAD_STARTS = [(16, 32), (1, 1), (32, 33), (32, 64), (64, 65), (96, 33)]


def strip(world, start, count):
    """A tile of `count` partitions from `start` on, of storage that is wide enough."""
    rows = world.core.adopt(np.ones((256, 4), np.float32), world.new((1, 1)).buffer)
    return rows[start : start + count, :]


@pytest.mark.parametrize(("start", "count"), STARTS)
def test_allowed_start_partitions_pass_silently(world, nisa, start, count):
    nisa.memset(strip(world, start, count), 0.0)


@pytest.mark.parametrize(("start", "count"), BAD_STARTS)
def test_other_start_partitions_warn_at_the_kernels_line(world, nisa, start, count):
    with pytest.warns(
        KernelWarning, match=f"dst has {count} partitions and does not start"
    ) as seen:
        nisa.memset(strip(world, start, count), 0.0)

    assert seen[0].filename == __file__


def test_a_line_is_warned_of_its_start_partitions_once(world, nisa):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        for start in (8, 16, 24):
            nisa.memset(strip(world, start, 8), 0.0)

    assert len(seen) == 1


def test_start_partitions_can_be_an_error_or_nothing(make_world, nisa):
    strict, lax = (make_world(options=Options(start_partition=m)) for m in ("error", "ignore"))

    nisa.memset(strip(lax, 16, 32), 0.0)
    with pytest.raises(PartitionError, match="dst starts at partition 16 with 32 partitions"):
        nisa.memset(strip(strict, 16, 32), 0.0)


def test_129_partitions_are_rejected(world, nisa):
    with pytest.raises(PartitionError, match="dst has 129 partitions"):
        nisa.memset(strip(world, 0, 129), 0.0)


def test_the_message_lists_every_violation(world, nisa):
    far = world.tile(np.ones((4, 8)), space="hbm")

    with pytest.raises(KernelError) as raised:
        nisa.tensor_tensor(world.new((4, 8)), far, far, "add")

    assert "data1 is in HBM" in raised.value.what
    assert "also: data2 is in HBM" in str(raised.value)
    assert "bring it on chip with nisa.dma_copy first" in str(raised.value)


def test_a_legal_call_is_planned_once(world, nisa):
    dst, src = world.new((4, 8)), world.tile(np.ones((4, 8)))
    nisa.tensor_copy(dst, src)  # claims the new memory
    nisa.tensor_copy(dst, src)
    plans = dict(world.core.plans)

    nisa.tensor_copy(dst, src)
    nisa.tensor_copy(world.tile(np.zeros((4, 8))), src)

    assert world.core.plans == plans
