"""`nkigym sweep` and `nkigym tune --jobs`, from the command line."""

import itertools
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from random import SystemRandom
from subprocess import PIPE

import pytest
from members import ROOT
from packages.nkigym.tests import tuning_kernels

from nkigym.baseline import baseline_kernel
from nkigym.cli import main
from nkigym.cli.sweep import figures, table, to_json
from nkigym.search import Budget
from nkigym.search.explorer import Explorer
from nkigym.store import Store
from nkigym.sweeps import SweepTask, read_sweep, run_sweep
from nkigym.tuning import tune
from tokenplan.executors import InProcess
from tokenplan.executors.workers import WorkerExecutor

SOFTMAX = f"{tuning_kernels.__file__}:softmax"
EXAMPLE = ROOT / "examples/gym/sweep.toml"
TUNE = ("tune", SOFTMAX, "--spec", "f32[256,128]", "--budget", "20")


@pytest.fixture
def sweep_file(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(
        f"[[function]]\nname = '{SOFTMAX}'\nshapes = [['f32[256,128]']]\n"
        "budget = 20\nseeds = [0, 1]"
    )
    return path


def test_a_sweep_prints_a_row_of_each_task_and_the_shares_of_workers(sweep_file, tmp_path, capsys):
    words = ["sweep", str(sweep_file), "--store", str(tmp_path / "s.db")]

    assert main([*words, "--jobs", "2"]) == 0
    first = capsys.readouterr().out
    assert main(words) == 0
    again = capsys.readouterr().out

    rows = first.split("\n\n")[0]
    assert rows == again.split("\n\n")[0]
    assert rows.count("softmax f32[256,128]") == 2
    assert re.search(r"geometric mean [\d.]+ times as fast as the start, all proved", first)
    assert "2 tasks, 0 of them from" in first
    assert sum(map(int, re.findall(r"worker \d: (\d+) job", first))) == 2
    assert "2 tasks, 2 of them from" in again


@pytest.mark.thorough
def test_the_example_sweep_prints_one_table_on_a_pool_and_on_ray(tmp_path, capsys):
    pytest.importorskip("ray")
    example = read_sweep(EXAMPLE)
    tables = {}

    for name, options in {"pool": (), "ray": ("--ray", "local")}.items():
        store = ("--store", str(tmp_path / f"{name}.db"))
        assert main(["sweep", str(EXAMPLE), "--jobs", "2", *store, *options]) == 0
        tables[name] = capsys.readouterr().out.partition("\n\n")[0].splitlines()

    assert len(tables["pool"]) == 1 + len(example)
    assert tables["pool"] == tables["ray"]


def test_functions_of_one_name_are_shown_with_their_files(tmp_path, capsys):
    for folder in "ab":
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "k.py").write_text("def f(x): return x * 2.0")
    text = "[[function]]\nname='{}'\nshapes=[['f32[128,64]']]\n"
    file = tmp_path / "s.toml"
    file.write_text("".join(map(text.format, ("a/k.py:f", "b/k.py:f"))))

    main(["sweep", str(file), "--store", str(tmp_path / "s.db")])

    rows = capsys.readouterr().out.splitlines()[1:3]
    where = f"{tmp_path}/{{}}/k.py:f f32[128,64]  trn2"
    assert [row[: len(where) - 1] for row in rows] == [where.format("a"), where.format("b")]


def test_a_program_is_relative_to_the_sweep_file(tmp_path, capsys):
    program = baseline_kernel(lambda x: x * 2.0, "f32[128,64]")
    (tmp_path / "k.prog").write_text(str(program))
    file = tmp_path / "s.toml"
    file.write_text("[sweep]\nbudget = 2\n[[function]]\nname = 'k.prog'\nshapes = [[]]\n")

    assert main(["sweep", str(file), "--store", str(tmp_path / "s.db")]) == 0
    assert "geometric mean 1.00" in capsys.readouterr().out


