"""`nkigym measure`: the fastest schedules of a store by each runner."""

import contextlib
import json
import re
import shlex
from pathlib import Path
from statistics import median

import pytest
from members import ROOT
from packages.nkigym.tests import tuning_kernels

from neuroncore.program import parse_program
from nkigym import tune
from nkigym.cli import main
from nkigym.runners import Interpreter, Measurement
from nkigym.store import Store

SLOW_S = 1.0
"""Of a compilation by the stand-in that is slow."""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "found.db"
    tune(tuning_kernels.softmax, "f32[256,128]", budget=20, store=path)
    return str(path)


def test_the_model_measures_what_it_has_predicted(store, capsys):
    assert main(["measure", store, "--number", "3", "--output-format", "json"]) == 0

    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 3
    assert all(row["p50_ns"] == row["predicted_ns"] for row in rows)


ROWS = """
    {out} = buffer(float32[128, {n}], shared_hbm)
    {x}_tile = buffer(float32[128, {n}], sbuf)
    dma_copy(dst={x}_tile[:, :], src={x}[:, :])
    tensor_scalar(dst={x}_tile[:, :], data={x}_tile[:, :], operand0=2.0, op0=multiply)
    dma_copy(dst={out}[:, :], src={x}_tile[:, :])"""


def test_a_schedule_is_measured_from_the_kernel_that_it_begins_with(tmp_path, capsys):
    parts = [ROWS.format(out="o", x="x", n=64), ROWS.format(out="p", x="y", n=512)]
    store = tmp_path / "found.db"
    for number, body in enumerate(map("".join, (parts, parts[::-1]))):
        head = 'program("trn2", "0.7")\ndef f(x: float32[128, 64], y: float32[128, 512]):'
        tune(parse_program(f"{head}{body}\n    return o, p"), budget=40, strategy="random",
            seed=number, store=store)  # fmt: skip
    with Store(store) as opened:
        assert len(opened.problems()) == 1

    assert main(["measure", str(store), "--number", "99", "--output-format", "json"]) == 0

    rows = json.loads(capsys.readouterr().out)
    assert len({row["predicted_ns"] for row in rows}) > 1
    assert [row["p50_ns"] for row in rows] == [row["predicted_ns"] for row in rows]
    assert [row["key"] for row in rows] == [f"{n}" for n in range(1, len(rows) + 1)]


@pytest.mark.parametrize("command", ["best", "measure", "replay", "export"])
def test_a_kernel_without_a_result_is_reported(command, store, tmp_path, capsys):
    with Store(store) as opened, Store(tmp_path / "new.db") as new:
        (problem,) = opened.problems()
        new.add(problem)

    assert main([command, str(tmp_path / "new.db")]) == 1
    assert "nothing was found for softmax yet" in capsys.readouterr().err


def slower(folder):
    """A file of constants with which transfers take longer."""
    path = folder / "slower.json"
    path.write_text(json.dumps({"constants": {"DMA_START": {"trn2": 2600}}}))
    return str(path)


def measured(store, capsys, *options):
    assert main(["measure", store, "--output-format", "json", *options]) == 0
    return {row["key"]: row["p50_ns"] for row in json.loads(capsys.readouterr().out)}


def test_constants_that_were_fitted_estimate_what_was_measured(store, tmp_path, capsys):
    fitted = str(tmp_path / "fitted.json")

    wanted = measured(store, capsys, "--constants", slower(tmp_path), "--fit", fitted)
    first, again = (measured(store, capsys, *w) for w in ((), ("--constants", fitted)))

    errors = [median(abs(found[k] / wanted[k] - 1) for k in wanted) for found in (first, again)]
    assert errors[0] > 0.05 > 0.02 > errors[1]


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("--constants", "none.json"), "none.json"),
        (("--runner", "interpreter", "--constants"), "--constants is for estimates"),
        (("--runner", "interpreter", "--fit", "none.json"), "--fit needs times"),
        (("--fit", "no/such/folder/none.json"), "--fit"),
    ],
)
def test_constants_that_cannot_be_used_are_rejected_before_a_measurement(
    options, what, store, tmp_path, monkeypatch, capsys
):
    more = (slower(tmp_path),) if options[-1] == "--constants" else ()
    monkeypatch.setattr("nkigym.cli.stored.stored_task", None)  # which a measurement needs

    with pytest.raises(SystemExit, match="2"):
        main(["measure", store, *options, *more])
    assert what in capsys.readouterr().err


