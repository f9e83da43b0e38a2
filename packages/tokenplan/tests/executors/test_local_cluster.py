"""A local Ray cluster and what it has of this machine: files, ports, the environment."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path

import pytest
from packages.tokenplan.tests.executor_jobs import JOBS
from packages.tokenplan.tests.processes import descendants, have_ended, listening

from neuroncore.commands.folders import LOCK
from tokenplan.executors import AddressError, ExecutorLostError, Finished, Job, ray_cluster
from tokenplan.executors.ray_actors import _Cluster, _remove, _short_parent
from tokenplan.executors.ray_address import answers

LOOPBACK = {"127.0.0.1", "::ffff:127.0.0.1", "::1"}


@pytest.fixture
def run_folder():
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="run") as folder:
        yield Path(folder)


def test_a_local_cluster_is_in_the_run_s_folder_on_the_loopback_address_and_no_nicer_than_the_run(
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
        executor.submit(Job("b", JOBS + "niceness", None))
        executor.run(watch)
        cluster = executor.fleet
        assert isinstance(cluster, _Cluster) and cluster._head is not None
        assert answers(cluster._head, as_ray=True)

    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    assert [e.value for e in events if isinstance(e, Finished)] == [4, niceness]
    assert [name[:8] for name in seen["files"]] == ["nki-ray-"]
    assert seen["addresses"] and seen["addresses"] <= LOOPBACK
    assert [*tmp_path.iterdir(), *run_folder.iterdir()] == []
    assert dict(os.environ) == before
    assert capfd.readouterr() == ("", "")


def test_a_run_s_folder_with_a_long_path_is_replaced_by_a_temporary_one(tmp_path):
    long = tmp_path / ("folder" * 10)
    long.mkdir()

    assert _short_parent(long) == Path(tempfile.gettempdir())
    assert _short_parent(Path("/tmp")) == Path("/tmp")
    assert [*long.iterdir()] == []


DRIVER = """
import signal, sys, time
from pathlib import Path
from tokenplan.executors import ray_cluster
signal.signal(signal.SIGINT, signal.default_int_handler)  # tests may run in a shell's background
with ray_cluster("local", 1, folder=Path(sys.argv[1])):
    print("started", flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda n: n.name)
