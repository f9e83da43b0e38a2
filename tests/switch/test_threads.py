"""Kernels in several threads and tasks at once, under one switch."""

from __future__ import annotations

import asyncio
import runpy
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from nki_runtime import SwitchError, use

KERNELS = Path(__file__).with_name("new_kernels.py")


@pytest.fixture
def double():
    with use("beta2"):
        yield runpy.run_path(str(KERNELS))["double"]


def test_threads_that_share_the_choice_run_kernels_at_once(double):
    def work(seed):
        x = np.random.default_rng(seed).random((64, 32), np.float32)
        with use("beta2"):
            return np.array_equal(double(x), 2 * x)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(40)))


def test_a_thread_may_run_a_kernel_without_asking_for_anything(double):
    x = np.ones((4, 4), np.float32)

    with ThreadPoolExecutor(1) as pool:
        assert np.array_equal(pool.submit(double, x).result(30), 2 * x)


def test_a_thread_that_requests_another_version_is_rejected_without_effect_on_others(double):
    x = np.ones((4, 4), np.float32)

    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(SwitchError, match=r"expected: beta2 0\.7 on trn2"):
            pool.submit(use, "beta2", nki="0.2").result(30)
        assert np.array_equal(pool.submit(double, x).result(30), 2 * x)
    assert np.array_equal(double(x), 2 * x)


def test_a_task_runs_kernels_under_the_choice_of_its_parent(double):
    async def run():
        return double(np.ones((2, 2), np.float32)).sum()

    async def main():
        return await asyncio.gather(run(), asyncio.create_task(run()))

    assert asyncio.run(main()) == [8, 8]
