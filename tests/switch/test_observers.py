"""Observers see what a kernel does, in its block only, whichever language it is written in."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from neuroncore.machine.observe import Event, Watcher
from nki_runtime import use

FOLDER = Path(__file__).parent
X = np.ones((4, 8), np.float32)


class Log(Watcher):
    """The names of the instructions that ran."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def did(self, event: Event) -> None:
        self.names.append(event.call.record.name)


@pytest.fixture
def double():
    with use("beta2"):
        return runpy.run_path(str(FOLDER / "new_kernels.py"))["double"]


def test_an_observer_sees_every_instruction_once(double):
    log = Log()

    with use("beta2", observers=[log]):
        double(X)

    assert log.names == ["dma_copy", "tensor_tensor", "dma_copy"]


def test_an_observer_sees_nothing_outside_its_block(double):
    log = Log()

    with use("beta2", observers=[log]):
        pass
    double(X)

    assert log.names == []


def test_observers_of_nested_blocks_all_see_the_inner_one(double):
    outer, inner = Log(), Log()

    with use("beta2", observers=[outer]):
        with use("beta2", observers=[inner]):
            double(X)
        double(X)

    assert (len(outer.names), len(inner.names)) == (6, 3)


def test_results_are_the_same_with_and_without_an_observer(double):
    plain = double(X)

    with use("beta2", observers=[Log()]):
        watched = double(X)

    assert np.array_equal(plain, watched)
