"""`nki-run --dump`, `--compare` and pdb under `nki-run`, in processes of their own."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from neuroncore.machine.results import widened
from nki_dtypes import bfloat16, float32, int32
from nki_runtime.cli.comparison import ExecutedInstruction, difference_between, distance_in_ulps

KERNEL = """\
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def scaled(x, fails=False):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    part = nl.ndarray(x.shape, dtype=nl.bfloat16, buffer=nl.sbuf, name="thirds")
    nisa.tensor_scalar(dst=part, data=tile, op0=nl.multiply, operand0=1 / 3)
    for i in range(2):
        more = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=more, data=part, op0=nl.add, operand0=float(i))
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=more)
    if fails:
        nisa.dma_copy(dst=out, src=tile[:, 0:1])
    return out


X = np.arange(8, dtype=np.float32).reshape(2, 4)
"""
OLD = """\
import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def doubled(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    twice = tile + tile
    nl.store(out, twice)
    return out


doubled(np.ones((2, 4), np.float32))
"""


@pytest.fixture
def nki_run(tmp_path):
    """`nki-run` on a program in `tmp_path`."""

    def run(text, *options, stdin=""):
        (tmp_path / "program.py").write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "nki_runtime", *options, "program.py"]
        return subprocess.run(
            command, cwd=tmp_path, input=stdin, capture_output=True, text=True, timeout=120
        )

    return run


# -- dump ------------------------------------------------------------------------------------------


def test_a_dump_has_every_tensor_by_its_name(nki_run, tmp_path):
    done = nki_run(KERNEL + "scaled(X)\n", "--dump", "tensors")

    assert (done.returncode, done.stdout) == (0, "")
    with np.load(tmp_path / "tensors" / "scaled.npz") as found:
        held = dict(found)
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    thirds = widened((x / 3).astype(bfloat16.storage))
    assert list(held) == ["x", "tile", "thirds", "more", "more.1", "out"]
    assert np.array_equal(held["tile"], x)
    assert np.array_equal(held["thirds"], thirds)
    assert np.array_equal(held["more"], thirds)
    assert np.array_equal(held["more.1"], thirds + 1)
    assert np.array_equal(held["out"], thirds + 1)


def test_every_launch_has_a_file(nki_run, tmp_path):
    nki_run(KERNEL + "scaled(X); scaled(X + 1)\n", "--dump", "tensors")

    folder = tmp_path / "tensors"
    assert sorted(p.name for p in folder.iterdir()) == ["scaled.1.npz", "scaled.npz"]
    with np.load(folder / "scaled.1.npz") as found:
        assert found["x"][0, 0] == 1


def test_a_kernel_that_fails_leaves_no_file_and_those_before_stay(nki_run, tmp_path):
    text = KERNEL + "scaled(X)\ntry:\n    scaled(X, True)\nexcept nisa.NkiValidationError: pass\n"

    done = nki_run(text + "scaled(X + 2)\n", "--dump", "tensors")

    assert done.returncode == 0, done.stderr
    folder = tmp_path / "tensors"
    assert sorted(p.name for p in folder.iterdir()) == ["scaled.1.npz", "scaled.npz"]
    with np.load(folder / "scaled.1.npz") as found:
        assert list(found) == ["x", "tile", "thirds", "more", "more.1", "out"]
        assert found["x"][0, 0] == 2


def test_a_kernel_of_0_1_is_dumped_too(nki_run, tmp_path):
    done = nki_run(OLD, "--dump", "tensors")

    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "tensors" / "doubled.npz") as found:
        assert np.array_equal(found["twice"], np.full((2, 4), 2.0))


def test_a_named_instruction_leaves_what_it_gave(nki_run, tmp_path):
    """Also where later instructions write the same tensor."""
    text = KERNEL.replace("data=part, op0=nl.add,", 'data=part, op0=nl.add, name=f"sum{i}",')

    nki_run(text.replace("for i", "more = nl.ndarray(x.shape, nl.float32)\n    for i", 1).replace(
        "        more = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)\n", ""
    ) + "scaled(X)\n", "--dump", "tensors")  # fmt: skip

    with np.load(tmp_path / "tensors" / "scaled.npz") as found:
        assert np.array_equal(found["sum0"] + 1, found["sum1"])
        assert np.array_equal(found["more"], found["sum1"])


def test_both_cores_are_dumped(nki_run, tmp_path):
    nki_run(KERNEL + "scaled[2](X)\n", "--dump", "tensors")

    with np.load(tmp_path / "tensors" / "scaled.npz") as found:
        assert {"tile", "tile.1"} <= {*found}


def test_a_folder_that_cannot_be_made_is_a_usage_error(nki_run, tmp_path):
    done = nki_run(KERNEL, "--dump", "no/such/folder")

    assert done.returncode == 2
    assert "--dump no/such/folder: No such file or directory" in done.stderr


# -- compare ---------------------------------------------------------------------------------------


def test_the_first_instruction_that_departs_is_named(nki_run):
    done = nki_run(KERNEL + "print(scaled(X).shape)\n", "--compare", "precise=0", "--bound", "0")

    assert (done.returncode, done.stdout) == (1, "(2, 4)\n")
    assert "--compare precise=0: instruction 2 is the first whose result departs" in done.stderr
    assert "ulps of bfloat16" in done.stderr
    assert "program.py:12:5: scaled: tensor_scalar" in done.stderr
    assert "nisa.tensor_scalar(dst=part, data=tile" in done.stderr


def test_half_an_ulp_is_within_one(nki_run):
    """Rounding once or not at all is half an ulp of the narrow format; later float32 is exact."""
    text = KERNEL.replace("for i in range(2)", "for i in range(0)").replace("src=more", "src=tile")

    done = nki_run(text + "scaled(X)\n", "--compare", "precise=0")

    assert done.returncode == 0, done.stderr
    assert "the results of 3 instructions agree within 1 ulps" in done.stderr


@pytest.mark.parametrize("change", ["nki=0.5", "target=trn1"])
def test_what_changes_nothing_agrees(nki_run, change):
    done = nki_run(KERNEL + "scaled(X)\n", "--compare", change, "--bound", "0")

    assert done.returncode == 0, done.stderr
    assert "the results of 5 instructions agree within 0 ulps" in done.stderr


def test_runs_with_different_control_flow_are_distinguished(nki_run):
    text = KERNEL + 'scaled(X if nki.__version__ == "0.7.0" else X[:, :3])\n'

    done = nki_run(text, "--compare", "nki=0.5")

    assert done.returncode == 1
    assert "instruction 1 gives shape (2, 4), (2, 3) with the change" in done.stderr


def test_a_run_that_ends_early_is_told(nki_run):
    text = KERNEL + 'scaled(X)\nif nki.__version__ == "0.7.0": scaled(X)\n'

    done = nki_run(text, "--compare", "nki=0.5")

    assert done.returncode == 1
    assert "is run as it is only" in done.stderr


def test_a_program_that_fails_only_with_the_change_says_which(nki_run):
    text = KERNEL + 'scaled(X, fails=nki.__version__ != "0.7.0")\n'

    done = nki_run(text, "--compare", "nki=0.5")

    assert done.returncode == 1
    assert "the program failed with nki=0.5" in done.stderr


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--compare", "nki"], "--compare nki changes nothing"),
        (["--compare", "nki=0.5", "--bound", "-1"], "expected a number of ulps, 0 or more"),
        (["--compare", "nki=0.5", "--bound", "nan"], "expected a number of ulps, 0 or more"),
        (["--bound", "2"], "--bound is what --compare allows"),
        (["--compare", "nki=0.5", "--dump", "d"], "--compare and --dump exclude each other"),
    ],
)
def test_what_cannot_be_compared_is_a_usage_error(nki_run, options, why):
    done = nki_run(KERNEL, *options)

    assert done.returncode == 2
    assert why in done.stderr


@pytest.mark.parametrize(
    ("one", "other", "dtype", "ulps"),
    [
        (1.0, 1.0 + 2.0**-7, bfloat16, 1.0),
        (1.0, 1.0 + 2.0**-8, bfloat16, 0.5),
        (2.0, 2.0 - 2.0**-7, bfloat16, 0.5),
        (1.0, 1.0 + 2.0**-23, float32, 1.0),
        (0.0, 2.0**-149, float32, 1.0),
        (3, 5, int32, 2.0),
        (np.nan, np.nan, float32, 0.0),
        (np.inf, np.inf, float32, 0.0),
        (np.inf, 1.0, float32, np.inf),
        (np.nan, 1.0, float32, np.inf),
        (0.0, -0.0, float32, 0.0),
    ],
)
def test_distances_are_counted_in_units_of_the_last_place(one, other, dtype, ulps):
    assert distance_in_ulps(np.array([one]), np.array([other]), dtype) == [ulps]


def step(name, **results):
    return ExecutedInstruction(name, "k", None, dict.fromkeys(results, "float32"), results)


def test_instructions_are_paired_by_name_and_operands():
    one, other = step("max8", dst=np.zeros(1)), step("iota", dst=np.zeros(1))

    assert "is max8 as it is, iota with the change" in (difference_between(one, other, 1) or "")
    assert difference_between(one, step("max8", dst=np.zeros(1)), 0) is None
    assert "with the change only" in (difference_between(None, one, 1) or "")


# -- breakpoint ------------------------------------------------------------------------------------

STOPPED = KERNEL.replace("    part =", "    breakpoint()\n    part =") + "scaled(X)\n"


@pytest.mark.parametrize(
    "options",
    [["--nki", "0.2"], ["--nki", "0.6"], ["--nki", "0.3", "--record", "facts.json"]],
    ids=["0.2", "0.6", "recorded"],
)
def test_the_debugger_stands_in_the_kernel(nki_run, options):
    done = nki_run(STOPPED, *options, stdin="p tile\nprint(tile[:, 0:2])\nc\n")

    assert done.returncode == 0, done.stderr
    assert "program.py(" in done.stdout and ")scaled()" in done.stdout
    assert "<(2, 4), float32, SBUF>" in done.stdout
    assert "<(2, 2), float32, SBUF>\n[[0. 1.]\n [4. 5.]]" in done.stdout


def test_leaving_the_debugger_ends_the_program(nki_run):
    done = nki_run(STOPPED, stdin="q\n")

    assert done.returncode == 1
    assert done.stderr == "nki-run: left the debugger; the program did not end\n"