def test_a_sweep_as_json(sweep_file, tmp_path, capsys):
    words = ["sweep", str(sweep_file), "--store", str(tmp_path / "s.db")]
    assert main([*words, "--output-format", "json"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert [row["seed"] for row in found["rows"]] == [0, 1]
    assert found["workers"]["this process"]["jobs"] == 2
    gains = [row["root_ns"] / row["best_ns"] for row in found["rows"]]
    assert found["mean_speedup"] == pytest.approx((gains[0] * gains[1]) ** 0.5)


def test_a_search_per_job_with_the_next_seed_and_the_fastest_winner(capsys):
    assert main([*TUNE, "--jobs", "2", "--output-format", "json"]) == 0

    out, err = capsys.readouterr()
    searches = [tune(tuning_kernels.softmax, "f32[256,128]", budget=20, seed=n) for n in (0, 1)]
    best = min(searches, key=lambda tuned: (tuned.report.best_ns, tuned.report.seed))
    assert json.loads(out)["source"] == best.source
    assert err.count("softmax f32[256,128]") == 2


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("--jobs", "0"), "'0' is not a whole number of at least 1"),
        (("--jobs", "-1"), "'-1' is not a whole number of at least 1"),
        (("--jobs", "0", "--ray", "local"), "'0' is not a whole number of at least 1"),
        (("--jobs", "2", "--budget", "60s", "--job-time", "60s"), "contradicts the limit of a job"),
        (("--jobs", "2", "--engines", "gpu"), "nkigym: 'gpu' is not an engine"),
        (("--jobs", "2", "--min-depth", "3", "--max-depth", "2"), "no candidate can meet these"),
        (("--jobs", "2", "--compare", "lucky"), "'lucky' is not a strategy"),
        (("--ray", "127.0.0.1:9"), "does not answer"),
        (("--jobs", "2", "--job-time", "soon"), "is not a time"),
        (("--jobs", "2", "--job-memory", "2"), "is not a size"),
    ],
)
def test_options_that_cannot_be_used_are_rejected_before_work_begins(options, what, capsys):
    assert exit_code(*TUNE, *options) == 2
    err = capsys.readouterr().err
    assert what in err and "baseline µs" not in err


def test_searches_in_workers_leave_the_reports_of_earlier_ones(tmp_path, capsys):
    store = tmp_path / "found.db"

    for _ in range(2):
        assert main([*TUNE, "--jobs", "2", "--store", str(store)]) == 0

    with Store(store, create=False) as opened:
        (problem,) = opened.problems()
        assert sorted(run["seed"] for run in opened.runs(problem.key)) == [0, 0, 1, 1]


def exit_code(*words):
    try:
        return main(list(words))
    except SystemExit as ended:
        return ended.code


def absent_ray(sweep_file, store, monkeypatch):
    monkeypatch.setattr("tokenplan.executors.ray_actors.find_spec", lambda name: None)


def unknown_field(sweep_file, store, monkeypatch):
    sweep_file.write_text(sweep_file.read_text() + "\nbudgets = 3")


def budget_of_the_limit(sweep_file, store, monkeypatch):
    sweep_file.write_text(sweep_file.read_text().replace("= 20", "= '60s'"))


def store_of_another_version(sweep_file, store, monkeypatch):
    Store(store).close()
    with closing(sqlite3.connect(store)) as made:
        made.execute("PRAGMA user_version = 1")


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (absent_ray, "pip install 'tokenplan[ray]'"),
        (unknown_field, "has an unknown field 'budgets'"),
        (budget_of_the_limit, "contradicts the limit of a job"),
        (store_of_another_version, "another version"),
    ],
)
def test_a_sweep_that_cannot_run_is_rejected_before_a_worker_starts(
    make, what, sweep_file, tmp_path, monkeypatch, capsys
):
    store = tmp_path / "s.db"
    make(sweep_file, store, monkeypatch)
    started = []
    monkeypatch.setattr(WorkerExecutor, "_start", started.append)
    options = ("--jobs", "2", "--ray", "local", "--job-time", "60s", "--store", str(store))

    assert exit_code("sweep", str(sweep_file), *options) == 2

    assert what in capsys.readouterr().err
    assert started == []


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1:9"])
def test_an_address_without_a_cluster_is_a_mistake_of_the_options(address, sweep_file, tmp_path):
    pytest.importorskip("ray")
    store = tmp_path / "s.db"

    assert exit_code("sweep", str(sweep_file), "--ray", address, "--store", str(store)) == 2
    assert not store.exists()


def test_more_jobs_than_cores_are_reported(monkeypatch, capsys):
    monkeypatch.setattr("os.cpu_count", lambda: 1)

    assert main([*TUNE, "--jobs", "2"]) == 0
    assert "note: 2 jobs share 1 cores" in capsys.readouterr().err


def test_the_limit_of_a_job_ends_one_search_in_this_process(capsys):
    assert main([*TUNE, "--job-time", "10ms"]) == 1

    assert "time: stopped after 0.01 s, its limit" in capsys.readouterr().err


BAD = """
import os, sys

def doubled(x):
    return x * 2.0

def aborted(x):
    os.abort()

def left(x):
    os._exit(3)

def exited(x):
    sys.exit(3)
"""


COMMAND = [sys.executable, "-c", "import sys; from nkigym.cli import main; sys.exit(main())"]