def test_values_are_compared_here(store, capsys):
    assert main(["measure", store, "--runner", "interpreter"]) == 0
    assert capsys.readouterr().out.count("  ok\n") == 4

    assert main(["show", store]) == 0
    assert "interpreter: 4 measured" in capsys.readouterr().out


def test_an_absent_device_names_what_is_missing(store, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["measure", store, "--runner", "neuron"])
    assert "the package nki is not installed" in capsys.readouterr().err


def test_a_folder_is_not_a_store(tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["measure", str(tmp_path)])
    message = capsys.readouterr().err
    assert f"{tmp_path} is a folder" in message
    assert "no room" not in message


@pytest.mark.parametrize("time", ["100", "x", "0s"])
def test_the_limit_of_a_compilation_has_a_unit(time, store, capsys):
    with pytest.raises(SystemExit):
        main(["measure", store, "--compile-time", time])
    assert f"{time!r} is not a time, such as 90s or 2min" in capsys.readouterr().err


def test_a_run_that_ends_early_has_stored_what_it_has_measured(store, monkeypatch):
    watched = []

    def second_fails(self, case):
        watched.append(case.key)
        if len(watched) == 2:
            raise KeyboardInterrupt
        return Measurement(case.key, "ok")

    monkeypatch.setattr(Interpreter, "_measure", second_fails)
    with contextlib.suppress(KeyboardInterrupt, SystemExit):
        main(["measure", store, "--runner", "interpreter"])

    with Store(store, create=False) as opened:
        (problem,) = opened.problems()
        run = opened.runs(problem.key)[-1]
    assert [row["key"] for row in run["measurements"]] == watched[:1]


SMALLER = {"1024": "256", "4096": "512", "512,": "128,"}
"""Sizes of docs/device.md, and sizes that compute the same in less time."""


@pytest.mark.thorough
def test_the_commands_of_docs_device_with_stand_ins(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "fake_neuron"))
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/device.md").read_text()
    for size, smaller in SMALLER.items():
        text = text.replace(size, smaller)
    for language, file in {"python": "mlp.py", "toml": "sweep.toml"}.items():
        _, _, block = text.partition(f"```{language}\n")
        Path(file).write_text(block.partition("```")[0])
    Path("neuron0").touch()
    options = {"tune": ["--budget", "20"], "measure": ["--devices", "."], "sweep": []}
    commands = [shlex.split(line, comments=True) for line in re.findall(r"\$ nkigym (.*)", text)]

    ends = {
        " ".join(words): main([*words, *options[words[0]]])
        for words in commands
        if "--runner" not in words or words[0] == "measure"  # the other one is tested below
    }

    assert {*ends.values()} == {0} and len(ends) == 6
    made = {file.name for file in tmp_path.iterdir()}
    assert made >= {"found.db", "sweep.db", "fitted.json", "artefacts"}


def test_the_steps_of_docs_device_with_stand_ins(store, tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "fake_neuron"))
    (tmp_path / "neuron0").touch()
    words = (
        "measure", store, "--runner", "neuron", "--number", "2", "--compile-time", "1min",
        "--devices", str(tmp_path), "--artefacts", str(tmp_path / "artefacts"),
    )  # fmt: skip

    assert main(words) == 0
    first = capsys.readouterr().out
    assert main(words) == 0
    again = capsys.readouterr().out

    assert first.count("  ok") == again.count("  ok") == 2
    assert "2 compiled in" in first and "compiled in" not in again
    monkeypatch.setenv("FAKE_NEURON", "wrong values")
    assert main(words) == 1
    assert capsys.readouterr().out.count("wrong: output 0 differs in 1 of 32,768 elements") == 2


