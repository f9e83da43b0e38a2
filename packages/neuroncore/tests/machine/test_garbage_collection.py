"""The collector while a kernel runs: seldom, and as before when it has ended."""

from __future__ import annotations

import gc

import pytest

from neuroncore.machine.core import NeuronCore
from neuroncore.machine.garbage_collection import YOUNG_OBJECTS, FewerCollections
from neuroncore.machine.launch import execute


@pytest.fixture(autouse=True)
def thresholds():
    before = gc.get_threshold()
    yield before
    gc.set_threshold(*before)


def test_a_running_kernel_is_collected_seldom(thresholds):
    seen = []

    execute(lambda: seen.append(gc.get_threshold()), NeuronCore(), (), {})

    assert seen == [(YOUNG_OBJECTS, *thresholds[1:])]
    assert gc.get_threshold() == thresholds


def test_after_a_kernel_that_raises_the_collector_is_as_before(thresholds):
    def kernel():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        execute(kernel, NeuronCore(), (), {})

    assert gc.get_threshold() == thresholds


@pytest.mark.parametrize("young", [0, YOUNG_OBJECTS + 1], ids=["off", "higher"])
def test_a_collector_that_is_off_or_slower_stays_so(young):
    gc.set_threshold(young, 10, 10)

    with FewerCollections():
        assert gc.get_threshold()[0] == young

    assert gc.get_threshold() == (young, 10, 10)


def test_of_two_blocks_the_last_to_end_restores_the_thresholds(thresholds):
    fewer = FewerCollections()

    with fewer:
        with fewer:
            pass
        assert gc.get_threshold()[0] == YOUNG_OBJECTS

    assert gc.get_threshold() == thresholds
