"""Kills at random moments: every job has one value, and no process is left."""

import os
import signal
from random import Random

import pytest
from packages.tokenplan.tests.executor_jobs import JOBS

from tokenplan.executors import Finished, Job, WorkerLost, pool
from tokenplan.executors.workers import START_LIMIT

SEED = 29


@pytest.mark.parametrize("kills", [4, pytest.param(40, marks=pytest.mark.thorough)])
def test_killed_workers_lose_no_value_and_repeat_none(kills):
    random = Random(SEED)
    jobs = [Job(f"{n}", JOBS + "slow_square", n) for n in range(40 * kills)]
    moments = set(random.sample(range(len(jobs)), kills))
    events = []

    with pool(2) as executor:

        def watch(event):
            events.append(event)
            if isinstance(event, Finished) and int(event.key) in moments:
                moments.remove(int(event.key))
                first = [each for each in executor._workers if not executor._lost[each.key or ""]]
                for victim in random.sample(first, min(1, len(first))):
                    os.kill(victim.handle.process.pid, signal.SIGKILL)

        for job in jobs:
            executor.submit(job)
        executor.run(watch)

    values = [event[:2] for event in events if isinstance(event, Finished)]
    assert len(values) == len(jobs), f"seed {SEED}"
    assert dict(values) == {f"{n}": n * n for n in range(len(jobs))}
    assert 0 < sum(isinstance(event, WorkerLost) for event in events) <= kills


def test_workers_that_are_killed_at_their_start_do_not_end_a_run_whose_jobs_end():
    jobs, killed, values = 100, [], []

    with pool(2) as executor:

        def watch(event):
            if isinstance(event, Finished):
                values.append(event.value)
                newest = executor._workers[-1]
                is_due = not killed or not newest.is_ready
                if is_due and (number := newest.handle.process.pid) not in killed:
                    killed.append(number)
                    os.kill(number, signal.SIGKILL)

        for n in range(jobs):
            executor.submit(Job(f"{n}", JOBS + "slow_square", n))
        executor.run(watch)

    assert sorted(values) == [n * n for n in range(jobs)]
    assert len(killed) > START_LIMIT