def tuned_with(capsys, *options):
    kernel = f"{tuning_kernels.__file__}:softmax"
    words = ("tune", kernel, "--spec", "f32[256,128]", "--budget", "60", "--output-format", "json")
    assert main([*words, *options]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_best_is_measured_while_the_search_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "fake_neuron"))
    (tmp_path / "neuron0").touch()

    found = tuned_with(
        capsys, "--runner", "neuron", "--devices", str(tmp_path), "--artefacts", str(tmp_path / "a")
    )

    measured, report = found["measured"], found["report"]
    by_key = {row["key"]: row for row in measured["results"]}
    assert {row["status"] for row in by_key.values()} == {"ok"}
    assert all(row["p50_ns"] == 10_000 and row["compile_s"] > 0 for row in by_key.values())
    assert by_key["start"]["predicted_ns"] == report["root_ns"]
    assert min(row["predicted_ns"] for row in by_key.values()) == report["best_ns"]
    assert 0 <= measured["hidden_s"] <= measured["spent_s"]


def test_a_search_and_its_measurements_by_the_interpreter_are_one_report(capsys):
    alone, found = tuned_with(capsys), tuned_with(capsys, "--runner", "interpreter")

    assert alone["measured"] is None and found["source"] == alone["source"]
    assert {row["status"] for row in found["measured"]["results"]} == {"ok"}


@pytest.mark.parametrize("runner", ["interpreter", "neuron"])
def test_the_best_of_several_searches_is_measured_and_stored(runner, tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "fake_neuron"))
    (tmp_path / "neuron0").touch()
    store = str(tmp_path / "found.db")

    found = tuned_with(
        capsys, "--runner", runner, "--jobs", "2", "--store", store,
        "--devices", str(tmp_path), "--artefacts", str(tmp_path / "a"),
    )  # fmt: skip

    rows = found["measured"]["results"]
    assert {row["status"] for row in rows} == {"ok"}
    assert [row["key"] for row in rows].count("start") == 1
    assert min(row["predicted_ns"] for row in rows) == found["report"]["best_ns"]
    assert {row["key"] for row in stored(store)} == {row["key"] for row in rows}
    assert {row["runner"] for row in stored(store)} == {runner}


def stored(store):
    with Store(store, create=False) as opened:
        (problem,) = opened.problems()
        (run,) = [run for run in opened.runs(problem.key) if "measurements" in run]
    return run["measurements"]


def test_compilation_is_hidden_by_the_search_and_by_other_compilations(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "fake_neuron"))
    monkeypatch.setenv("FAKE_NEURON", "compiler is slow")
    (tmp_path / "neuron0").touch()
    device = ("--runner", "neuron", "--devices", str(tmp_path))
    store, artefacts = str(tmp_path / "found.db"), str(tmp_path / "a")

    searched = tuned_with(
        capsys, *device, "--artefacts", artefacts, "--store", store, "--budget", "12s"
    )
    monkeypatch.setenv("FAKE_NEURON", "compiler waits for another")
    words = ("measure", store, *device, "--artefacts", str(tmp_path / "b"), "--jobs", "2")
    assert main([*words, "--number", "4"]) == 0

    assert searched["measured"]["hidden_s"] > 0
    (line,) = [row for row in capsys.readouterr().out.splitlines() if "compiled in" in row]
    (seconds,) = re.findall(r"^4 compiled in ([\d.]+) s, ([\d.]+) s hidden$", line)
    total_s, hidden_s = map(float, seconds)
    assert total_s >= 4 * SLOW_S and hidden_s > 0
