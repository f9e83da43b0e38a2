"""A local Ray cluster and what it has of this machine: files, ports, the environment."""

import os
import signal
import tempfile
import time
from fcntl import LOCK_EX, flock
from pathlib import Path

import pytest
from packages.neuroncore.tests.executor_jobs import JOBS
from packages.neuroncore.tests.processes import descendants, listening

from neuroncore.executors import ExecutorLostError, Finished, Job, ray_cluster
from neuroncore.executors.ray_actors import short_folder

LOOPBACK = {"127.0.0.1", "::ffff:127.0.0.1", "::1"}


@pytest.fixture
def run_folder():
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="run") as folder:
        yield Path(folder)


def test_a_local_cluster_is_in_the_run_s_folder_and_on_the_loopback_address(
    tmp_path, run_folder, monkeypatch
):
    for name in ("HOME", "TMPDIR"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    before, events, seen = dict(os.environ), [], {}

    def watch(event):
        events.append(event)
        seen["files"] = [file.name for file in run_folder.iterdir()]
        seen["addresses"] = {
            address for number in descendants(os.getpid()) for address in listening(number)
        }

    with ray_cluster("local", 1, folder=run_folder) as executor:
        executor.submit(Job("a", JOBS + "square", 2))
        executor.run(watch)

    assert [e.value for e in events if isinstance(e, Finished)] == [4]
    assert [name[:3] for name in seen["files"]] == ["ray"]
    assert seen["addresses"] and seen["addresses"] <= LOOPBACK
    assert [*tmp_path.iterdir(), *run_folder.iterdir()] == []
    assert dict(os.environ) == before


def test_a_run_s_folder_with_a_long_path_is_replaced_by_a_temporary_one(tmp_path):
    long = tmp_path / ("folder" * 10)
    long.mkdir()

    made = short_folder(long)
    made.rmdir()

    assert made.parent == Path(tempfile.gettempdir())
    assert [*long.iterdir()] == []


def test_the_folder_of_a_cluster_whose_driver_was_killed_is_removed_by_the_next(run_folder):
    tokens = [run_folder / name / "token" for name in ("rayended", "rayruns", "raydata/x")]
    for token in tokens:
        token.parent.mkdir(parents=True)
        token.touch()

    with tokens[1].open() as locked:
        flock(locked, LOCK_EX)  # as its driver does
        made = short_folder(run_folder)

    assert {*run_folder.iterdir()} == {made, run_folder / "rayruns", run_folder / "raydata"}


def test_ctrl_c_while_a_cluster_starts_comes_once_it_can_be_ended(monkeypatch):
    pytest.importorskip("ray")
    done = []

    def connected(*_):
        os.kill(os.getpid(), signal.SIGINT)
        done.append("connected")

    monkeypatch.setattr("neuroncore.executors.ray_actors._Cluster._connected", connected)

    with pytest.raises(KeyboardInterrupt), ray_cluster("local", 1):
        done.append("started")

    assert done == ["connected"]


def test_a_cluster_whose_head_is_lost_while_it_starts_ends_the_run(run_folder, monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setattr("neuroncore.executors.ray_actors.START_S", 0.05)
    monkeypatch.setattr(
        "neuroncore.executors.ray_actors._Cluster._connected", lambda *_: time.sleep(600)
    )

    with pytest.raises(ExecutorLostError, match=r"has not started within 0\.05 s"):
        ray_cluster("local", 1, folder=run_folder).__enter__()
