"""The device runner, against a stand-in for the vendor's packages and device files."""

import sys
from pathlib import Path

import numpy as np
import pytest
from packages.nkigym.tests import tuning_kernels
from packages.tokenplan.tests.processes import pass_limits

from neuroncore.commands.files import OutputError
from neuroncore.commands.folders import LOCK, new_folder
from nkigym.baseline import baseline_kernel
from nkigym.runners import Interpreter, Neuron, NeuronError, Timeline, case_of, cores
from nkigym.runners.neuron_installation import visible_cores
from nkigym.runners.neuron_processes import NEFF, VERSIONS_FILE
from nkigym.runners.protocol import wrong_output

TWO = baseline_kernel(tuning_kernels.two, "f32[128,64]", "f32[128,64]")


@pytest.fixture
def runner(vendor, devices, tmp_path):
    return Neuron(
        "trn2", tmp_path / "artefacts", compile_limit_s=600, run_limit_s=600, devices=devices,
        repetitions=20,
    )  # fmt: skip


def measured(runner, *programs, root=TWO):
    found = []
    cases = [case_of(f"{n}", root, p, 10.0 * n) for n, p in enumerate(programs)]
    runner.measure(cases, found.append)
    return found


def test_a_kernel_is_compiled_run_and_compared(runner):
    (found,) = measured(runner, TWO)

    assert (found.status, found.what) == ("ok", "")
    assert (found.p50_ns, len(found.times_ns)) == (10_000, 20)
    assert found.p99_ns > 10_000 and max(found.times_ns) == 500_000
    assert found.compile_s > 0 and not found.is_cached


def test_what_was_compiled_is_kept_by_content(runner):
    measured(runner, TWO)

    (found,) = measured(runner, TWO)

    assert found.status == "ok" and found.is_cached
    (folder,) = runner.artefacts.iterdir()
    assert {"file.neff", "kernel.py", "log.txt"} <= {file.name for file in folder.iterdir()}
    assert "compiling kernel for trn2" in (folder / "log.txt").read_text()


def test_programs_that_differ_in_names_alone_are_compiled_once(runner):
    def renamed(first, second):
        return second + first, second * first

    other = baseline_kernel(renamed, "f32[128,64]", "f32[128,64]")
    same = baseline_kernel(lambda p, q: (p + q, p * q), "f32[128,64]", "f32[128,64]")
    found = measured(runner, TWO, same, other)

    assert {each.key: each.is_cached for each in found} == {"0": False, "1": True, "2": False}
    assert {each.status for each in found} == {"ok"}
    assert len([*runner.artefacts.iterdir()]) == 2


def test_programs_that_wait_for_one_compilation_fail_with_it(runner, monkeypatch):
    monkeypatch.setenv("FAKE_NEURON", "compiler rejects")

    found = measured(runner, TWO, TWO)

    assert sorted((each.key, each.status) for each in found) == [("0", "error"), ("1", "error")]


def test_no_vendor_module_is_imported_here(runner):
    measured(runner, TWO)

    assert not {"nki", "neuronxcc", "nkipy"} & sys.modules.keys()


