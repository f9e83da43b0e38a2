"""`nkigym check`: what holds, and what is wrong, by exit code and text."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from packages.nkigym.tests import tuning_kernels

from nkigym import certificate, matmul_root, rewrite_graph, tune
from nkigym.baseline import baseline_kernel
from nkigym.cli import main
from nkigym.tile_rewrites import descend
from nkigym.tiles import print_tiles
from nkigym.transforms import TransformStep, apply, certify

OF = ("--of", f"{tuning_kernels.__file__}:softmax", "--spec", "f32[256,128]")


@pytest.fixture(scope="module")
def tuned():
    return tune(tuning_kernels.softmax, "f32[256,128]", budget=20)


def exit_code(*words):
    try:
        return main(words)
    except SystemExit as stop:
        return stop.code


def check(path, *options):
    return main(["check", str(path), *options])


def test_a_schedule_is_replayed_certified_and_executed(tuned, tmp_path, capsys):
    path = tmp_path / "s.json"
    path.write_text(json.dumps(tuned.schedule))
    assert check(path, *OF) == 0
    assert "certificates: ok" in capsys.readouterr().out

    path.write_text(json.dumps([*tuned.schedule, {"transform": "split", "at": [0], "factor": 7}]))
    assert check(path, *OF) == 1
    assert "split" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("step", "what"),
    [
        ("split", "got 'split'"),
        (None, "got None"),
        ({"transform": "split"}, "needs a transform and where"),
        ({"transform": "split", "at": [-1], "factor": 2}, "statement numbers"),
        ({"transform": "split", "at": [0.5], "factor": 2}, "statement numbers"),
        ({"transform": "split", "at": [0], "factor": float("nan")}, "ints or text"),
    ],
)
def test_a_schedule_with_a_malformed_step_is_not_one(step, what, tuned, tmp_path, capsys):
    path = tmp_path / "s.json"
    path.write_text(json.dumps([*tuned.schedule, step]))

    assert exit_code("check", str(path), *OF) == 2
    message = capsys.readouterr().err
    assert f"step {len(tuned.schedule)} of {path} is malformed" in message
    assert what in message


def test_a_malformed_step_of_tiles_is_named(tmp_path, capsys):
    path, root = tmp_path / "s.json", tmp_path / "t.txt"
    root.write_text(print_tiles(matmul_root(1, 2, 1)))
    path.write_text('[["join", 1]]')

    assert exit_code("check", str(path), "--of", str(root)) == 2
    assert "['join', 1] is not a rewrite of a tile program" in capsys.readouterr().err
    path.write_text('[["join", 0, 1]]')
    assert exit_code("check", str(path), "--of", str(root)) == 1
    assert capsys.readouterr().out.startswith("step 0 cannot be taken\n")


def test_a_mistake_in_a_tile_program_is_in_its_file(tmp_path, capsys):
    file = tmp_path / "t.txt"
    file.write_text(print_tiles(matmul_root(1, 2, 1)).replace("nc_matmul", "matmul"))

    assert check(file) == 1
    assert f"{file}:" in capsys.readouterr().err


def test_specs_of_a_file_that_contains_its_program_are_rejected(tuned, tmp_path, capsys):
    program, certified = tmp_path / "p.txt", tmp_path / "c.json"
    program.write_text(str(tuned.program))
    certified.write_text('{"claims": []}')

    for words in (program,), (program, "--of", program), (certified,):
        assert exit_code("check", *map(str, words), "--spec", "f32[3]") == 2
        assert "expected: no --spec" in capsys.readouterr().err
    assert exit_code("check", str(certified), "--target", "trn2") == 2
    assert "is a certificate, which contains its program" in capsys.readouterr().err


def test_a_tile_certificate(tmp_path, capsys):
    space = rewrite_graph(matmul_root(1, 2, 1))
    text = certificate(space, descend(space)[0]).to_json()
    path = tmp_path / "c.json"
    path.write_text(text)
    assert check(path) == 0

    wrong = json.loads(text)
    wrong["output"] = [0 for _ in wrong["output"]]
    path.write_text(json.dumps(wrong))
    assert check(path, "--output-format", "json") == 1
    assert "other contents than claimed" in capsys.readouterr().out


def test_the_certificate_of_a_step(tmp_path, capsys):
    start = baseline_kernel(lambda a, b: a * b, "f32[512, 512]", "f32[512, 512]")
    cut = apply(start, TransformStep("distribute", (1,), (("cut", 4),)))
    data = certify(cut, TransformStep("join", (3,))).to_json()
    path = tmp_path / "step.json"
    path.write_text(json.dumps(data))
    assert check(path) == 0
    assert capsys.readouterr().out == "4 claims hold in all iterations\n"

    data["claims"][0]["b"]["offset"] = [512, {}]
    path.write_text(json.dumps(data))
    assert check(path) == 1
    assert "overlap at {'row': 1}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "code", "what"),
    [
        (lambda data: data["claims"].clear(), 1, "the step needs other claims"),
        (lambda data: data["claims"].pop(), 1, "the step needs other claims"),
        (lambda data: data.update(claims=[], step={"transform": "nonsense", "at": [0]}), 1,
         "unknown transform nonsense"),
        (lambda data: data.update(step={"transform": "join"}), 2, "needs a transform"),
        (lambda data: data.pop("claims"), 2, "expected: a list 'claims'"),
        (lambda data: data["claims"][0].pop("shape"), 2, "claim 0 of the certificate has no"),
        (lambda data: data["claims"][1].update(shape=[None]), 2,
         "claim 1 of the certificate: a value is malformed"),
        (lambda data: data.update(program=data["program"].replace('"0.7"', '"0."')), 1,
         "NKI 0. is unknown"),
        (lambda data: data.pop("program"), 2, "not a certificate of a step: no program"),
        (lambda data: data.update(program=data["program"] + "  x = = 1\n"), 2, "x = = 1"),
        (lambda data: data.update(program="def f("), 2, ":1:6: not a program"),
    ],
)  # fmt: skip
def test_a_certificate_is_of_its_step_and_program(change, code, what, tmp_path, capsys):
    start = baseline_kernel(lambda a, b: a * b, "f32[512, 512]", "f32[512, 512]")
    cut = apply(start, TransformStep("distribute", (1,), (("cut", 4),)))
    data = certify(cut, TransformStep("join", (3,))).to_json()
    change(data)
    path = tmp_path / "step.json"
    path.write_text(json.dumps(data))

    assert exit_code("check", str(path)) == code
    assert what in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("absent.json", "No such file"),
        ("absent", "No such file"),
        ("absent.txt", "No such file"),
        ("absent.py:f", "no such file"),
        (".", "Is a directory"),
    ],
)
def test_a_file_that_cannot_be_opened_is_a_mistake_in_the_options(name, what, tmp_path, capsys):
    assert exit_code("check", str(tmp_path / name)) == 2
    message = capsys.readouterr().err
    assert message.startswith("nkigym: can't open")
    assert what in message


def test_a_kernel_alone_is_checked_for_its_specs(tuned, tmp_path, capsys):
    source = tmp_path / "k.py"
    source.write_text(tuned.source)

    assert check(f"{source}:softmax", "--spec", "x=f32[256,128]") == 0
    assert "softmax is legal for trn2" in capsys.readouterr().out
    assert exit_code("check", f"{source}:softmax") == 2
    assert "no spec for x" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda text: text.replace("trn2", "trn1"), "its target: trn1, not trn2"),
        (lambda text: text.replace('"0.7"', '"0.6"'), "its NKI version: 0.6, not 0.7"),
        (lambda text: text.replace("return out", "return out, out"), "its number of results: 2"),
        (lambda text: text.replace("out = buffer(float32", "out = buffer(bfloat16"),
         "its result 0: bfloat16[256, 128], not float32[256, 128]"),
        (lambda text: text.replace("(x: float32", "(x: bfloat16"),
         "its parameter 0: bfloat16[256, 128], not float32[256, 128]"),
    ],
)  # fmt: skip
def test_the_part_of_an_interface_that_differs_is_named(change, what, tuned, tmp_path, capsys):
    path = tmp_path / "p.txt"
    path.write_text(change(str(tuned.program)))
    assert path.read_text() != str(tuned.program)

    assert check(path, *OF) == 1
    assert what in capsys.readouterr().out


def test_a_program_and_its_source_are_compared_with_the_function(tuned, tmp_path, capsys):
    program, source = tmp_path / "p.txt", tmp_path / "k.py"
    program.write_text(str(tuned.program))
    source.write_text(tuned.source)

    assert check(program) == 0
    assert check(program, *OF) == 0
    assert check(f"{source}:softmax", *OF) == 0
    assert "every result of softmax equals that of softmax" in capsys.readouterr().out
    wrong = tuned.source.replace("nl.exp", "nl.tanh")
    assert wrong != tuned.source
    source.write_text(wrong)
    assert check(f"{source}:softmax", *OF) == 1


def test_beside_a_vendor_s_package_kernels_are_executed_by_the_interpreter(tuned, tmp_path):
    source = tmp_path / "k.py"
    source.write_text(tuned.source)
    words = [f"{source}:softmax", *OF]
    command = ["-c", "from nkigym.cli import main; raise SystemExit(main())", "check", *words]

    found = [str(Path(tuning_kernels.__file__).with_name("fake_neuron")), *sys.path]
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, found))}
    done = subprocess.run(
        [sys.executable, *command], env=variables, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "every result of softmax equals that of softmax" in done.stdout


@pytest.mark.parametrize(
    ("text", "code", "what"),
    [
        ("{", 2, "is not JSON"),
        ("[]", 2, "is a schedule, which is replayed from its root"),
        ("{}", 2, "not a certificate of a step"),
        *((text, 2, "neither a certificate nor a schedule") for text in ("null", '"x"', "3")),
    ],
)
def test_a_file_that_cannot_be_checked_is_rejected(text, code, what, tmp_path, capsys):
    (tmp_path / "a.json").write_text(text)

    assert exit_code("check", str(tmp_path / "a.json")) == code
    assert what in capsys.readouterr().err