def test_a_cluster_ends_with_its_driver_and_leaves_nothing(run_folder, number):
    pytest.importorskip("ray")
    command = [sys.executable, "-c", DRIVER, str(run_folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"started\n"
        below = descendants(driver.pid)
        driver.send_signal(number)

    assert len(below) > 4
    assert have_ended(below)
    assert [*run_folder.iterdir()] == []


def test_a_folder_that_is_removed_ends_processes_of_ray_alone(run_folder):
    ray = pytest.importorskip("ray")
    sleeps, of_ray = (
        [sys.executable, "-c", "import time; time.sleep(600)"],
        f"{ray.__path__[0]}/x.py",
    )
    folder, other = run_folder / "nki-ray-", run_folder / "nki-ray-other"
    folder.mkdir()
    (folder / LOCK).touch()
    (folder / "log").touch()
    commands = {
        "viewer": ["tail", "-f", str(folder / "log")],
        "shell": ["/bin/sh", "-c", f"sleep 600; cat {folder}/log"],
        "program of a user": [*sleeps, str(folder)],
        "other cluster": [*sleeps, of_ray, f"--dir={other}/session"],
        "other folder": [*sleeps, of_ray, f"--dir=/data{folder}/session"],
        "its agent": [*sleeps, of_ray, f"--dir={folder}/session"],
        "its node": [*sleeps, of_ray, str(folder)],
        "its agent, renamed": [*sleeps, of_ray],
    }
    ended = {"its agent", "its node", "its agent, renamed"}
    with ExitStack() as opened:
        log = opened.enter_context((folder / "log").open())
        processes = {
            name: opened.enter_context(
                subprocess.Popen(
                    command, stdin=log if "renamed" in name else None, start_new_session=True
                )
            )
            for name, command in commands.items()
        }
        for process in processes.values():
            opened.callback(_end, process)
        for process in processes.values():
            _wait_for_arguments(process)

        _short_parent(run_folder)

        for name in ended:
            processes[name].wait(60)
        assert {name for name, process in processes.items() if process.poll() is not None} == ended
    assert not folder.exists()


def test_a_folder_is_removed_until_no_process_is_left_to_make_it_again(tmp_path, monkeypatch):
    folder, left = tmp_path / "nki-ray-", [2, 1, 0]

    def kill(folder):
        killed = left.pop(0)
        if killed:
            folder.mkdir(exist_ok=True)
        return killed

    monkeypatch.setattr("tokenplan.executors.ray_actors.kill_processes_of", kill)

    _remove(folder)

    assert not left
    assert not folder.exists()


def _end(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _wait_for_arguments(process):
    while not Path(f"/proc/{process.pid}/cmdline").read_bytes():
        time.sleep(0.01)


@pytest.mark.parametrize("killed", ["supervisor", "supervisor and driver"])
def test_processes_of_a_cluster_end_where_its_supervisor_is_killed(run_folder, killed):
    pytest.importorskip("ray")
    command = [sys.executable, "-c", DRIVER, str(run_folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as driver:
        assert driver.stdout is not None
        driver.stdout.readline()
        below = descendants(driver.pid)
        os.kill(below[0], signal.SIGKILL)
        driver.send_signal(signal.SIGINT if killed == "supervisor" else signal.SIGKILL)

    if killed == "supervisor and driver":
        assert have_ended(below[:2])  # they have locked the folder
        assert [*run_folder.iterdir()]
        _short_parent(run_folder)
    assert have_ended(below)
    assert [*run_folder.iterdir()] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name)
def test_a_cluster_that_starts_is_ended_by_a_signal(number, run_folder):
    pytest.importorskip("ray")
    command = [sys.executable, "-c", DRIVER, str(run_folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as driver:
        while len(below := descendants(driver.pid)) < 2:
            assert driver.poll() is None
            time.sleep(0.01)
        driver.send_signal(number)

        assert driver.stdout is not None
        assert driver.stdout.read() == b""
    assert have_ended(below)
    assert [*run_folder.iterdir()] == []


def test_a_cluster_whose_head_is_lost_while_it_starts_ends_the_run(run_folder, monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setattr("tokenplan.executors.ray_actors.START_S", 0.05)

    with pytest.raises(ExecutorLostError, match=r"has not started within 0\.05 s"):
        ray_cluster("local", 1, folder=run_folder).__enter__()
    assert [*run_folder.iterdir()] == []


def test_a_cluster_that_cannot_start_says_why(run_folder, monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setattr("tokenplan.executors.ray_actors.HEAD", "no_such_module:head")
    before = dict(os.environ)

    with pytest.raises(ExecutorLostError, match=r"has not started(.|\n)*no_such_module"):
        ray_cluster("local", 1, folder=run_folder).__enter__()
    assert [*run_folder.iterdir()] == []
    assert dict(os.environ) == before


def test_a_head_without_a_node_on_this_machine_is_reported_within_seconds(monkeypatch):
    """By the caller's line."""
    pytest.importorskip("ray")
    services = import_module("ray._private.services")
    monkeypatch.setattr("tokenplan.executors.ray_actors.NODE_S", 0.1)
    monkeypatch.setattr(services, "find_node_ids", set)

    def init(*_, **__):
        raise ConnectionError("no node") from services.get_node_to_connect_for_driver(None)

    monkeypatch.setattr("ray.init", init)
    with pytest.raises(AddressError, match=r"No node info(.|\n)*has to be a node") as raised:
        _Cluster(("127.0.0.1", 9), "", None).open(1)

    assert "threading.py" not in str(raised.value)