@pytest.mark.parametrize(
    ("fault", "status", "what"),
    [
        (
            "compiler rejects",
            "error",
            "compilation: RuntimeError: ",
        ),
        ("compiler crashes", "poisoned", "compilation: ended 2 workers: killed by SIGABRT"),
        ("no neff", "error", "the compiler has written no file.neff"),
        ("disk is full", "error", "No space left on device"),
        ("runtime crashes", "poisoned", "execution: ended 2 workers: killed by SIGABRT"),
        ("wrong values", "wrong", "output 1 differs in 1 of 8,192 elements, first at [127, 63]"),
        ("wrong dtype", "wrong", "output 0 is float16[128, 64], expected float32[128, 64]"),
        ("too few outputs", "wrong", "1 outputs, expected 2"),
        ("no times", "error", "the runtime reports 0 of 20 times"),
        ("one time", "error", "the runtime reports 1 of 20 times"),
        ("a time less", "error", "the runtime reports 19 of 20 times"),
        ("not a time", "error", "the runtime reports the times [nan] ns"),
        ("endless", "error", "the runtime reports the times [inf] ns"),
        ("negative", "error", "the runtime reports the times [-1000000.0] ns"),
        ("zero", "error", "the runtime reports the times [0.0] ns"),
        ("words", "error", "could not convert string to float"),
        ("no list of outputs", "error", "'NoneType' object is not iterable"),
        ("too many outputs", "wrong", "3 outputs, expected 2"),
        ("no outputs", "wrong", "0 outputs, expected 2"),
        ("wrong shape", "wrong", "output 0 is float32[64, 128], expected float32[128, 64]"),
        ("nan", "wrong", "output 1 differs in 1 of 8,192 elements, first at [127, 63]"),
    ],
)
def test_a_fault_is_a_result_with_its_reason(fault, status, what, runner, monkeypatch):
    monkeypatch.setenv("FAKE_NEURON", fault)

    (found,) = measured(runner, TWO)

    assert found.status == status
    assert what in found.what
    assert list(runner.artefacts.glob("*.*")) == []


def test_the_log_of_the_compiler_is_in_the_result(runner, monkeypatch):
    monkeypatch.setenv("FAKE_NEURON", "compiler rejects")

    (found,) = measured(runner, TWO)

    assert "NCC_EVRF066: not today" in found.log


@pytest.fixture
def hangs(tmp_path, monkeypatch):
    """The limit of a job is over once it hangs."""
    monkeypatch.setenv("FAKE_HANGS", str(tmp_path / "hangs"))
    pass_limits(monkeypatch, (tmp_path / "hangs").exists)


@pytest.mark.parametrize("fault", ["compiler crashes", "compiler hangs"])
def test_the_log_of_a_compiler_that_does_not_end_by_itself_is_in_the_result(
    fault, runner, hangs, monkeypatch
):
    monkeypatch.setenv("FAKE_NEURON", fault)

    (found,) = measured(runner, TWO)

    assert found.status != "ok" and "compiling kernel for trn2" in found.log


@pytest.mark.parametrize("name", ["file.neff", "versions.json"])
def test_an_artefact_without_content_is_compiled_again(name, runner):
    measured(runner, TWO)
    (folder,) = runner.artefacts.iterdir()
    (folder / name).write_text("")

    (found,) = measured(runner, TWO)

    assert found.status == "ok" and not found.is_cached
    assert (folder / name).read_text()


def test_what_a_killed_driver_has_not_finished_is_removed_by_the_next(runner):
    of_killed, of_user = runner.artefacts / "0123.4567.89", runner.artefacts / "a.b.c"
    for folder in (of_killed, of_user):
        folder.mkdir()
    (of_killed / LOCK).touch()

    with new_folder("0123.4567.", runner.artefacts) as of_other:
        measured(runner, TWO)
        assert {*runner.artefacts.glob("*.*")} == {of_user, of_other}


def test_what_another_driver_has_compiled_meanwhile_stays(runner):
    found, case = [], case_of("0", TWO, TWO, 1.0)
    with runner.begin(found.append) as run:
        folder = runner.payload(case).folder
        folder.mkdir()
        run.submit(case)
        (folder / "of another").touch()
        (folder / NEFF).write_text("kernel of another")
        (folder / VERSIONS_FILE).write_text("{}")
        run.finish()

    assert (folder / "of another").exists()
    assert [*runner.artefacts.iterdir()] == [folder]


