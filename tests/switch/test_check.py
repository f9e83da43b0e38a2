"""`nki-run --check` over the real languages, and the checks over their kernels."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from neuroncore.checks import watching
from neuroncore.findings.formats import FORMATS
from nki_runtime import use

HEAD = """\
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl

x = np.ones((128, 64), np.float32)
"""
CLEAN = (
    HEAD
    + """
@nki.jit
def kernel(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out

print(kernel(x).sum())
"""
)
UNWRITTEN = CLEAN.replace("dst=tile, src=x", "dst=tile[:, 0:32], src=x[:, 0:32]")


@pytest.fixture
def nki_run(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a program's text with options, in a folder of its own."""

    def run(text: str, *options: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "program.py").write_text(text)
        return subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "nki_runtime", *options, "program.py"],
            cwd=tmp_path,
            env={k: v for k, v in os.environ.items() if not k.startswith(("NKI", "NEURON"))},
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


def test_a_program_without_findings_runs_as_without_checks(nki_run):
    done = nki_run(CLEAN, "--check", "all")

    assert (done.returncode, done.stdout, done.stderr) == (0, "8192.0\n", "")


def test_findings_are_printed_after_the_run_and_exit_with_1(nki_run):
    done = nki_run(UNWRITTEN, "--check", "memory")

    assert (done.returncode, done.stdout) == (1, "nan\n")
    first, source, caret, *_, last = done.stderr.splitlines()
    assert "program.py:13:5: memory: dma_copy: src reads 4,096 of 8,192 elements" in first
    assert source == "    nisa.dma_copy(dst=out, src=tile)"
    assert source[caret.index("^") :] == "tile)"
    assert last == "nki-run: 1 finding (memory 1)"


def test_findings_are_printed_in_the_chosen_output_format(nki_run):
    done = nki_run(UNWRITTEN, "--check", "memory", "--output-format", "json")

    document = json.loads(done.stdout)
    (file,) = document["files"]
    assert (done.returncode, document["tool"], document["summary"]) == (1, "nki-run", {"memory": 1})
    assert file["findings"][0]["instruction"] == "dma_copy"


@pytest.mark.parametrize("name", sorted(FORMATS.keys() - {"text"}))
def test_every_output_format_has_the_findings(nki_run, name):
    done = nki_run(UNWRITTEN, "--check", "all", "--output-format", name)

    assert done.returncode == 1
    assert "src reads 4,096 of 8,192 elements" in done.stdout


def test_a_document_is_printed_without_findings_too(nki_run):
    done = nki_run(CLEAN, "--check", "memory", "--output-format", "json")

    (file,) = json.loads(done.stdout)["files"]
    assert (done.returncode, file["status"], file["findings"]) == (0, "passed", [])


def test_what_no_check_was_asked_for_is_not_looked_at(nki_run):
    assert nki_run(UNWRITTEN).returncode == 0
    assert nki_run(UNWRITTEN, "--check", "capacity").returncode == 0


def test_an_unknown_check_is_a_usage_error_with_a_near_name(nki_run):
    done = nki_run(CLEAN, "--check", "memory,capasity")

    assert (done.returncode, done.stdout) == (2, "")
    assert "nki-run: unknown check 'capasity'" in done.stderr
    assert "did you mean capacity?" in done.stderr


def test_an_error_of_the_program_comes_with_the_findings_before_it(nki_run):
    done = nki_run(UNWRITTEN + "\nraise ValueError('later')\n", "--check", "memory")

    assert done.returncode == 1
    assert "ValueError: later" in done.stderr
    assert "nki-run: 1 finding" in done.stderr


@pytest.mark.parametrize(("code", "status"), [(0, 1), (3, 3)])
def test_a_program_that_exits_by_itself_keeps_its_failure(nki_run, code, status):
    done = nki_run(f"{UNWRITTEN}\nimport sys\nsys.exit({code})\n", "--check", "memory")

    assert done.returncode == status
    assert "nki-run: 1 finding" in done.stderr


def test_a_thread_of_the_program_is_watched_too(nki_run):
    text = UNWRITTEN.replace(
        "print(kernel(x).sum())",
        "import threading\nt = threading.Thread(target=kernel, args=(x,))\nt.start()\nt.join()",
    )

    assert "nki-run: 1 finding (memory 1)" in nki_run(text, "--check", "memory").stderr


def test_the_source_is_read_before_the_run_by_the_chosen_version(nki_run):
    text = CLEAN.replace("    return out", "    [0 for _ in ()]\n    return out")

    rejected = nki_run(text, "--check", "subset", "--nki", "0.6")
    warned = nki_run(text, "--check", "subset", "--nki", "0.6", "--option", "frontend=tracer")
    accepted = nki_run(text, "--check", "subset", "--nki", "0.7")

    assert (rejected.returncode, warned.returncode, accepted.returncode) == (1, 0, 0)
    assert "subset[" in rejected.stderr
    assert "warning: subset[" in warned.stderr
    assert "subset[" not in accepted.stderr


