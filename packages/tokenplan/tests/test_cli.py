"""The command line: kernels in, explanations out."""

import json
from pathlib import Path

import pytest

from tokenplan.cli import main
from tokenplan.report import plan_file

RECURRENCE = """program("trn2", "0.6")
def recurrence(a: float32[2048, 512]):
    for k in range(8):
        t = buffer(float32[128, 512], sbuf)
        dma_copy(dst=t[:, :], src=a[128*k : 128*k + 128, :], name="load")
        dma_copy(dst=a[128*k + 128 : 128*k + 256, :], src=t[:, :], name="store")
    return a
"""
KERNEL = """import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def doubled(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(x.shape[0] // 128):
        tile = nl.ndarray((128, x.shape[1]), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[128 * i : 128 * i + 128, :])
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=out[128 * i : 128 * i + 128, :], src=tile)
    return out
"""


@pytest.fixture
def text(tmp_path: Path) -> str:
    file = tmp_path / "recurrence.txt"
    file.write_text(RECURRENCE)
    return str(file)


def test_a_program_text_is_explained(text, capsys):
    assert main(["explain", text]) == 0
    said = capsys.readouterr().out
    assert "store -> load  1 iteration of k later" in said
    assert "store (recurrence.txt:6) writes a[128, 0] at k = 0" in said
    assert "load (recurrence.txt:5) reads it at k = 1 [RAW]" in said


def test_a_kernel_is_run_to_see_its_program(tmp_path, capsys):
    file = tmp_path / "doubled.py"
    file.write_text(KERNEL)
    assert main(["explain", f"{file}:doubled", "--spec", "x=f32[512,64]"]) == 0
    said = capsys.readouterr().out
    assert "doubled on trn2: 3 operations, 1 loop" in said
    assert "nisa.dma_copy(dst=tile, src=x[128 * i : 128 * i + 128, :])" in said


def test_json_is_the_plan_file(text, tmp_path, capsys):
    file = tmp_path / "plan.json"
    assert main(["explain", text, "--output-format", "json", "-o", str(file)]) == 0
    assert capsys.readouterr() == ("", f"tokenplan: -o wrote {file}\n")
    graph, plan = plan_file.read(file.read_text("utf-8"))
    assert plan is None and plan_file.write(graph) == file.read_text("utf-8")
    assert json.loads(file.read_text("utf-8"))["stats"]["kept"] == 2


def test_dot_draws_kept_and_removed_orders(text, capsys):
    assert main(["explain", text, "--output-format", "dot"]) == 0
    said = capsys.readouterr().out
    assert said.startswith('digraph "recurrence" {')
    assert 'n1 -> n0 [label="RAW a +1", style=solid, color="black"];' in said
    assert "style=dotted" in said


@pytest.mark.parametrize(
    ("claim", "code", "words"),
    [
        ("k=parallel", "E2", "(recurrence.txt:6) at k = 0 and load (recurrence.txt:5) at k = 1"),
        ("k=pipeline(2)", "E3", "only pipeline(1) holds"),
    ],
)  # fmt: skip
def test_a_false_claim_is_an_error_with_its_witness(text, capsys, claim, code, words):
    assert main(["explain", text, "--claim", claim]) == 1
    said = capsys.readouterr().out
    assert f"{code}: " in said and words in said and "share a[128, 0]" in said


