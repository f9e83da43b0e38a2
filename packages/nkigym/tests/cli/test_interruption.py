"""Signals at any moment of a command: a message, an exit code, nothing left."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE

import pytest
from packages.nkigym.tests import tuning_kernels
from packages.tokenplan.tests.processes import descendants, have_ended

from nkigym.store import Store

COMMAND = [sys.executable, "-c", "import sys; from nkigym.cli import main; sys.exit(main())"]
TUNE = ("tune", f"{tuning_kernels.__file__}:softmax", "--spec", "f32[256,128]", "--budget", "10min")
ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture
def started(tmp_path):
    """Starts commands whose temporary files are in a folder."""
    (tmp_path / "temporary").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    commands = []

    def start(*words, imports=""):
        command = [*COMMAND[:2], imports + COMMAND[2], *words]
        commands.append(
            subprocess.Popen(command, stdout=PIPE, stderr=PIPE, text=True, env=environment)
        )
        return commands[-1]

    yield start
    for command in commands:
        command.kill()
        command.communicate()


def temporary_files(tmp_path):
    return [*(tmp_path / "temporary").iterdir()]


def wait_for(condition, run):
    while not condition():
        assert run.poll() is None, run.communicate()
        time.sleep(0.02)


@pytest.mark.parametrize("number", ENDING, ids=lambda n: n.name)
@pytest.mark.parametrize("options", [(), ("--jobs", "2")], ids=["here", "workers"])
def test_a_search_that_a_signal_ends_has_its_best_so_far(number, options, started, tmp_path):
    run = started(*TUNE, "--progress", *options)
    assert any("x roofline" in line for line in run.stderr)
    below = descendants(run.pid)

    run.send_signal(number)
    out, err = run.communicate()

    assert run.returncode == 0, err
    assert "interrupted; this is the best so far" in err
    assert "stopped: interrupted" in out
    assert have_ended(below)
    assert temporary_files(tmp_path) == []


@pytest.mark.parametrize("number", ENDING, ids=lambda n: n.name)
@pytest.mark.parametrize("command", ["tune", "sweep"])
def test_a_signal_while_workers_start_leaves_nothing(command, number, started, tmp_path):
    (tmp_path / "s.toml").write_text(
        f"[[function]]\nname = '{TUNE[1]}'\nshapes = [['f32[256,128]']]\nseeds = [0, 1]"
    )
    sweep = ("sweep", f"{tmp_path}/s.toml", "--store", f"{tmp_path}/s.db")
    slow = "import tokenplan.executors.workers as w, time; w.release = lambda: time.sleep(60);"
    run = started(*(TUNE if command == "tune" else sweep), "--jobs", "2", imports=slow)
    wait_for(lambda: of_workers(run.pid), run)
    below = descendants(run.pid)

    run.send_signal(number)
    _, err = run.communicate()

    assert run.returncode == 130
    what = "nothing was reported" if command == "tune" else "0 of 2 tasks are done"
    assert f"nkigym: interrupted; {what}" in err
    assert have_ended(below)
    assert temporary_files(tmp_path) == []


def of_workers(number):
    return [n for n in descendants(number) if b"pool_worker" in command_line(n)]


def command_line(number):
    try:
        return Path(f"/proc/{number}/cmdline").read_bytes()
    except OSError:
        return b""


def test_an_interruption_of_imports_prints_no_traceback(started):
    imports = (
        "import builtins, os, signal; of = builtins.__import__\n"
        "def slow(name, *given):\n"
        "    if name == 'numpy': os.kill(os.getpid(), signal.SIGINT)\n"
        "    return of(name, *given)\n"
        "builtins.__import__ = slow;"
    )
    run = started(*TUNE, imports=imports)
    out, err = run.communicate()

    assert (run.returncode, out) == (130, "")
    assert err == "nkigym: interrupted; nothing was reported\n"


def test_the_next_run_removes_the_store_of_one_that_was_killed(started, tmp_path):
    run = started(*TUNE, "--jobs", "2", "--progress")
    assert any("x roofline" in line for line in run.stderr)
    (folder,) = temporary_files(tmp_path)
    below = descendants(run.pid)
    for number in (run.pid, *below):
        with suppress(ProcessLookupError):  # it has ended with another one
            os.kill(number, signal.SIGKILL)
    run.communicate()
    assert have_ended(below)
    assert folder.exists()

    again = started(*TUNE[:-1], "3", "--jobs", "2")
    again.communicate()

    assert again.returncode == 0
    assert temporary_files(tmp_path) == []


def test_the_results_of_a_search_that_is_terminated_are_stored(started, tmp_path):
    store = tmp_path / "found.db"
    run = started(*TUNE, "--store", str(store), "--progress")
    assert any("x roofline" in line for line in run.stderr)

    run.terminate()
    run.communicate()

    assert run.returncode == 0
    with Store(store, create=False) as opened:
        (problem,) = opened.problems()
        assert opened.latencies(problem.key)
        assert [each["stopped"] for each in opened.runs(problem.key)] == ["interrupted"]