def test_artefacts_that_are_a_file_are_rejected(vendor, devices, tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(OutputError, match=r"--artefacts .*file"):
        Neuron("trn2", tmp_path / "file", devices=devices)


@pytest.mark.parametrize("fault", ["compiler hangs", "runtime hangs"])
def test_what_hangs_ends_at_its_limit(fault, runner, hangs, monkeypatch):
    monkeypatch.setenv("FAKE_NEURON", fault)

    (found,) = measured(runner, TWO)

    part = "compilation" if "compiler" in fault else "execution"
    assert (found.status, found.what) == ("time", f"{part}: stopped after 600 s, its limit")


def test_the_best_prediction_is_compiled_first(runner, monkeypatch):
    monkeypatch.setenv("FAKE_NEURON", "compiler rejects")
    other = baseline_kernel(tuning_kernels.two, "f32[128,64]", "f32[128,64]", nki="0.6")
    found = []
    cases = [case_of("slow", TWO, TWO, 20.0), case_of("fast", TWO, other, 10.0)]

    runner.measure(cases, found.append)

    assert [(each.key, each.predicted_ns) for each in found] == [("fast", 10.0), ("slow", 20.0)]
    assert runner.hidden_s >= 0


@pytest.mark.parametrize("fault", ["fp8 as int8", "fp8 as void"])
def test_bytes_of_an_8_bit_format_are_viewed_as_it(fault, runner, monkeypatch):
    monkeypatch.setenv("FAKE_NEURON", fault)
    program = baseline_kernel(lambda x: x + x, "float8_e5m2[128,64]")

    (found,) = measured(runner, program, root=program)

    assert (found.status, found.what) == ("ok", "")


def test_versions_that_changed_since_compilation_are_reported(runner, vendor):
    measured(runner, TWO)
    metadata = vendor / "nkipy-0.3.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("0.3", "0.4"))

    (found,) = measured(runner, TWO)

    assert found.status == "error" and "versions disagree" in found.what


def test_an_unknown_nki_version_is_rejected(vendor, devices, tmp_path):
    metadata = vendor / "nki-0.7.1.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("0.7.1", "9.0"))

    with pytest.raises(NeuronError, match=r"NKI 9\.0 is installed"):
        Neuron("trn2", tmp_path / "artefacts", devices=devices)


def test_absent_packages_and_devices_are_reported(tmp_path, devices, request):
    with pytest.raises(NeuronError, match="nki is not installed"):
        Neuron("trn2", tmp_path / "a", devices=devices)
    request.getfixturevalue("vendor")
    with pytest.raises(NeuronError, match="has no device files"):
        Neuron("trn2", tmp_path / "a", devices=tmp_path)


def test_cores_are_counted_from_device_files(tmp_path):
    for n in range(3):
        (tmp_path / f"neuron{n}").touch()

    assert [cores(target, tmp_path) for target in ("trn1", "trn2")] == [6, 24]


def test_cores_that_the_environment_hides_are_left_to_others():
    given = ("", "0-7", "2", "1,4-6", " 3 , 9 ")

    assert [visible_cores(8, each) for each in given] == [
        [*range(8)], [*range(8)], [2], [1, 4, 5, 6], [3]
    ]  # fmt: skip
    for each in ("8", "x", "5-2"):
        with pytest.raises(NeuronError, match="leaves none of the cores"):
            visible_cores(8, each)


def test_a_compiler_may_change_the_folder(vendor, devices, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_NEURON", "compiler changes the folder")
    monkeypatch.chdir(tmp_path)

    (found,) = measured(Neuron("trn2", Path("artefacts"), devices=devices), TWO)

    assert (found.status, found.what) == ("ok", "")


def test_each_process_has_one_core(runner):
    assert [e["NEURON_RT_VISIBLE_CORES"] for e in runner.environments()] == [*"01234567"]


@pytest.mark.parametrize("simulated", [Timeline(), Interpreter()], ids=lambda r: r.name)
def test_the_runners_without_a_device(simulated):
    (found,) = measured(simulated, TWO)

    assert found.status == "ok"
    assert (found.p50_ns is not None) == (simulated.name == "timeline")


def test_the_interpreter_compares_every_output():
    other = baseline_kernel(lambda x, y: (x + y, x * y + 1), "f32[128,64]", "f32[128,64]")

    (found,) = measured(Interpreter(), other)

    assert found.status == "wrong" and found.what.startswith("output 1 differs in ")


def test_nan_and_infinity_are_values():
    program = baseline_kernel(lambda x: x + x, "f32[2,2]")
    case = case_of("a", program, program, 0.0)
    special = np.array([[np.nan, np.inf], [-np.inf, 0]], np.float32)

    case.expected[0][...] = special
    assert wrong_output(case, [special]) is None
    assert wrong_output(case, [np.abs(special)]) is not None
