"""Options of where jobs run."""

from argparse import ArgumentParser
from math import inf
from pathlib import Path

import pytest

from neuroncore.errors import OptionError
from tokenplan.executors import InProcess, Limits
from tokenplan.executors.options import add_executor, executor_of, limits_of


def parsed(*words):
    parser = ArgumentParser()
    add_executor(parser)
    return parser.parse_args(words)


def test_jobs_are_in_this_process_unless_more_than_one_is_named():
    here = Path()
    found = [executor_of(parsed(*words), "tool", "", here) for words in ((), ("--jobs", "1"))]

    assert [type(executor) for executor in found] == [InProcess, InProcess]
    assert executor_of(parsed("--jobs", "2"), "tool", "", here).jobs == 2


def test_more_jobs_than_cores_of_a_local_cluster_are_reported(monkeypatch, capsys):
    pytest.importorskip("ray")
    monkeypatch.setattr("os.cpu_count", lambda: 1)

    executor_of(parsed("--jobs", "2", "--ray", "local"), "tool", "", Path())

    assert capsys.readouterr().err == "tool: note: 2 jobs share 1 cores\n"


def test_an_absent_ray_is_a_mistake_of_the_options(monkeypatch):
    monkeypatch.setattr("tokenplan.executors.ray_actors.find_spec", lambda name: None)

    with pytest.raises(OptionError, match=r"Ray is not installed(.|\n)*pip install"):
        executor_of(parsed("--ray", "local"), "tool", "", Path())


def test_limits_have_units():
    assert limits_of(parsed()) == Limits(inf, inf)
    found = limits_of(parsed("--job-time", "1.5min", "--job-memory", "2G"))
    assert found == Limits(90.0, 2 << 30)
