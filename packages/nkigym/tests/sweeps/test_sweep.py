"""Sweeps: files that are rejected, runs that are resumed, one table on any executor."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
from packages.nkigym.tests import tuning_kernels
from packages.tokenplan.tests.processes import descendants, have_ended

from nkigym.search import Budget
from nkigym.store import Problem, Result, Store, StoreFullError
from nkigym.sweeps import Sweep, SweepFileError, SweepTask, read_sweep, run_sweep
from nkigym.sweeps.tasks import _FUNCTION, EXAMPLE
from tokenplan.executors import ExecutorLostError, InProcess, pool, ray_cluster

FILE = Path(tuning_kernels.__file__)
THOROUGH = (pytest.mark.thorough, pytest.mark.timeout(3600))
TASKS = f"""
[sweep]
budget = 15
seeds = [0, 1]

[[function]]
name = "{FILE.name}:softmax"
shapes = [["f32[256,128]"], ["f32[128,128]"]]

[[function]]
name = "{FILE.name}:two"
shapes = [["f32[256,128]", "f32[256,128]"]]
targets = ["trn2", "trn1"]
budget = 10
"""


ONE = f"[[function]]\nname = '{FILE}:softmax'\nshapes = [['f32[128,128]']]\n{{}}"


@pytest.fixture
def sweep_file(tmp_path):
    (tmp_path / FILE.name).write_text(FILE.read_text())
    path = tmp_path / "sweep.toml"
    path.write_text(TASKS)
    return path


def test_a_task_for_every_function_shape_target_and_seed(sweep_file):
    tasks = read_sweep(sweep_file)

    assert [(t.specs[0], t.target, t.seed, t.budget.candidates) for t in tasks] == [
        ("f32[256,128]", "trn2", 0, 15), ("f32[256,128]", "trn2", 1, 15),
        ("f32[128,128]", "trn2", 0, 15), ("f32[128,128]", "trn2", 1, 15),
        ("f32[256,128]", "trn2", 0, 10), ("f32[256,128]", "trn2", 1, 10),
        ("f32[256,128]", "trn1", 0, 10), ("f32[256,128]", "trn1", 1, 10),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[sweep", "is not TOML"),
        ("[sweep]\nbudget = 1", "names no function"),
        ("[sweep]\nbudgets = 1", r"\[sweep\] of .* has an unknown field 'budgets'.*budget"),
        ("[[function]]\nname = 'a.py:f'\nsize = 1", "unknown field 'size'"),
        ("[[function]]\nname = 'a.py:f'", "lacks a name or shapes"),
        ("[[function]]\nname = 1", "'name' of .* has a wrong type"),
        ("[[function]]\nname = 'm:f'\nshapes = [['f32[1]']]\nbudget = '0s'", "allows nothing"),
        ("[[function]]\nname = 'm:f'\nshapes = [['f32[1]']]\nbudget = '90s'", "contradicts"),
        ("[[function]]\nname = 'm:f'\nshapes = [['f32[1]']]\nstrategy = 'deam'", "'beam'"),
        ("[[function]]\nname = 'm:f'\nshapes = [['f32[1]']]\nseeds = [-1]", "is not 0 or more"),
        ("[[function]]\nname = 'm:f'\nshapes = [['f32[1]']]\nnki = '0.1'", "NKI 0.1"),
        (ONE.format("budget = true"), "'True' is not a budget"),
        (ONE.format("budget = -4"), "'-4' is not a budget"),
        (ONE.format("targets = ['trn9']"), "unknown target 'trn9'"),
        (ONE.format("").replace(FILE.name, "absent.py"), "absent.py.*no such file"),
        (ONE.format("start = 'nope'"), "'nope' is not a start"),
        (ONE.format("seeds = []"), "'seeds' of .* does not list such values"),
        (ONE.format("seeds = [true]"), "'seeds' of .* does not list such values"),
        (ONE.format("targets = []"), "'targets' of .* does not list such values"),
        ("[[function]]\nname = 'm:f'\nshapes = ['f32[1]']", "'shapes' of .* such values"),
        ("[[function]]\nname = 'm:f'\nshapes = [['f32[1]']]", "no module is called 'm'"),
        (ONE.format("").replace("softmax", "sotfmax"), "has no function sotfmax"),
        (ONE.format("").replace("f32[128,128]", "f32[128,x]"), r"f32\[128,x\]"),
        (ONE.format("").replace("]']]", "]', 'f32[1]']]"), "more specs than arguments"),
    ],
)
def test_a_file_that_cannot_be_used_is_rejected_before_work_begins(tmp_path, text, what):
    path = tmp_path / "sweep.toml"
    path.write_text(text)

    with pytest.raises(SweepFileError, match=f"(?s){what}") as raised:
        read_sweep(path, limit_s=60)

    assert str(path) in str(raised.value)
    assert "[[function]] 1 of " in str(raised.value) or "[[function]]\nname" not in text


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (ONE.format("seeds = [3, 0, 3]"), "softmax f32[128,128] trn2, seed 3, 2 times"),
        (ONE.format("targets = ['trn2', 'gen3', 'trn2']"), "trn2, seed 0, 3 times"),
        (ONE.format("").replace("']]", "'], ['f32[128,128]']]"), "seed 0, 2 times"),
        (ONE.format("\n") + ONE.format("seeds = [1, 0]"), "seed 0, 2 times"),
        (
            ONE.format("").replace("']]", "'], ['x=float32[128, 128]'], ['x=single[128,128]']]"),
            "softmax f32[128,128] trn2, seed 0, 3 times",
        ),
        (ONE.format("\n") + ONE.format("").replace("'/", "'/./", 1), "seed 0, 2 times"),
    ],
)
def test_a_task_that_is_listed_twice_is_rejected(tmp_path, text, what):
    path = tmp_path / "sweep.toml"
    path.write_text(text)

    with pytest.raises(SweepFileError, match=re.escape(what)):
        read_sweep(path)


def test_a_file_that_is_absent_is_rejected(tmp_path):
    with pytest.raises(SweepFileError, match="No such file"):
        read_sweep(tmp_path / "none.toml")


def test_workers_that_cannot_begin_leave_what_another_driver_has_stored(sweep_file, tmp_path):
    store, others = tmp_path / "found.db", []
    executor = pool(1, preload="no_such_module")
    start = executor.fleet.start

    def start_late(number):
        if not others:
            others.append(run_sweep(read_sweep(sweep_file)[:1], InProcess(), store))
        return start(number)

    executor.fleet.start = start_late
    with pytest.raises(ExecutorLostError):
        run_sweep(read_sweep(sweep_file), executor, store)

    assert others[0].is_complete and stored_rows(store) == 1


def test_a_reduction_of_a_whole_array_has_a_winner(tmp_path):
    names = ("max()", "min()", "sum()", "mean(axis=(0, 1))")
    text = "".join(f"def f{n}(x): return x.{name}\n" for n, name in enumerate(names))
    (tmp_path / "f.py").write_text(text)
    tasks = [
        SweepTask(f"{tmp_path}/f.py:f{n}", ("f32[130,70]",), "trn2", "0.7", Budget(3))
        for n in range(len(names))
    ]

    sweep = run_sweep(tasks, InProcess(), tmp_path / "found.db")

    assert [row["status"] for row in sweep.ordered] == ["ok"] * len(names)


def test_rows_are_the_same_on_any_executor(sweep_file, tmp_path):
    pytest.importorskip("ray")
    tasks = read_sweep(sweep_file)
    executors = {"one": InProcess(), "pool": pool(2), "ray": ray_cluster("local", 2)}

    sweeps = [run_sweep(tasks, e, tmp_path / f"{name}.db") for name, e in executors.items()]

    assert all(sweep.is_complete for sweep in sweeps)
    assert sweeps[0].ordered == sweeps[1].ordered == sweeps[2].ordered
    kernels = [{key: t.source for key, t in sweep.tuned.items()} for sweep in sweeps]
    assert kernels[0] == kernels[1] == kernels[2]


def test_what_is_finished_is_not_tuned_again(sweep_file, tmp_path):
    tasks = read_sweep(sweep_file)
    first = run_sweep(tasks[:3], InProcess(), tmp_path / "found.db")

    again = run_sweep(tasks, InProcess(), tmp_path / "found.db")

    assert (again.resumed, len(again.tuned)) == (3, 5)
    assert again.ordered[:3] == first.ordered
    assert run_sweep(tasks, InProcess(), tmp_path / "found.db").resumed == 8


def test_a_module_beside_a_function_that_it_imports_is_part_of_its_key(tmp_path):
    (tmp_path / "kernels.py").write_text("from shapes import double\ndef f(x): return double(x)\n")
    (tmp_path / "shapes").mkdir()
    (tmp_path / "shapes/__init__.py").write_text("from .factors import double\n")
    helper = tmp_path / "shapes/factors.py"
    helper.write_text("def double(x): return x * 2.0\n")
    task = SweepTask(f"{tmp_path}/kernels.py:f", ("f32[128,64]",), "trn2", "0.7", Budget(5))
    before = task.key()

    (tmp_path / "unused.py").write_text("")
    assert task.key() == before
    helper.write_text("def double(x): return x * 4.0\n")
    assert task.key() != before


FOLDERS = {
    "a": "def shape(x): return x * 2.0",
    "b": "import numpy as np\ndef shape(x): return np.exp(x) + np.sin(x) * np.tanh(x)",
}


@pytest.fixture(params=["import shapes\ndef f(x): {}", "def f(x): import shapes; {}"])
def two_folders(tmp_path, request):
    """A sweep of functions that import a module of one name, each from its own folder."""
    names = []
    for folder, text in FOLDERS.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "shapes.py").write_text(text)
        (tmp_path / folder / "k.py").write_text(request.param.format("return shapes.shape(x)"))
        names.append(f"[[function]]\nname = '{folder}/k.py:f'\nshapes = [['f32[256,128]']]\n")
    for name, functions in {"both": names, "first": names[:1], "second": names[1:]}.items():
        (tmp_path / f"{name}.toml").write_text("[sweep]\nbudget = 5\n" + "".join(functions))
    return tmp_path


@pytest.mark.parametrize("executor", [InProcess, lambda: pool(1)], ids=["inprocess", "pool"])
def test_a_function_has_the_row_that_it_has_alone(executor, two_folders, tmp_path):
    def rows(name):
        tasks = read_sweep(two_folders / f"{name}.toml")
        sweep = run_sweep(tasks, executor(), tmp_path / f"{name}.db")
        return [row | {"seconds": 0} for row in sweep.ordered]

    assert rows("both") == rows("first") + rows("second")


@pytest.mark.parametrize("spec", ["float32[256, 128]", "x=f32[256,128]"])
def test_another_spelling_of_a_task_is_resumed_and_shown(spec, sweep_file, tmp_path, monkeypatch):
    run_sweep(read_sweep(sweep_file)[:1], InProcess(), tmp_path / "found.db")
    sweep_file.write_text(sweep_file.read_text().replace("f32[256,128]", spec, 1))
    monkeypatch.chdir(tmp_path)

    (task, *_) = read_sweep(Path(sweep_file.name))
    again = run_sweep([task], InProcess(), tmp_path / "found.db")

    assert again.resumed == 1
    assert again.ordered[0]["specs"] == [spec]


def test_another_release_of_the_project_has_other_keys(sweep_file, monkeypatch):
    (task, *_) = read_sweep(sweep_file)
    before = task.key()

    monkeypatch.setattr("nkigym.sweeps.tasks.release", lambda: "neuroncore 99")

    assert task.key() != before


def test_a_function_that_was_edited_is_tuned_again(sweep_file, tmp_path):
    run_sweep(read_sweep(sweep_file)[:1], InProcess(), tmp_path / "found.db")
    (tmp_path / FILE.name).write_text(FILE.read_text() + "\n# edited\n")

    assert run_sweep(read_sweep(sweep_file)[:1], InProcess(), tmp_path / "found.db").resumed == 0


def test_a_function_that_is_edited_during_the_run_has_its_row(sweep_file, tmp_path):
    def edit(sweep):
        (tmp_path / FILE.name).write_text(FILE.read_text() + "\n# edited\n")

    tasks = read_sweep(sweep_file)[:2]

    assert run_sweep(tasks, InProcess(), tmp_path / "found.db", edit).is_complete


@pytest.mark.parametrize("edited", ["def softmax(x): return x * 2\n", None])
def test_the_row_of_an_edited_function_is_not_that_of_its_key(edited, sweep_file, tmp_path):
    file, store = tmp_path / FILE.name, tmp_path / "found.db"
    source = file.read_text()
    tasks = read_sweep(sweep_file)[:2]

    def edit(sweep):
        file.write_text(edited) if edited else file.unlink(missing_ok=True)

    run_sweep(tasks, InProcess(), store, edit)
    file.write_text(source)
    again, alone = (run_sweep(tasks, InProcess(), tmp_path / f) for f in ("found.db", "new.db"))

    assert again.ordered == alone.ordered
    assert again.resumed < 2


def test_a_function_without_a_kernel_is_a_row_with_its_reason(sweep_file, tmp_path):
    (tmp_path / FILE.name).write_text(
        "def softmax(x):\n    return x\n\ndef two(x, y):\n    raise ValueError('no')\n"
    )

    sweep = run_sweep(read_sweep(sweep_file)[4:5], InProcess(), tmp_path / "found.db")

    assert sweep.ordered[0]["status"].startswith("error: ")
    assert not sweep.is_complete
    assert run_sweep(read_sweep(sweep_file)[4:5], InProcess(), tmp_path / "found.db").resumed == 0


def test_a_full_store_ends_the_run_and_its_workers(sweep_file, tmp_path, monkeypatch):
    def full(*_):
        raise StoreFullError("no room for more")

    monkeypatch.setattr(Store, "add", full)
    executor = pool(2)

    with pytest.raises(StoreFullError, match="no room"):
        run_sweep(read_sweep(sweep_file), executor, tmp_path / "found.db")
    assert executor._workers == []


def command(*words):
    return [sys.executable, "-c", "from nkigym.cli import main; raise SystemExit(main())", *words]


def started(sweep_file, store, *options, under=()):
    return subprocess.Popen(
        [*under, *command("sweep", str(sweep_file), "--store", str(store), *options)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def stored_rows(store):
    """Reports of finished jobs, as another process sees them."""
    if not store.exists():
        return 0
    try:
        with sqlite3.connect(store) as opened:
            return opened.execute("SELECT count(*) FROM runs").fetchone()[0]
    except sqlite3.Error:
        return 0


def wait_for(condition, seconds=240):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


IN_BACKGROUND = ("/bin/sh", "-c", 'trap "" INT; exec "$@"', "sh")
SHORT = f"""
[[function]]
name = "{FILE}:softmax"
shapes = [["f32[128,128]"]]
budget = 2
seeds = {{}}
"""
LONG = f"""
[[function]]
name = "{FILE}:softmax"
shapes = [["f32[256,128]"]]
budget = "10min"
"""


@pytest.mark.parametrize(
    ("number", "under"),
    [(signal.SIGINT, ()), (signal.SIGTERM, ()), (signal.SIGTERM, IN_BACKGROUND)],
    ids=["SIGINT", "SIGTERM", "SIGTERM in the background"],
)
def test_ctrl_c_leaves_no_process(number, under, sweep_file, tmp_path):
    store = tmp_path / "found.db"
    sweep_file.write_text(SHORT.format([0]) + LONG)
    run = started(sweep_file, store, "--jobs", "2", under=under)
    wait_for(lambda: stored_rows(store))
    workers = descendants(run.pid)

    run.send_signal(number)
    _, said = run.communicate()

    assert run.returncode == 130
    assert "interrupted; 1 of 2 tasks are done" in said and "the same command continues" in said
    assert len(workers) >= 2 and have_ended(workers)


def kill_after(sweep_file, store, seconds):
    """Start a sweep, kill its driver, wait for its workers to end; the number of stored rows."""
    with started(sweep_file, store, "--jobs", "2") as run:
        wait_for(lambda: len(descendants(run.pid)) >= 2 or run.poll() is not None)
        time.sleep(seconds)
        workers = descendants(run.pid)
        run.kill()
        run.communicate()
    assert have_ended(workers)
    return stored_rows(store)


@pytest.mark.parametrize("kills", [2, pytest.param(40, marks=THOROUGH)])
def test_a_run_whose_driver_is_killed_is_resumed(sweep_file, tmp_path, kills):
    random, store = Random(29), tmp_path / "found.db"

    counts = [kill_after(sweep_file, store, random.uniform(0.5, 2.5)) for _ in range(kills)]

    assert counts == sorted(counts)
    sweep = run_sweep(read_sweep(sweep_file), InProcess(), store)
    assert sweep.is_complete and sweep.resumed == counts[-1]
    assert stored_rows(store) == len(sweep.tasks)


def command_line(number):
    try:
        return Path(f"/proc/{number}/cmdline").read_text()
    except OSError:  # it has ended
        return ""


@pytest.mark.parametrize("kills", [1, pytest.param(4, marks=THOROUGH)])
def test_a_run_whose_head_is_killed_ends_and_is_resumed(sweep_file, tmp_path, kills):
    """While a long task runs; each time with one short task more."""
    pytest.importorskip("ray")
    store = tmp_path / "found.db"
    for kill in range(kills):
        sweep_file.write_text(SHORT.format([*range(kill + 1)]) + LONG)
        run = started(sweep_file, store, "--jobs", "2", "--ray", "local")
        wait_for(lambda n=kill: stored_rows(store) > n)
        below = descendants(run.pid)
        (head,) = [number for number in below if "gcs_server" in command_line(number)]
        os.kill(head, signal.SIGKILL)
        _, said = run.communicate()

        assert (run.returncode, stored_rows(store)) == (1, kill + 1)
        assert "the head of the cluster" in said and "run the same command again" in said
        assert have_ended(below)

    sweep_file.write_text(SHORT.format([*range(kills + 1)]))
    sweep = run_sweep(read_sweep(sweep_file), InProcess(), store)
    assert (sweep.is_complete, sweep.resumed, stored_rows(store)) == (True, kills, kills + 1)


def test_results_of_a_problem_that_jobs_report_twice_are_counted_once():
    sweep = Sweep({})
    one, other = (Problem(key, "f", "trn2", "0.7", "costs", "program") for key in "12")
    results = [Result(digest, 2.0, 1.0, ()) for digest in "ab"]

    sweep.add("seed 0", one, results)
    sweep.add("seed 0", one, results)
    sweep.add("seed 1", one, results[:1])
    sweep.add("another function", other, results[:1])

    assert sweep.results == 3


def test_the_file_of_the_help_has_every_field(tmp_path):
    (tmp_path / "matmul.py").write_text("def matmul(a, b):\n    return a @ b\n")
    file = tmp_path / "sweep.toml"
    file.write_text(EXAMPLE)

    (task,) = read_sweep(file)

    assert (task.label, task.seed) == ("matmul bf16[256,256] bf16[256,512] trn2", 0)
    lines = EXAMPLE.splitlines()
    assert {line.partition(" = ")[0] for line in lines if " = " in line} == {*_FUNCTION}
