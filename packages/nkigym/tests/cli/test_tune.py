"""`nkigym tune`, and what is asked of a store: as users meet them."""

import io
import json
import os
import pty
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from packages.nkigym.tests import tuning_kernels
from packages.nkigym.tests.tuning_kernels import KERNEL

import nki_runtime
import nkigym
from nkigym import matmul_root, rewrite_graph
from nkigym.baseline import baseline_kernel
from nkigym.cli import main
from nkigym.cli.tune import Progress, line
from nkigym.search import Budget, SearchProgress
from nkigym.spaces import TileSpace
from nkigym.store import Store, StoreError
from nkigym.tile_rewrites import KNOWN
from nkigym.tiles import print_tiles
from nkigym.tuning import VerificationError
from nkigym.tuning.verification import verify_tile_winner

HERE = Path(__file__).parents[1] / "tuning_kernels.py"
TWO_SPECS = ("f32[512,256]", "f32[512,256]")
TWO = ["--spec", f"x={TWO_SPECS[0]}", "--spec", TWO_SPECS[1]]
COMMAND = [sys.executable, "-c", "import sys; from nkigym.cli import main; sys.exit(main())"]


def tune(*options):
    return main(["tune", f"{HERE}:two", *(TWO if "--spec" not in options else ()), *options])


def exit_code(*options):
    try:
        return tune(*options)
    except SystemExit as stop:
        return stop.code


def test_tuning_prints_times_figures_checks_schedule_and_source(capsys):
    assert tune("--budget", "60") == 0

    out, err = capsys.readouterr()
    assert err == ""
    for part in (
        "two on trn2, NKI 0.7, as written",
        "times as fast",
        "x roofline",
        "60 candidates (descent, seed 0; stopped: candidates)",
        "again: --strategy descent --seed 0 --budget 60",
        "certificates: ok",
        "executed, real size: ok, 262,144 elements of 2 outputs equal to the bit",
        "schedule, ",
        "@nki.jit",
    ):
        assert part in out


def test_other_strategies_are_compared_with_the_same_budget(capsys):
    assert tune("--budget", "60", "--compare", "--output-format", "json") == 0

    report = json.loads(capsys.readouterr().out)["report"]
    assert [*report["compared"]] == ["random", "exhaustive"]
    alone = nkigym.tune(tuning_kernels.two, *TWO_SPECS, budget=60, strategy="random")
    assert [m[0::2] for m in report["compared"]["random"]] == [
        [candidates, ns] for candidates, _, ns in alone.report.curve
    ]


def test_the_package_is_a_command():
    done = subprocess.run(
        [sys.executable, "-m", "nkigym", "--help"], capture_output=True, text=True, check=True
    )

    assert done.stdout.startswith("usage: nkigym ")


def test_the_winner_is_written_and_runs(tmp_path, capsys):
    file = tmp_path / "kernel.py"

    assert tune("--budget", "60", "-o", str(file)) == 0

    assert "@nki.jit" not in capsys.readouterr().out
    assert file.read_text("utf-8").startswith("# Tuned by nkigym from ")
    x, y = (np.arange(512 * 256, dtype=np.float32).reshape(512, 256) % n for n in (7, 5))
    with nki_runtime.use(nki="0.7"):
        total, product = runpy.run_path(str(file))["two"](x, y)
    assert (total == x + y).all()
    assert (product == x * y).all()


@pytest.mark.parametrize(("name", "target"), [("inf2", "trn1"), ("gen4", "trn3")])
def test_targets_have_the_names_of_all_commands(name, target, capsys):
    assert tune("--budget", "2", "--target", name) == 0

    assert f"two on {target}, " in capsys.readouterr().out


def test_machines_get_json(capsys):
    assert tune("--budget", "20", "--output-format", "json", "--strategy", "beam") == 0

    found = json.loads(capsys.readouterr().out)
    assert found["report"]["candidates"] == 20
    assert found["report"]["strategy"] == "beam"
    assert found["ratio"] >= 1
    assert found["binding"] in found["rooflines_ns"]
    assert {"schedule", "source", "checks", "target", "nki"} <= found.keys()


