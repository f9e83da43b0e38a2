"""A local Ray cluster and what it has of this machine: files, ports, the environment."""

import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from packages.neuroncore.tests.executor_jobs import JOBS
from packages.neuroncore.tests.processes import descendants, listening

from neuroncore.executors import ExecutorError, ExecutorLostError, Finished, Job, ray_cluster
from neuroncore.executors.ray_actors import (
    MARKER,
    PREFIX,
    _Cluster,
    _locked_marker,
    _remove,
    short_folder,
)

LOOPBACK = {"127.0.0.1", "::ffff:127.0.0.1", "::1"}


@pytest.fixture
def run_folder():
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="run") as folder:
        yield Path(folder)


def test_a_local_cluster_is_in_the_run_s_folder_and_on_the_loopback_address(
    tmp_path, run_folder, monkeypatch, capfd
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
    assert [name[:8] for name in seen["files"]] == ["nki-ray-"]
    assert seen["addresses"] and seen["addresses"] <= LOOPBACK
    assert [*tmp_path.iterdir(), *run_folder.iterdir()] == []
    assert dict(os.environ) == before
    assert capfd.readouterr() == ("", "")


def test_a_run_s_folder_with_a_long_path_is_replaced_by_a_temporary_one(tmp_path):
    long = tmp_path / ("folder" * 10)
    long.mkdir()

    made = short_folder(long)
    made.rmdir()

    assert made.parent == Path(tempfile.gettempdir())
    assert [*long.iterdir()] == []


def test_the_folder_of_a_cluster_whose_driver_was_killed_is_removed_by_the_next(run_folder):
    ended, runs = (Path(tempfile.mkdtemp(prefix=PREFIX, dir=run_folder)) for _ in range(2))
    _locked_marker(ended).close()

    with _locked_marker(runs):
        made = short_folder(run_folder)

    assert {*run_folder.iterdir()} == {made, runs}


def test_folders_that_no_cluster_has_marked_are_left_alone(run_folder):
    marked = Path(tempfile.mkdtemp(prefix=PREFIX, dir=run_folder))
    _locked_marker(marked).close()
    copied = run_folder / f"{PREFIX}copied"
    marked.rename(copied)
    for name, files in {
        "raydata": ("token", "precious"), f"{PREFIX}mine": ("token", "precious"),
        f"{PREFIX}other": (MARKER,), "else": (),
    }.items():  # fmt: skip
        (run_folder / name).mkdir()
        for file in files:
            (run_folder / name / file).write_text("mine")
    _locked_marker(run_folder / "else").close()
    (run_folder / f"{PREFIX}link").symlink_to(run_folder / "else")
    before = {*run_folder.rglob("*")}

    made = short_folder(run_folder)

    assert {*run_folder.rglob("*")} == before | {made}


def test_a_process_that_reads_a_file_of_a_cluster_is_not_its_own(run_folder):
    (run_folder / "log").touch()
    environment = {**os.environ, "RAY_AUTH_TOKEN_PATH": f"{run_folder}/token"}

    with (
        subprocess.Popen(["tail", "-f", str(run_folder / "log")]) as reader,
        subprocess.Popen(["sleep", "600"], env=environment) as started,
    ):
        _remove(run_folder)

        assert started.wait(5) == -signal.SIGKILL
        assert reader.poll() is None
        reader.kill()


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


def test_an_error_of_a_cluster_names_the_caller_s_line(monkeypatch):
    pytest.importorskip("ray")

    def init(*_, **__):
        raise ConnectionError("no head")

    monkeypatch.setattr("ray.init", init)
    with pytest.raises(ExecutorError, match="the cluster cannot be used") as raised:
        _Cluster(("127.0.0.1", 9), "", None).open(1)

    assert "threading.py" not in str(raised.value)