def started(*words):
    return subprocess.Popen([*COMMAND, *words], stdout=PIPE, stderr=PIPE, text=True)


def test_a_confined_sweep_outlives_the_workers_that_its_jobs_end(tmp_path):
    (tmp_path / "bad.py").write_text(BAD)
    functions = [f"[[function]]\nname = 'bad.py:{name}'\nshapes = [['f32[128,64]']]"
                 for name in ("aborted", "doubled", "left", "exited")]  # fmt: skip
    (tmp_path / "s.toml").write_text("\n".join(["[sweep]\nbudget = 5", *functions]))

    run = started("sweep", f"{tmp_path}/s.toml", "--jobs", "9", "--store", f"{tmp_path}/s.db")
    out, err = run.communicate()

    assert run.returncode == 1, err
    rows = {line.split()[0]: line for line in out.splitlines()[1:5]}
    assert "poisoned: ended 2 workers: killed by SIGABRT" in rows["aborted"]
    assert "poisoned: ended 2 workers: ended with exit code 3" in rows["left"]
    assert "error: SystemExit: 3" in rows["exited"]
    assert " 1.00 " in rows["doubled"]
    assert {int(n) for n in re.findall(r"lost worker (\d+)", out)} <= {*range(1, 9)}


def test_ctrl_c_of_a_sweep_says_what_is_stored(sweep_file, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(Explorer, "attempt", interrupt(after=3, by=send_ctrl_c))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert main(["sweep", str(sweep_file), "--store", f"{tmp_path}/s.db"]) == 130
    finally:
        signal.signal(signal.SIGINT, before)

    out, err = capsys.readouterr()
    assert re.search(r"interrupted softmax f32\[256,128\] trn2, seed 0: [\d.]+ µs so far", out)
    assert re.search(r"interrupted; 0 of 2 tasks are done, \d results of this run are in", err)


def interrupt(after, by):
    """`Explorer.attempt` that is interrupted at every candidate behind so many."""
    attempt, calls = Explorer.attempt, itertools.count()

    def attempted(*given, **named):
        if next(calls) >= after:
            by()
        return attempt(*given, **named)

    return attempted


def send_ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)


def raise_interrupt():
    raise KeyboardInterrupt


def test_searches_that_an_interruption_ended_are_shown_one_by_one(tmp_path, monkeypatch):
    """Functions of one name in two files, and one of two budgets."""
    for folder in "ab":
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "k.py").write_text("def f(x): return x * 2.0")
    places = [f"{tmp_path}/{folder}/k.py:f" for folder in "aba"]
    tasks = [
        SweepTask(place, ("f32[128,64]",), "trn2", "0.7", Budget(budget))
        for place, budget in zip(places, (5, 5, 6), strict=True)
    ]
    monkeypatch.setattr(Explorer, "attempt", interrupt(after=0, by=raise_interrupt))
    sweep = run_sweep(tasks, InProcess(), tmp_path / "s.db")

    assert [row["source"] for row in sweep.unfinished] == [place[:-2] for place in places]
    ended = [line for line in figures(sweep, tmp_path / "s.db") if "interrupted" in line]
    assert [line.split()[1] for line in ended] == places
    assert len(json.loads(json.dumps(to_json(sweep)))["unfinished"]) == 3


def test_a_negative_seed_is_one_that_is_drawn_and_shown(capsys, monkeypatch):
    monkeypatch.setattr(SystemRandom, "randrange", lambda *_: 41)

    assert main([*TUNE, "--jobs", "2", "--seed", "-1"]) == 0

    rows = capsys.readouterr().err.splitlines()
    assert [row.split()[3] for row in rows if "softmax" in row] == ["41", "42"]


def test_a_confined_run_keeps_the_lower_limit_of_its_shell():
    limited = ["sh", "-c", 'ulimit -f 2000 && exec "$@"', "sh", *COMMAND, *TUNE]

    done = subprocess.run(limited, capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")


def test_the_reason_of_a_row_without_a_result_widens_no_column():
    named = {"function": "f", "source": "k.py", "specs": ["f32[8]"], "target": "trn2", "seed": 0}
    figures = {
        "baseline_ns": None, "root_ns": 2e3, "best_ns": 1e3, "root_ratio": 4.0, "ratio": 2.0,
        "speedup": 2.0, "binding": "dma", "gap_removed": 0.5,
    }  # fmt: skip
    reason = "error: " + "not translated " * 20

    head, right, wrong = table([named | figures | {"status": "ok"}, named | {"status": reason}])

    assert max(len(head), len(right)) < 120
    assert wrong == f"{right[: right.index('none')].rstrip()}  {reason.rstrip()}"
