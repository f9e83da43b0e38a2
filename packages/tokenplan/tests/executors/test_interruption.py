"""Signals to a driver of jobs, each with an executor of its own."""

import os
import signal

import pytest
from packages.tokenplan.tests.executor_jobs import JOBS

from neuroncore.commands.interruption import termination_interrupts
from tokenplan.executors import Finished, InProcess, Job, Reported, pool, ray_cluster
from tokenplan.executors import workers as workers_module

ALONE = {
    "inprocess": InProcess, "pool": lambda: pool(1), "ray": lambda: ray_cluster("local", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", ALONE)
def test_ctrl_c_drops_what_waits_and_lets_what_runs_end(name):
    if name == "ray":
        pytest.importorskip("ray")
    events = []

    def watch(event):
        if event.value == "begun":
            os.kill(os.getpid(), signal.SIGINT)
        events.append(event)

    with ALONE[name]() as executor:
        executor.submit(Job("a", JOBS + "wait_for_interrupt"))
        executor.submit(Job("b", JOBS + "square", 2))
        with pytest.raises(KeyboardInterrupt):
            executor.run(watch)

    values = [event.value for event in events]
    assert values == ["begun", "what it has found", "interrupted"]


def test_ctrl_c_while_a_report_is_sent_comes_after_it():
    events = []

    with pool(1) as executor:
        executor.submit(Job("a", JOBS + "report_interrupted"))
        executor.run(events.append)

    assert [e[:2] for e in events] == [("a", 1 + 2j), ("a", "interrupted")]


def test_a_termination_lets_what_runs_end_where_ctrl_c_is_ignored():
    events = []

    def watch(event):
        events.append(event)
        if event.value == "begun":
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with termination_interrupts(), pytest.raises(KeyboardInterrupt), pool(1) as executor:
            executor.submit(Job("a", JOBS + "wait_for_interrupt"))
            executor.run(watch)
    finally:
        signal.signal(signal.SIGINT, before)

    assert [e[:2] for e in events if isinstance(e, Finished)] == [("a", "interrupted")]


def test_ctrl_c_cancels_a_job_that_does_not_end(monkeypatch):
    monkeypatch.setattr(workers_module, "GRACE_S", 0.2)
    events = []

    def watch(event):
        events.append(event)
        os.kill(os.getpid(), signal.SIGINT)

    with pool(1) as executor:
        executor.submit(Job("a", JOBS + "ignore_interrupt"))
        with pytest.raises(KeyboardInterrupt):
            executor.run(watch)
        assert not executor.has_jobs

    assert [type(event) for event in events] == [Reported]