def test_a_program_as_text_is_tuned(tmp_path, capsys):
    file = tmp_path / "kernel.txt"
    file.write_text(
        str(baseline_kernel(lambda x, y: x + y, "f32[512,256]", "f32[512,256]")), "utf-8"
    )

    assert main(["tune", str(file), "--budget", "20"]) == 0

    assert "times as fast" in capsys.readouterr().out


# -- stores ----------------------------------------------------------------------------------------


def test_a_kernel_is_tuned_from_what_it_does(tmp_path, capsys):
    """Its winner is proved at a smaller size too, where it is captured anew."""
    file, found = tmp_path / "doubled.py", tmp_path / "found.py"
    file.write_text(KERNEL, "utf-8")
    options = ("--spec", "x=f32[1024,512]", "--budget", "40", "-o", str(found))

    assert main(["tune", f"{file}:doubled", *options]) == 0

    out = capsys.readouterr().out
    assert "doubled on trn2, NKI 0.7, as written" in out
    assert "executed, float32[256, 512]: ok" in out or "executed, float32[256, 256]: ok" in out
    assert "executed, real size: ok, 524,288 elements of 1 outputs equal to the bit" in out
    x = np.arange(1024 * 512, dtype=np.float32).reshape(1024, 512) % 7
    with nki_runtime.use(nki="0.7"):
        assert (runpy.run_path(str(found))["doubled"](x) == 2 * x).all()


def test_a_tile_program_is_tuned_stored_replayed_and_exported(tmp_path, capsys):
    text, store, out = tmp_path / "root.tiles", tmp_path / "found.db", tmp_path / "found.py"
    text.write_text(print_tiles(matmul_root(2, 2, 2)), "utf-8")

    assert main(["tune", str(text), "--budget", "60", "--store", str(store)]) == 0
    printed = capsys.readouterr().out
    for part in (
        "tile programs of f: 29 statements, 24 opportunities at the root",
        "value numbers: ok, every atom of every output is what it was",
        "executed, real size: ok, 65,536 elements of 1 outputs equal to the bit",
    ):
        assert part in printed

    assert main(["show", str(store)]) == 0
    assert "f on trn2, NKI 0.7: " in capsys.readouterr().out
    assert main(["best", str(store), "--output-format", "json"]) == 0
    (best,) = json.loads(capsys.readouterr().out)
    assert all(
        step[0].split()[0] in ("load", "merge", "reuse", "widen") for step in best["schedule"]
    )
    assert main(["replay", str(store)]) == 0
    assert "latency: ok" in capsys.readouterr().out
    assert main(["export", str(store), "-o", str(out)]) == 0
    a = np.arange(256 * 256, dtype=np.float32).reshape(256, 256)
    a, b = a % 7, a % 5
    with nki_runtime.use(nki="0.7"):
        assert (runpy.run_path(str(out))["f"](a, b) == a.T @ b).all()


def test_a_search_of_tile_programs_stores_latencies(tmp_path):
    root, store = matmul_root(1, 2, 2), tmp_path / "found.db"

    first = nkigym.tune(root, budget=40, store=store)
    again = nkigym.tune(root, budget=40, store=store)

    assert first.report.cached < again.report.cached == again.report.estimated
    assert again.schedule == first.schedule


@pytest.mark.parametrize("options", [["--spec", "f32[2,2]"], ["--engines", "vector"]])
def test_what_a_tile_program_says_itself_is_rejected(options, tmp_path, capsys):
    text = tmp_path / "root.tiles"
    text.write_text(print_tiles(matmul_root(1, 1, 2)), "utf-8")

    with pytest.raises(SystemExit) as stopped:
        main(["tune", str(text), "--budget", "5", *options])

    assert stopped.value.code == 2
    assert "a tile program says its shapes and engines itself" in capsys.readouterr().err


