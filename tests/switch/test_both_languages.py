"""beta1 and beta2 side by side: each answers under its own name, and both agree."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from neuroncore.machine.observe import Event, Watcher
from nki_runtime import current, simulate, use

FOLDER = Path(__file__).parent
X = np.random.default_rng(7).random((16, 24), np.float32)


class Log(Watcher):
    """The names of the instructions that ran."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def did(self, event: Event) -> None:
        self.names.append(event.call.record.name)


@pytest.fixture
def old():
    with use("beta1"):
        return runpy.run_path(str(FOLDER / "old_kernels.py"))["double"]


@pytest.fixture
def new():
    with use("beta2"):
        return runpy.run_path(str(FOLDER / "new_kernels.py"))["double"]


def test_each_runs_without_a_switch_and_both_agree(old, new):
    assert np.array_equal(old(X), 2 * X)
    assert np.array_equal(new(X), 2 * X)


@pytest.mark.parametrize("outside", ["beta1", "beta2"])
def test_each_runs_under_the_others_switch(outside, old, new):
    with use(outside):
        assert np.array_equal(old(X), 2 * X)
        assert np.array_equal(new(X), 2 * X)
        assert np.array_equal(simulate(old)(X), simulate(new)(X))


def test_inside_a_beta2_block_beta1_still_answers():
    with use("beta1") as outer:
        import neuronxcc.nki.language as before

        with use("beta2"):
            import neuronxcc.nki.language as during
            import nki.language as nl

            assert during is before is not nl
        assert "nki" not in sys.modules
        assert current() == outer.choice


@pytest.mark.parametrize("language", ["beta1", "beta2"])
def test_an_observer_sees_the_same_arithmetic_in_both(language, old, new):
    log, kernel = Log(), {"beta1": old, "beta2": new}[language]

    with use(language, observers=[log]):
        kernel(X)

    assert log.names == ["dma_copy", "tensor_tensor", "dma_copy"]


@pytest.mark.parametrize(("asked", "other"), [("beta1", "beta2"), ("beta2", "beta1")])
def test_an_observer_set_under_one_language_watches_the_other_too(asked, other, old, new):
    log, kernel = Log(), {"beta1": old, "beta2": new}[other]

    with use(asked, observers=[log]):
        kernel(X)

    assert log.names == ["dma_copy", "tensor_tensor", "dma_copy"]