# -- kernels of 0.1 -------------------------------------------------------------------------------

OLD = """\
import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def masked(x, reads_mask):
    i_p, i_f = nl.mgrid[0:128, 0:64]
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x[i_p, i_f], mask=i_f < 40)
    if reads_mask:
        result = nl.ndarray((nl.par_dim(128), 64), dtype=x.dtype)
        result[...] = nl.zeros((128, 64), dtype=x.dtype)
        result[i_p, i_f] = nl.exp(tile, mask=i_f < 40)
    else:
        result = nl.exp(tile)
    nl.store(out[i_p, i_f], result)
    return out


@nki.jit
def ragged(x, use):
    i_p, i_f = nl.mgrid[0:128, 0:64]
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x[i_p, i_f], mask=i_p < 100)
    scaled = nl.multiply(nl.exp(tile), 2.0)
    if use == "masked":
        nl.store(out[i_p, i_f], scaled, mask=i_p < 100)
        nl.store(out[100:128, 0:64], nl.zeros((28, 64), dtype=x.dtype))
    elif use == "whole":
        nl.store(out[i_p, i_f], scaled)
    elif use == "hidden":
        nl.store(out[i_p, i_f], nl.maximum(scaled, 0.0))
    elif use == "row":
        nl.store(out[i_p, i_f], nl.add(nl.zeros((128, 64), dtype=x.dtype), nl.sum(scaled, axis=1)))
    else:
        nl.store(out[0:64, 0:64], nl.copy(nisa.nc_matmul(scaled, scaled)))
        nl.store(out[64:128, 0:64], nl.zeros((64, 64), dtype=x.dtype))
    return out


@nki.jit
def triangle(x):
    i_p, i_f = nl.mgrid[0:64, 0:64]
    out = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x[0:64, 0:64])
    half = nl.ndarray((nl.par_dim(64), 64), dtype=x.dtype)
    half[i_p, i_f] = nl.exp(tile, mask=i_p >= i_f)
    again = nl.zeros((64, 64), dtype=x.dtype)
    again[i_p, i_f] = nl.exp(half, mask=i_p >= i_f)
    total = nl.sum(half, axis=1, mask=i_p >= i_f)
    nl.store(out, again + total)
    return out


@nki.jit
def accumulates(x):
    acc = nl.zeros((64, 64), dtype=nl.float32, buffer=nl.psum)
    for k in nl.affine_range(2):
        tile = nl.load(x[64 * k : 64 * k + 64, 0:64])
        acc += nisa.nc_matmul(tile, tile)
    out = nl.ndarray((64, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.copy(acc))
    return out


@nki.jit
def halves(x, step):
    i = nl.program_id(0)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x[0:64, 0:64])
    nl.store(out[nl.ds(i * step, 64), 0:64], tile)
    return out
"""
X = np.ones((128, 64), np.float32)


@pytest.fixture
def old(tmp_path: Path) -> dict[str, Callable[..., object]]:
    (tmp_path / "old.py").write_text(OLD)
    with use("beta1"):
        return runpy.run_path(str(tmp_path / "old.py"))


def test_elements_that_a_mask_left_out_are_unwritten(old):
    with watching("memory") as report:
        old["masked"](X, False)

    (found,) = report
    assert found.instruction == "dma_copy"  # where the undefined part of exp(tile) leaves the chip
    assert found.message == "src reads 3,072 of 8,192 elements that nothing has written"
    assert "[0:128, 40:64]" in str(found.got)


def test_a_masked_store_cuts_off_what_a_masked_load_left_undefined(old):
    with watching("memory") as report:
        old["ragged"](X, "masked")

    assert list(report) == []


@pytest.mark.parametrize("use_of_it", ["whole", "hidden", "row", "matmul"])
def test_what_comes_of_undefined_elements_is_found_where_it_is_used(old, use_of_it):
    with watching("memory") as report:
        old["ragged"](X, use_of_it)

    where = "nc_matmul" if use_of_it == "matmul" else "dma_copy"
    assert {found.instruction for found in report} == {where}


def test_elements_that_a_mask_leaves_out_again_are_not_read(old):
    with watching("memory") as report:
        old["masked"](X, True)
        old["triangle"](X)

    assert list(report) == []


def test_a_sum_in_psum_that_starts_from_zeros_is_written(old):
    with watching() as report:
        old["accumulates"](X)

    assert list(report) == []


@pytest.mark.parametrize(("step", "raced"), [(64, 0), (63, 1)])
def test_the_programs_of_a_grid_write_disjoint_tensors(old, step, raced):
    with watching("race") as report:
        old["halves"][(2,)](X, step)

    assert len(report) == raced
    assert all(f.message == "program 1 writes 64 elements of out that program 0 writes"
               for f in report)  # fmt: skip
