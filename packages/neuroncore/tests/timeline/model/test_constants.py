"""Constants that differ from costs.json: a change has an effect, an invalid one is rejected."""

from __future__ import annotations

from math import inf, nan

import pytest

from neuroncore.errors import AttributeValueError, LaunchError
from neuroncore.timeline import constants, estimate
from neuroncore.work import costs

from ..kernels import program

EVERYTHING = """
a = buffer(float32[128, 256], sbuf)
b = buffer(float32[128, 256], sbuf)
w = buffer(bfloat16[128, 64], sbuf)
p = buffer(float32[64, 64], psum)
dma_copy(dst=a[:, :], src=x[0:128, 0:256])
reciprocal(dst=b[:, :], data=a[:, :])
tensor_copy(dst=a[:, 0:2], src=b[:, 0:2], engine=vector)
tensor_copy(dst=b[:, :], src=a[:, :], engine=gpsimd)
activation(dst=a[:, 0:64], data=b[:, 0:64], scale=1.0, op=exp)
tensor_copy(dst=w[:, :], src=a[:, 0:64], engine=vector)
for j in range(90):
    nc_matmul(dst=p[:, :], stationary=w[:, :], moving=w[:, :])
tensor_copy(dst=a[0:64, 0:64], src=p[:, :], engine=vector)
dma_copy(dst=out[0:128, 0:256], src=a[:, :], dge_mode=swdge)
dma_copy(dst=out[0:128, 256:512], src=a[:, :], dge_mode=swdge)
dma_copy(dst=out[0:8, 512:513], src=a[0:8, 0:1], dge_mode=swdge)
for i in range(24):
    dma_copy(dst=out[0:128, 1024:1026], src=a[:, 0:2])
"""

ELSEWHERE = {
    "LAUNCH": "beside the total",
    "REORDER_HORIZON": "compiled code only",
    "MIN_II_DYNAMIC": "addresses that registers hold",
}
"""Constants that no micro-op of this program, as written, has to do with."""


def times(**more):
    bars = estimate(program(EVERYTHING), mode="as_written", skip_periods=False, **more).bars
    return [(bar.start_ns, bar.busy_ns, bar.end_ns) for bar in bars]


@pytest.mark.parametrize("name", [n for n in costs()["constants"] if n not in ELSEWHERE])
@pytest.mark.parametrize("target", ["trn2", "all"])
def test_a_changed_constant_is_felt(name, target):
    larger = 10 * constants().at("trn2")[name] + 50

    assert times(constants=constants().but(name, target, larger)) != times()


def test_a_change_ends_with_its_estimate():
    before = times()

    times(constants=constants().but("RECIPROCAL", "all", 100))

    assert times() == before


def test_a_constant_that_there_is_not_is_rejected_with_those_there_are():
    with pytest.raises(AttributeValueError, match=r"'NOPE' is not a constant(.|\n)*SEMAPHORE"):
        constants().but("NOPE", "all", 1)


def test_a_generation_that_there_is_not_is_rejected():
    with pytest.raises(LaunchError, match="trn9"):
        constants().but("SEMAPHORE", "trn9", 300)


@pytest.mark.parametrize("value", [-1, nan, inf, "x", True, None, [300], 1e16, 10**400, -(10**400)])
def test_what_is_no_time_is_rejected(value):
    with pytest.raises(AttributeValueError, match="SEMAPHORE cannot be"):
        constants().but("SEMAPHORE", "all", value)


@pytest.mark.parametrize("value", [0, 1e-300, 1e16])
@pytest.mark.parametrize("target", ["trn2", "all"])
def test_no_bandwidth_is_no_bandwidth(target, value):
    with pytest.raises(
        AttributeValueError, match=r"BANDWIDTH cannot be (.|\n)*from 1e-06 to 1e\+15"
    ):
        constants().but("DMA_BANDWIDTH", target, value)


@pytest.mark.parametrize("mode", ["as_written", "device"])
@pytest.mark.parametrize("name", [n for n in costs()["constants"] if n != "DMA_BANDWIDTH"])
def test_every_time_may_be_none_at_all(name, mode):
    changed = constants().but(name, "trn2", 0)

    assert estimate(program(EVERYTHING), mode=mode, constants=changed).total_ns > 0