def test_a_claim_that_holds_is_no_error(text):
    assert main(["explain", text, "--claim", "k=pipeline(1)", "--join", "load,store"]) == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.py:kernel"], "can't open 'nowhere.py'"),
        (["nowhere"], "'nowhere' names no function"),
        (["TEXT", "--claim", "k=fast"], "--claim 'k=fast' claims nothing"),
        (["TEXT", "--claim", "m=parallel"], "the kernel has no loop m"),
        (["TEXT", "--join", "load"], "argument --join: 'load' is not two names: A,B"),
        (["TEXT", "--may-alias", "a"], "argument --may-alias: 'a' is not two names: A,B"),
        (["TEXT", "--may-alias", "a,b"], "the kernel has no tensor b"),
        (["TEXT", "--may-alias", "a,t"], "a and t cannot share bytes by an alias"),
        (["TEXT", "--may-alias", "a,a"], "got:      one tensor"),
        (["TEXT", "--budget", "0"], "argument --budget: '0' is not a whole number of at least 1"),
        (["TEXT", "--budget", "1e6"], "argument --budget: '1e6' is not a whole number"),
        (["TEXT", "--spec", "f32[2]"], "a program text says its shapes itself"),
        (["TEXT", "--target", "gpu"], "gpu"),
    ],
)
def test_mistakes_in_the_options_are_said(text, capsys, arguments, words):
    with pytest.raises(SystemExit) as stop:
        main(["explain", *(text if a == "TEXT" else a for a in arguments)])
    assert stop.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("function", "specs", "words"),
    [
        ("double", ["x=f32[512,64]"], "doubled.py has no function double"),
        ("__name__", ["x=f32[512,64]"], "__name__ is not a function"),
        ("doubled", ["y=f32[512,64]"], "--spec does not fit the kernel: "),
        ("doubled", [], "expected: x; such as --spec x=f32[128,512] for a tensor"),
        ("doubled", ["x=f33[512,64]"], "--spec 'f33[512,64]'"),
        ("doubled", ["x=f32[512"], "is neither a tensor nor a Python value"),
    ],
)
def test_a_wrong_name_or_spec_is_a_mistake_in_the_options(tmp_path, capsys, function, specs, words):
    file = tmp_path / "doubled.py"
    file.write_text(KERNEL)
    with pytest.raises(SystemExit) as stop:
        main(["explain", f"{file}:{function}", *(o for spec in specs for o in ("--spec", spec))])
    said = capsys.readouterr().err
    assert stop.value.code == 2
    assert words in said and "Traceback" not in said


def test_a_module_that_is_not_there_is_a_mistake_in_the_options(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["explain", "no_such_module.at_all:kernel"])
    assert stop.value.code == 2
    assert "no module is called 'no_such_module.at_all'" in capsys.readouterr().err


def test_a_code_has_a_page(capsys):
    assert main(["explain-code", "W2"]) == 0
    assert capsys.readouterr().out.startswith("W2: distinct tensors assumed")


DESCRIBED = """
from tokenplan.tile_ir import TileKernel

def shifted(by=1):
    kernel = TileKernel("shifted")
    a = kernel.array("a", (1024, 64))
    with kernel.loop("k", 8) as k:
        x = kernel.load(a, (k, 0), (64, 64))
        kernel.store(a, (k + by, 0), x)
    return kernel
"""


def test_a_described_tile_kernel_has_its_tokens(tmp_path, capsys):
    file = tmp_path / "kernels.py"
    file.write_text(DESCRIBED)

    assert main(["explain", f"{file}:shifted"]) == 0
    shown = capsys.readouterr().out
    assert "shifted on tile_ir: 2 operations, 1 loop" in shown and "partition_view" in shown
    assert "1 tokens in its bytecode\n  store -> load  1 iteration of k later\n" in shown
    assert main(["explain", f"{file}:shifted", "--spec", "by=0"]) == 0
    shown = capsys.readouterr().out
    assert "1 tokens in its bytecode\n  load -> store  in the same iteration\n" in shown


def test_options_of_nki_kernels_are_mistakes_for_a_described_tile_kernel(tmp_path, capsys):
    file = tmp_path / "kernels.py"
    file.write_text(DESCRIBED)
    with pytest.raises(SystemExit, match="2"):
        main(["explain", f"{file}:shifted", "--schedule", "--may-alias", "a,b"])
    message = "--schedule, --may-alias: not supported for a Tile IR description"
    assert message in capsys.readouterr().err
