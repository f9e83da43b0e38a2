"""The sweep: what it drops, what it compiles, what it stores."""

import json
import math
import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from shutil import which

import pytest
from packages.tokenplan.tests.tile_ir import kernels

from neuroncore.confinement.supervision import CONFINED
from tokenplan.cli import main
from tokenplan.executors import Failed, InProcess, Limits, WorkerLost, pool, ray_cluster
from tokenplan.tile_ir import TileKernel, compiler, orders_of
from tokenplan.tile_ir import candidates as candidates_module
from tokenplan.tile_ir.candidates import Candidate, candidate, candidates
from tokenplan.tile_ir.results import Funnel, Result, Store, SweepError
from tokenplan.tile_ir.sweep import PRELOAD, Sweep, sweep

COMMAND = str(Path(sys.executable).with_name("tokenplan"))
SPACE = {"rows": (16, 32, 48, 64), "alignment": (16, 8), "allow_tma": (True,)}


def make(rows=64, alignment=16, allow_tma=True, name="kernel"):
    """Exponentials of tiles; 48 rows are not a power of two."""
    kernel = TileKernel(name)
    a, b = kernel.array("a", (1024, 64), alignment=alignment), kernel.array("b", (1024, 64))
    with kernel.loop("k", 1024 // rows) as k:
        x = kernel.load(a, (k, 0), (rows, 64), hints={"allow_tma": allow_tma})
        kernel.store(b, (k, 0), kernel.compute("exp2", x))
    return kernel


def test_candidates_are_dropped_before_they_are_compiled(tileiras, tmp_path):
    space = {**SPACE, "name": ("one", "two")}
    funnel = sweep(make, space, Store(tmp_path / "s.sqlite")).funnel

    assert (funnel.candidates, funnel.illegal, funnel.slow_path) == (16, 4, 6)
    assert (funnel.duplicate, funnel.cached, funnel.compiled, funnel.failed) == (3, 0, 3, 0)
    assert "16 candidates -> 4 illegal -> 6 slow path -> 3 duplicate" in funnel.text()


def clustered(ctas):
    kernel = TileKernel("clustered", num_cta_in_cga=ctas)
    a = kernel.array("a", (64, 64))
    kernel.store(a, (0, 0), kernel.full((64, 64), 1.0))
    return kernel


def test_candidates_that_differ_in_a_hint_without_effect_are_compiled_once(tileiras, tmp_path):
    funnel = sweep(clustered, {"ctas": (2, 4)}, Store(tmp_path / "s.sqlite"), target="sm_80").funnel

    assert (funnel.duplicate, funnel.compiled) == (1, 1)
    assert funnel.reasons == {"ignored: the hint num_cta_in_cga, which sm_80 does not have": 2}


def test_an_analysis_that_fails_is_an_error_of_the_package_and_other_candidates_go_on(
    tileiras, tmp_path, monkeypatch, caplog
):
    def failing(described, **options):
        if described.hints["num_cta_in_cga"] == 4:
            raise RuntimeError("no answer")
        return orders_of(described, **options)

    monkeypatch.setattr(candidates_module, "orders_of", failing)
    funnel = sweep(clustered, {"ctas": (2, 4)}, Store(tmp_path / "s.sqlite")).funnel

    assert (funnel.failed, funnel.compiled) == (1, 1)
    raised = "the analysis raises RuntimeError: no answer"
    assert [*funnel.reasons] == [f"internal error: {{'ctas': 4}}: {raised}"]
    assert "in failing\n" in caplog.text and f"InternalError: {raised}" in caplog.text


def test_a_choice_without_a_kernel_makes_no_store(tileiras, tmp_path, capsys):
    """Its reason is printed once."""
    store = tmp_path / "s.sqlite"
    words = ["sweep", f"{__file__}:make", "--store", str(store), "--set"]
    with pytest.raises(SystemExit, match="2"):
        main([*words, "nosuch=1"])
    assert not store.exists() and "nosuch" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main([*words, "rows=63"])
    assert capsys.readouterr().err.count("powers of two") == 1


def test_a_second_sweep_compiles_nothing_under_other_names_and_lines(tileiras, tmp_path):
    store = Store(tmp_path / "s.sqlite")
    first = sweep(make, {"rows": (16, 32)}, store)

    def renamed(rows):

        return make(rows, name="other")  # another line, another name

    second = sweep(renamed, {"rows": (16, 32)}, Store(tmp_path / "s.sqlite"))
    assert (first.funnel.compiled, second.funnel.cached, second.funnel.compiled) == (2, 2, 0)
    assert second.best()[1] == first.best()[1]


EXECUTORS = {
    "pool": lambda: pool(2, preload=PRELOAD),
    "ray": lambda: ray_cluster("local", 2, preload=PRELOAD),
}


def swept(folder, executor=None):
    space = {"rows": (16, 1024, 512, 2, 1), "columns": (4,)}
    store = Store(folder / "s.sqlite")
    return sweep(narrow, space, store, executor, ordering="exhaustive", most=3)


@pytest.fixture(scope="module")
def one(tileiras, tmp_path_factory):
    return swept(tmp_path_factory.mktemp("one"))


@pytest.mark.parametrize("name", EXECUTORS)
def test_a_sweep_on_workers_has_the_table_of_one_process(name, one, tmp_path):
    if name == "ray":
        pytest.importorskip("ray")
    many = swept(tmp_path, EXECUTORS[name]())

    assert one.funnel.compiled == 3
    assert counts(many) == counts(one)
    assert table(many) == table(one)


def counts(found):
    """The funnel without its times."""
    return {name: n for name, n in asdict(found.funnel).items() if "seconds" not in name}


def table(found):
    return [(made.parameters, replace(result, seconds=0)) for made, result in found.evaluated]


def narrow(rows, columns):
    """A copy of 2,048 rows."""
    kernel = TileKernel("narrow")
    a, b = kernel.array("a", (2048, columns)), kernel.array("b", (2048, columns))
    with kernel.loop("k", 2048 // rows) as k:
        kernel.store(b, (k, 0), kernel.load(a, (k, 0), (rows, columns)))
    return kernel


def test_results_have_the_version_of_the_compiler(tileiras, tmp_path):
    path, version = tmp_path / "s.sqlite", compiler.version()
    sweep(make, {"rows": (16,)}, Store(path))
    assert Store(path).versions() == {version: 1}

    with sqlite3.connect(path) as old:  # as earlier releases wrote it
        old.execute("ALTER TABLE results DROP COLUMN compiler")
    again = sweep(make, {"rows": (16, 32)}, Store(path))

    assert (again.funnel.cached, again.funnel.compiled) == (1, 1)
    assert {result.compiler for _, result in again.evaluated} == {version}
    assert Store(path).versions() == {"": 1, version: 1}


def test_a_default_hint_does_not_change_the_key_and_another_does(tileiras):
    keys = {candidate(make, {"allow_tma": on}, "sm_90").key for on in (True, False)}
    plain = candidate(lambda: make(), {}, "sm_90").key

    assert len(keys) == 2 and plain in keys


def test_what_fails_and_what_takes_too_long_is_a_result(tileiras, tmp_path):
    found = sweep(make, {"rows": (16,)}, Store(tmp_path / "s.sqlite"), limit=0.001)

    assert (found.funnel.failed, found.funnel.compiled) == (1, 0)
    assert "took longer than 0.001 s" in found.evaluated[0][1].error
    with pytest.raises(SweepError, match="no candidate was compiled"):
        found.best()


def test_a_job_that_ends_at_its_limit_is_a_result_that_the_next_sweep_tries_again(
    tileiras, tmp_path, monkeypatch
):
    store = Store(tmp_path / "s.sqlite")
    with monkeypatch.context() as slow:
        slow.setattr(compiler, "compile_bytecode", lambda *_, **__: time.sleep(60))
        found = sweep(make, {"rows": (16,)}, store, InProcess(Limits(seconds=0.2)))

    assert (found.funnel.failed, found.funnel.compiled) == (1, 0)
    assert found.evaluated[0][1].error == "time: stopped after 0.2 s, its limit"
    assert sweep(make, {"rows": (16,)}, store).funnel.compiled == 1


class Losing(InProcess):
    """Loses two workers in its first job."""

    def run(self, watch, idle=None):
        key = self._queue.popleft().key
        for _ in range(2):
            watch(WorkerLost(key, "killed by SIGKILL", "worker 1"))
        watch(Failed(key, "poisoned", "ended 2 workers", "", "worker 2", 0.0))
        super().run(watch)


def test_a_lost_worker_is_reported_and_its_job_fails_alone(tileiras, tmp_path):
    found = sweep(make, {"rows": (16, 32)}, Store(tmp_path / "s.sqlite"), Losing())

    assert (found.funnel.failed, found.funnel.compiled) == (1, 1)
    assert found.funnel.lost == ["worker 1: killed by SIGKILL"] * 2


def test_a_used_budget_leaves_candidates_that_are_counted(tileiras, tmp_path):
    found = sweep(make, {"rows": (16, 32)}, Store(tmp_path / "s.sqlite"), budget=0)

    assert found.funnel.not_evaluated == 2 and not found.evaluated


RUN_THIS_FILE = (
    "import importlib.util, sys, os, signal\n"
    f"spec = importlib.util.spec_from_file_location('t', {__file__!r})\n"
    "t = importlib.util.module_from_spec(spec); spec.loader.exec_module(t)\n"
)


def environment():
    return os.environ | {"PYTHONPATH": str(Path(__file__).parents[4])}


@pytest.mark.parametrize("executor", ["t.InProcess()", "t.pool(2)"])
def test_a_sweep_that_was_killed_goes_on_from_its_store(executor, tileiras, tmp_path):
    store = tmp_path / "s.sqlite"
    code = RUN_THIS_FILE + (
        f"store = t.Store({str(store)!r}); add = store.add\n"
        "def once(*found): add(*found); os.kill(os.getpid(), signal.SIGKILL)\n"
        "store.add = once\n"
        "t.sweep(t.make, {'rows': (16, 32)}, store, "
        f"{executor})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), check=False)
    again = sweep(make, {"rows": (16, 32)}, Store(store)).funnel

    assert done.returncode == -signal.SIGKILL
    assert (again.cached, again.compiled) == (1, 1)


@pytest.mark.skipif(which("setpriv") is None, reason="setpriv of util-linux is not installed")
def test_the_compiler_ends_with_a_sweep_that_is_killed(tmp_path):
    """The next sweep with the store removes its temporary files; a running one keeps its folder."""
    store, started, script = tmp_path / "s.sqlite", tmp_path / "pid", tmp_path / "tileiras"
    script.write_text(f"#!/bin/sh\necho $$ > {started}.new; mv {started}.new {started}\n"
                      "exec sleep 60\n")  # fmt: skip
    script.chmod(0o755)
    code = RUN_THIS_FILE + (
        "from pathlib import Path\n"
        f"t.compiler.tool = lambda name: Path({str(script)!r})\n"
        "t.compiler.version = lambda: '13.5.37'\n"
        f"t.sweep(t.make, {{'rows': (16,)}}, t.Store(Path({str(store)!r})))\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], env=environment()) as running:
        wait_until(started.exists)
        with Store(store).temporary_folder():
            assert len([*tmp_path.glob(".s.sqlite-*")]) == 2
        running.kill()
    pid = int(started.read_text())

    wait_until(lambda: not Path(f"/proc/{pid}").exists() or "Z" in state(pid))
    assert len([*tmp_path.glob(".s.sqlite-*/tokenplan-*")]) == 1
    with Store(store).temporary_folder():
        assert [*tmp_path.glob(".s.sqlite-*/tokenplan-*")] == []
    assert [*tmp_path.glob(".s.sqlite-*")] == []


def wait_until(is_so):
    ends = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.05)


def state(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_store_without_room_is_an_error_with_a_cure(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    assert store.versions() == {}
    store.database = sqlite3.connect(f"file:{tmp_path / 's.sqlite'}?mode=ro", uri=True)

    with pytest.raises(SweepError, match=r"s\.sqlite can only be read\n"):
        store.add(Result("key", 1.0), b"")
    with pytest.raises(SweepError, match="cannot be opened, read or written"):
        Store(tmp_path).find("key")
    (tmp_path / "other").write_text("no table " * 100)
    with pytest.raises(SweepError, match="is damaged or not a store"):
        Store(tmp_path / "other").find("key")


def test_the_command_prints_the_funnel_and_the_best(tileiras, tmp_path, capsys):
    name, store = f"{__file__}:make", str(tmp_path / "s.sqlite")

    words = ["sweep", name, "--set", "rows=16,32", "--store", store, "--jobs", "2"]
    assert main(words) == 0
    shown, version = capsys.readouterr().out, compiler.version()
    assert "2 candidates -> 0 illegal" in shown and f"tileiras {version}" in shown
    assert f"by version of tileiras: 2 of {version}" in shown

    assert main([*words, "--output-format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["curve"][-1]["cost"] == found["candidates"][found["best"]]["cost"]
    assert found["curve"][-1]["seconds"] == sum(made["seconds"] for made in found["candidates"])


def test_the_confined_command_compiles(tileiras, tmp_path):
    """A confined process may set no signal of its parent's end."""
    words = [COMMAND, "sweep", f"{__file__}:make", "--set", "rows=16"]
    env = {name: value for name, value in environment().items() if name != CONFINED}
    done = subprocess.run([*words, "--store", str(tmp_path / "s.sqlite")], env=env, check=False,
                          capture_output=True, text=True)  # fmt: skip
    assert (done.returncode, "1 compiled" in done.stdout) == (0, True), done.stderr


def test_the_curve_is_the_seconds_and_the_least_cost_after_each_compilation():
    made = Candidate({}, b"", "", steps=4, promise=0, is_slow=False)
    failed = Result("", 1.0, error="rejected")
    results = [failed, *(Result("", 2.0, instructions=n) for n in (32, 80, 16))]
    curve = Sweep(tuple((made, result) for result in results), Funnel()).curve()

    assert curve == [(1, math.inf), (3, 8), (5, 8), (7, 4)]  # 16 blocks fit in


def test_a_compiler_that_crashes_or_hangs_is_named(tmp_path, monkeypatch):
    script = tmp_path / "tileiras"
    monkeypatch.setattr(compiler, "tool", lambda name: script)
    for body, message, seconds in (
        ("kill -SEGV $$", "crashed with signal 11", 60),
        ("sleep 99", "took longer", 0.5),
    ):
        script.write_text(f"#!/bin/sh\n{body}\n")
        script.chmod(0o755)
        with pytest.raises(compiler.CompilerError, match=message) as caught:
            compiler.compile_bytecode(
                kernels.bytes_of(kernels.recurrence()), "sm_90", seconds=seconds
            )
        assert "test_sweep.py" not in str(caught.value)  # no line of the caller's


def test_a_compiler_that_is_not_executable_is_named(tmp_path, monkeypatch):
    (tmp_path / "tileiras").write_text("")
    monkeypatch.setattr(compiler, "tool", lambda name: tmp_path / name)
    with pytest.raises(compiler.CompilerError, match="tileiras cannot be run") as caught:
        compiler.compile_bytecode(b"", "sm_90")
    assert not isinstance(caught.value, compiler.RejectionError)


def test_every_illegal_choice_is_counted(tileiras):
    funnel = Funnel()

    assert list(candidates(make, {"rows": (48, 24)}, "sm_90", funnel)) == []
    assert funnel.illegal == 2


def copied(rows=8, step=8, blocks=1, dtype="f32"):
    kernel = TileKernel("copied")
    kernel.grid("g", 1)
    kernel.grid("h", blocks)
    a = kernel.array("a", (rows, 64), dtype)
    kernel.store(a, (0, 0), kernel.load(a, (0, 0), (8, 8)), traversal=(step, 8))
    return kernel


@pytest.mark.parametrize(
    ("name", "good", "value", "reason"),
    [
        ("rows", 8, 2**63, "an extent or stride is not less than 2^63"),
        ("step", 8, 2**31, "less than 2^31"),
        ("blocks", 1, 65_536, "grid dimension h has 1 to 65,535 blocks"),
        ("dtype", "f32", "f8e8m0fnu", "array a: sm_90 does not have f8e8m0fnu"),
    ],
)
def test_a_choice_beyond_a_limit_is_one_illegal_candidate(tileiras, name, good, value, reason):
    funnel = Funnel()
    found = list(candidates(copied, {name: (good, value)}, "sm_90", funnel))

    assert [choice.parameters for choice in found] == [{name: good}]
    assert (funnel.illegal, funnel.failed) == (1, 0)
    assert any(reason in text for text in funnel.reasons)


def test_reasons_of_illegal_candidates_are_counted(tileiras):
    funnel = Funnel()
    list(candidates(make, {"rows": (48, 64), "alignment": (3, 16)}, "sm_90", funnel))

    assert funnel.illegal == 3
    assert sum(funnel.reasons.values()) == 3
    assert any("aligned to a power of two" in reason for reason in funnel.reasons)


def divided(rows):
    return make(64 // rows)


def looked_up(rows):
    return make({16: 16}[rows])


def nothing(rows=64):
    return None


def without_parameters():
    return make()


@pytest.mark.parametrize(
    ("function", "words", "code", "messages"),
    [
        ("make", ["nosuch=1"], 2, ["--set does not fit the function", "'nosuch'", "rows, align"]),
        ("without_parameters", ["rows=1"], 2, ["--set does not fit the function", "'rows'"]),
        ("divided", [], 2, ["--set does not fit the function", "'rows'"]),
        ("make", ["rows=x"], 1, ["the kernel for rows='x' raises TypeError"]),
        ("divided", ["rows=16,0"], 1, ["rows=0 raises ZeroDivisionError", "test_sweep.py:"]),
        ("looked_up", ["rows=3"], 1, ["the kernel for rows=3 raises KeyError: 3"]),
        ("nothing", ["rows=3"], 1, ["returns no kernel for rows=3", "TileKernel"]),
    ],
)
def test_a_parameter_that_the_function_cannot_take_is_named(
    function, words, code, messages, tileiras, tmp_path, capsys
):
    words = [word for text in words for word in ("--set", text)]
    store = ["--store", str(tmp_path / "s.sqlite")]
    try:
        found = main(["sweep", f"{__file__}:{function}", *words, *store])
    except SystemExit as ended:
        found = ended.code
    shown = capsys.readouterr().err
    assert found == code and "Traceback" not in shown
    assert [message for message in messages if message not in shown] == []


def test_values_of_a_parameter_that_is_set_twice_are_all_tried(tileiras, tmp_path, capsys):
    words = ["--set", "rows=16", "--set", "rows=48", "--set", "rows=24"]  # two are illegal
    store = ["--store", str(tmp_path / "s.sqlite")]
    assert main(["sweep", f"{__file__}:make", *words, *store]) == 0
    assert "3 candidates -> 2 illegal" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "is_final"),
    [("echo wrong operand; exit 1", True), ("kill -SEGV $$", False), ("sleep 9", False),
     ("echo write: No space left on device; exit 1", False)],
)  # fmt: skip
def test_only_a_rejection_of_the_bytecode_is_stored(tmp_path, monkeypatch, line, is_final):
    script, store = tmp_path / "tileiras", Store(tmp_path / "s.sqlite")
    script.write_text(f"#!/bin/sh\n{line}\n")
    script.chmod(0o755)
    monkeypatch.setattr(compiler, "tool", lambda name: script)
    monkeypatch.setattr(compiler, "version", lambda: "13.5.37")
    found = sweep(make, {"rows": (16,)}, store, limit=0.5)

    (reason,) = found.funnel.reasons
    assert found.funnel.failed == 1 and reason.startswith("failed: rows=16: ")
    assert not line.startswith("echo wrong") or reason.endswith(
        "tileiras rejected the bytecode for sm_90: wrong operand"
    )
    assert sum(store.versions().values()) == int(is_final)


def test_sums_in_tensor_memory_do_not_spill(tileiras):
    def product(rows):
        kernel = TileKernel("product")
        a, b, c = (kernel.array(name, (rows, rows)) for name in "abc")
        left, right = (kernel.load(x, (0, 0), (rows, rows)) for x in (a, b))
        kernel.store(c, (0, 0), kernel.compute("mma", left, right, kernel.full((rows, rows), 0.0)))
        return kernel

    def promise(rows, target):
        return candidate(product, {"rows": rows}, target).promise

    assert promise(128, "sm_90") == promise(128, "sm_100")
    assert promise(256, "sm_90") > promise(256, "sm_100") == promise(256, "sm_110")
    assert promise(256, "sm_120") == promise(256, "sm_90")