def test_a_tile_program_that_stores_something_else_fails_its_proof():
    root = matmul_root(1, 2, 2)
    space = TileSpace(rewrite_graph(root, tuple(KNOWN)))
    step = space.steps(space.root)[0]

    with pytest.raises(VerificationError, match="replay: FAILED"):
        verify_tile_winner(root, space, space.root, [space.write_step(step)])


def test_a_kernel_that_does_not_run_on_such_arguments_is_said(tmp_path, capsys):
    file = tmp_path / "doubled.py"
    file.write_text(KERNEL, "utf-8")

    assert main(["tune", f"{file}:doubled", "--spec", "f32[100,512]", "--budget", "4"]) == 1

    assert "slice 0:128 is outside dimension 0" in capsys.readouterr().err


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    file = tmp_path_factory.mktemp("store") / "found.db"
    assert tune("--budget", "60", "--store", str(file), "-o", str(file.parent / "k.py")) == 0
    return str(file)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_file_may_change_the_folder(jobs, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("k.py").write_text("import os\nos.chdir('/')\ndef f(x): return x * 2.0\n")
    places = "--store", "found.db", "-o", "out.py", "--jobs", jobs

    assert main(["tune", "k.py:f", "--spec", "f32[128,64]", "--budget", "3", *places]) == 0

    assert {file.name for file in tmp_path.iterdir()} == {"k.py", "found.db", "out.py"}


@pytest.mark.parametrize("line", ["print('mine')", "import sys; sys.stdout.close()"])
@pytest.mark.parametrize("command", ["tune", "check", "sweep"])
def test_stdout_has_the_result_alone(command, line, tmp_path, capfd):
    (tmp_path / "k.py").write_text(f"{line}\ndef f(x):\n    {line}\n    return x * 2.0\n")
    sweep = tmp_path / "s.toml"
    sweep.write_text("[sweep]\nbudget=2\n[[function]]\nname='k.py:f'\nshapes=[['f32[128,64]']]\n")
    kernel = f"{tmp_path}/k.py:f", "--spec", "f32[128,64]"
    words = {
        "tune": (*kernel, "--budget", "2"), "check": kernel,
        "sweep": (str(sweep), "--store", f"{tmp_path}/s.db"),
    }  # fmt: skip

    assert main([command, *words[command], "--output-format", "json"]) == 0

    out, err = capfd.readouterr()
    assert json.loads(out)
    assert ("mine" in err) == ("mine" in line)


def test_a_store_shows_kernels_and_searches(store, capsys):
    assert main(["show", store]) == 0
    assert main(["show", store, "--output-format", "json"]) == 0

    out = capsys.readouterr().out
    text, _, last = out.rstrip().rpartition("\n")
    assert " two on trn2, NKI 0.7: " in text
    assert "descent, seed 0: 60 candidates in " in text
    (held,) = json.loads(last)
    assert held["name"] == "two"
    assert held["runs"][0]["best_ns"] == held["best_ns"]


def test_the_best_schedules_are_printed_fastest_first(store, capsys):
    assert main(["best", store, "--number", "3", "--kernel", "two", "--output-format", "json"]) == 0
    assert main(["best", store]) == 0

    first, text = capsys.readouterr().out.split("\n", 1)
    latencies = [each["latency_ns"] for each in json.loads(first)]
    assert latencies == sorted(latencies)
    assert len(latencies) == 3
    assert text.startswith("1. ")


def test_a_stored_schedule_is_replayed_and_proved(store, capsys):
    assert main(["replay", store]) == 0

    out = capsys.readouterr().out
    assert "replay: ok" in out
    assert "latency: ok" in out
    assert "executed, real size: ok" in out


@pytest.mark.parametrize("what", ["source", "program", "schedule"])
def test_a_stored_schedule_is_exported(store, what, tmp_path, capsys):
    file = tmp_path / "exported"

    assert main(["export", store, "--what", what]) == 0
    assert main(["export", store, "--what", what, "-o", str(file)]) == 0

    out, err = capsys.readouterr()
    assert file.read_text("utf-8") == out
    assert err == f"nkigym: -o wrote {file}\n"
    begins = {"source": "# Tuned by nkigym", "program": 'program("trn2", "0.7")', "schedule": "["}
    assert file.read_text("utf-8").startswith(begins[what])


@pytest.mark.parametrize("what", ["source", "program", "schedule"])
def test_a_stored_schedule_is_not_exported_where_it_does_not_hold(
    what, store, tmp_path, monkeypatch, capsys
):
    """As where a step was taken that a checker rejects by now."""
    monkeypatch.setattr(
        "nkigym.tuning.verification.check_step", lambda certificate: ["a wrong claim"]
    )
    file = tmp_path / "exported"

    assert main(["export", store, "--what", what, "-o", str(file)]) == 1

    assert not file.exists()
    out, err = capsys.readouterr()
    assert out == ""
    assert "VerificationError: " in err
    assert "certificates: FAILED, step 0, " in err
    assert "a wrong claim" in err


# -- a terminal, a pipe, Ctrl-C --------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_sees_candidates_the_best_and_what_is_left():
    seen = SearchProgress(candidates=1234, best_ns=3000.0, bound_ns=2000.0, seconds=20.0)

    assert line(seen, Budget(seconds=60)) == (
        "1,234 candidates, best 3.0 µs = 1.50 x roofline, 40 s left"
    )
    assert line(seen, Budget(candidates=2000)).endswith("roofline, 766 left")


def test_a_terminal_is_not_written_to_for_every_candidate():
    stream = Terminal()
    progress = Progress(Budget(seconds=60), stream)

    for number in range(100):
        progress(SearchProgress(number, 3.0, 2.0, number / 100))
    progress.close()

    assert 5 <= stream.getvalue().count("candidates") <= 11
    assert stream.getvalue().endswith("\r\033[K")


def test_progress_is_shown_on_a_terminal_and_not_in_a_pipe():
    arguments = [*COMMAND, "tune", f"{HERE}:two", *TWO, "--budget", "40"]

    piped = subprocess.run(arguments, capture_output=True, text=True, check=True)
    lines = subprocess.run([*arguments, "--progress"], capture_output=True, text=True, check=True)
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "wb") as terminal:
        subprocess.run(arguments, stdout=subprocess.DEVNULL, stderr=terminal, check=True)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)

    assert piped.stderr == ""
    assert lines.stderr.splitlines()[0].endswith(" left") and "\r" not in lines.stderr
    assert "candidates, best" in shown


