"""Seconds of compilations that nothing has waited for."""

from types import SimpleNamespace
from typing import Any

import pytest

from nkigym.runners import background
from tokenplan.executors import Finished


class Compiler(background.Run):
    """Compilations of a second each, which end with the last of the steps, of a second too."""

    def __init__(self, clock, steps, device, keys="a"):
        pool = SimpleNamespace(num_running=1, has_jobs=True)
        super().__init__(lambda found: None)
        self.pools: Any = (pool, device)
        self.pool, self.clock, self.steps, self.keys = pool, clock, steps, keys

    def step(self, wait_s):
        self.clock.now += 1
        self.steps -= 1
        if not self.steps:
            self.pool.has_jobs = False
            for key in self.keys:
                self.has_spent(Finished(key, None, "worker", 1.0))


@pytest.fixture
def clock(monkeypatch):
    made = SimpleNamespace(now=100.0)
    monkeypatch.setattr(background.time, "monotonic", lambda: made.now)
    return made


@pytest.mark.parametrize("steps", [1, 4])
def test_a_compilation_that_is_waited_for_is_not_hidden(clock, steps):
    run = Compiler(clock, steps, SimpleNamespace(num_running=0, has_jobs=False))
    run.finish()
    assert run.hidden_s == 0


def test_a_compilation_beside_a_run_on_the_device_is_hidden(clock):
    run = Compiler(clock, 4, SimpleNamespace(num_running=1, has_jobs=False))
    run.finish()
    assert run.hidden_s == 1


def test_while_two_workers_import_what_they_need_nothing_is_compiled(clock):
    run = Compiler(clock, 4, SimpleNamespace(num_running=0, has_jobs=False), "ab")
    run.finish()
    assert run.hidden_s == 1