def test_ctrl_c_keeps_what_was_found(tmp_path):
    store = tmp_path / "found.db"
    arguments = [*COMMAND, "tune", f"{HERE}:product", "--spec", "bf16[512,512]", "--spec",
                 "bf16[512,1024]", "--budget", "10min", "--store", str(store)]  # fmt: skip
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs behind & ignore it
    searching = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    signal.signal(signal.SIGINT, before)
    while not has_results(store):
        assert searching.poll() is None
        time.sleep(0.05)
    searching.send_signal(signal.SIGINT)
    out, err = searching.communicate()

    assert searching.returncode == 0, err
    assert "interrupted; this is the best so far" in err
    assert "times as fast" in out
    assert main(["best", str(store)]) == 0


def has_results(file):
    try:
        with Store(file, create=False) as store:
            return any(store.latencies(held.key) for held in store.problems())
    except StoreError:
        return False  # it is being made


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--budget", "0"], "a budget that allows nothing"),
        (["--budget", "soon"], "'soon' is not a budget"),
        (["--strategy", "luck"], "'luck' is none of "),
    ],
)
def test_a_mistake_in_the_options_is_said(options, said, capsys):
    with pytest.raises(SystemExit) as stopped:
        tune(*options)

    assert stopped.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("number", ["0", "-1", "few"])
def test_no_schedules_are_not_asked_for(number, store, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["best", store, "--number", number])

    assert stopped.value.code == 2
    assert (
        f"argument --number: '{number}' is not a whole number of at least 1"
        in capsys.readouterr().err
    )


def test_a_rejection_has_five_lines_and_the_rest_with_verbose(capsys):
    kernel = HERE.parents[3] / "examples" / "beta2" / "softmax.py"
    options = ("tune", f"{kernel}:softmax_kernel", "--spec", "f32[128,60000]", "--budget", "5")

    assert main([*options]) == main([*options, "--verbose"]) == 1

    lines = capsys.readouterr().err.splitlines()
    short, whole = lines[:5], lines[5:]
    assert short[:4] == whole[:4]
    assert short[4] == f"    ({len(whole) - 4} more lines: --verbose)"
    assert whole[4:] == [
        "    got:      shape (128, 60000), float32",
        "    [NKI architecture guide: SBUF size]",
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--nki", "9.9"], "backend 'beta2' does not speak NKI 9.9"),
        (["--target", "gen9"], "unknown target 'gen9'"),
        (["--spec", "x=f32[512,256]"], "no spec for y"),
        (["--spec", "x=f32[512,", "--spec", "y=f32[2]"], "'f32[512,' is not a spec"),
        (["-o", "/no/such/folder/k.py"], "-o /no/such/folder/k.py: no such folder"),
        (["--min-depth", "5", "--max-depth", "2"], "no candidate can meet these constraints"),
        (["--engines", "tensor"], "these constraints contradict the kernel"),
        (["--engines", "pool"], "'pool' is not an engine"),
        (["--num-targets", "0"], "num_targets 0 leaves nothing to search"),
        (["--compare", "luck"], "'luck' is not a strategy"),
        (["--budget", "60s", "--job-time", "9s"], f"the budget of {HERE}:two contradicts"),
    ],
)
def test_a_mistake_in_the_options_is_exit_code_2(options, said, capsys):
    assert exit_code(*options) == 2

    assert capsys.readouterr().err.startswith(f"nkigym: {said}")


def test_a_file_of_others_is_not_written_over(tmp_path, capsys):
    file = tmp_path / "mine.py"
    file.write_text("print('mine')\n", "utf-8")

    assert exit_code("--budget", "5", "-o", str(file)) == 2

    assert "was not written by nkigym" in capsys.readouterr().err
    assert file.read_text("utf-8") == "print('mine')\n"
    assert tune("--budget", "5", "-o", str(file), "--force") == 0


def test_a_pipe_stays_one_and_gets_the_winner(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    assert tune("--budget", "5", "-o", str(pipe)) == 0

    assert os.read(reader, 1 << 16).startswith(b"# Tuned by nkigym")
    assert pipe.is_fifo()


@pytest.mark.parametrize("command", ["show", "best", "replay", "export"])
def test_a_store_that_is_not_there_or_damaged_is_said(command, tmp_path, capsys):
    file = tmp_path / "found.db"

    for message in ("store not found:", "is damaged or not a store of nkigym"):
        with pytest.raises(SystemExit, match="2"):
            main([command, str(file)])
        assert message in capsys.readouterr().err
        file.write_text("not a store\n" * 100, "utf-8")


def test_a_store_that_cannot_be_written_is_a_mistake_in_the_options(capsys):
    with pytest.raises(SystemExit, match="2"):
        tune("--store", "/no/such/folder/found")

    assert "nkigym: /no/such/folder/found cannot be" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["best", "measure", "replay", "export"])
def test_a_kernel_that_a_store_does_not_hold_is_said(command, store, capsys):
    with pytest.raises(SystemExit, match="2"):
        main([command, store, "--kernel", "three"])

    err = capsys.readouterr().err
    assert "contains no such kernel" in err
    assert "the store has two (sha256:" in err


def test_a_damaged_store_ends_tuning_before_it_begins(tmp_path, capsys):
    file = tmp_path / "found.db"
    file.write_text("not a store\n" * 100, "utf-8")

    with pytest.raises(SystemExit, match="2"):
        tune("--budget", "5", "--store", str(file))

    assert "left as it is" in capsys.readouterr().err
    assert file.read_text("utf-8") == "not a store\n" * 100
