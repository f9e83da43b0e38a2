"""`nki-run --record`: what the expressions of a kernel were, as a facts file."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

NEW = '''\
"""A kernel of 0.6 and a helper of it."""

from __future__ import annotations

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


def rows_of(t, n):
    return t[0:n, :]


@nki.jit
def double(x, größe="ä"):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    rows, cols = x.shape
    for i in range(rows // 128):
        tile = nl.ndarray((128, cols), nl.bfloat16, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[i * 128 : (i + 1) * 128, :])
        nisa.tensor_scalar(rows_of(tile, 128), tile, nl.multiply, 2.0)
        nisa.dma_copy(dst=out[i * 128 : (i + 1) * 128, :], src=tile)
    return out


if __name__ == "__main__":
    print(double(np.ones((256, 8), np.float32)).sum())
'''

OLD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np

@nki.jit
def double(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    ip = nl.arange(128)[:, None]
    jf = nl.arange(8)[None, :]
    for i in nl.affine_range(2):
        tile = nl.load(x[i * 128 + ip, jf])
        nl.store(out[i * 128 + ip, jf], value=tile * 2)
    return out

print(double(np.ones((256, 8), np.float32)).sum())
"""

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def record(tmp_path: Path) -> Run:
    """Runs `text` as program.py under `nki-run --record facts.json`."""

    def run(text: str, file: str | None = "facts.json") -> subprocess.CompletedProcess[str]:
        (tmp_path / "program.py").write_text(text, encoding="utf-8")
        option = ["--record", file] if file else []
        command = [sys.executable, "-m", "nki_runtime", *option, "program.py"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)

    return run


@pytest.fixture
def facts(tmp_path: Path) -> Callable[[], dict[str, Any]]:
    return lambda: json.loads((tmp_path / "facts.json").read_text())


def at(facts: dict[str, Any], text: str, source: str) -> dict[str, Any]:
    """The entry of the expression that `text` is, at its first place in `source`."""
    before = source[: source.index(text)]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    found = [
        e
        for e in facts["kernels"][0]["expressions"]
        if (e["line"], e["column"], e["end_column"]) == (line, column, column + len(text))
    ]
    assert len(found) == 1, (text, found)
    return found[0]


def test_the_program_runs_as_without_it(record, facts):
    done = record(NEW)

    assert (done.stdout, done.stderr, done.returncode) == ("4096.0\n", "", 0)
    assert facts()["schema"] == "nki-facts/1"


def test_kernels_are_named_with_their_file_and_runs(record, facts):
    record(NEW + "    double(np.ones((128, 8), np.float32))\n")

    (kernel,) = facts()["kernels"]

    assert (kernel["file"], kernel["kernel"], kernel["runs"]) == ("program.py", "double", 2)


def test_tensors_have_shape_dtype_memory_and_loops(record, facts):
    record(NEW)

    tile = at(facts(), "nl.ndarray((128, cols), nl.bfloat16, buffer=nl.sbuf)", NEW)

    assert tile["shape"] == [128, 8]
    assert (tile["dtype"], tile["memory"]) == ("bfloat16", "sbuf")
    assert tile["loops"] == {"i": [0, 2]}


def test_numbers_that_change_are_lists_and_tuples_stand_in_one(record, facts):
    record(NEW)

    assert at(facts(), "i * 128", NEW)["value"] == [0, 128]
    assert at(facts(), "rows // 128", NEW)["value"] == 2
    assert at(facts(), "(128, cols)", NEW)["value"] == [[128, 8]]


def test_helpers_report_for_the_kernel_that_calls_them(record, facts):
    record(NEW)

    assert at(facts(), "t[0:n, :]", NEW)["shape"] == [128, 8]


def test_shapes_that_differ_between_runs_are_lists(record, facts):
    record(NEW + "    double(np.ones((128, 8), np.float32))\n")

    assert at(facts(), "x.shape", NEW)["value"] == [[256, 8], [128, 8]]
    assert at(facts(), "out[i * 128 : (i + 1) * 128, :]", NEW)["shape"] == [128, 8]


def test_old_kernels_report_too(record, facts):
    done = record(OLD)

    tile = at(facts(), "nl.load(x[i * 128 + ip, jf])", OLD)

    assert done.stdout == "4096.0\n"
    assert (tile["shape"], tile["dtype"], tile["memory"]) == ([128, 8], "float32", "sbuf")
    assert tile["loops"] == {"i": [0, 2]}


def test_variables_of_comprehensions_are_loops_too(record, facts):
    text = OLD.replace(
        "    return out\n",
        "    sizes = [b * 64 for b in range(2)]\n"
        "    most = max(c + 1 for c in nl.affine_range(3))\n"
        "    return out\n",
    )
    done = record(text)

    assert done.stdout == "4096.0\n"
    assert at(facts(), "b * 64", text)["loops"] == {"b": [0, 2]}
    assert at(facts(), "b * 64", text)["value"] == [0, 64]
    assert at(facts(), "c + 1", text)["loops"] == {"c": [0, 3]}


def test_patterns_of_a_match_are_no_expressions(record, facts):
    text = NEW.replace(
        "    return out\n",
        "    match rows:\n        case int() if cols > 1:\n            return out\n",
    )
    done = record(text)

    assert (done.stdout, done.stderr) == ("4096.0\n", "")
    assert at(facts(), "cols > 1", text)["value"] is True


def test_an_error_is_that_of_the_plain_run_and_the_facts_are_kept(record, facts, tmp_path):
    broken = NEW.replace("src=tile)", "src=tile[0:200, :])")

    plain, done = record(broken, file=None), record(broken)

    assert "slice 0:200 is outside dimension 0" in done.stderr
    assert (done.returncode, done.stderr) == (plain.returncode, plain.stderr)
    assert at(facts(), "rows // 128", broken)["value"] == 2


def test_imported_kernels_report_and_are_not_cached_instrumented(record, facts, tmp_path):
    (tmp_path / "kernels.py").write_text(NEW, encoding="utf-8")

    record("import nki, kernels, numpy as np\nkernels.double(np.ones((128, 4), np.float32))\n")

    assert facts()["kernels"][0]["file"] == "kernels.py"
    assert not (tmp_path / "__pycache__").exists()


BY_PATH = """\
import nki, numpy as np, runpy
kernels = runpy.run_path("kernels.py")
kernels["double"](np.ones((128, 4), np.float32))
print(runpy.run_path("kernels.py", run_name="__main__")["__name__"])
"""


def test_kernels_of_a_file_that_runpy_runs_report_too(record, facts, tmp_path):
    (tmp_path / "kernels.py").write_text(NEW, encoding="utf-8")

    done = record(BY_PATH)

    assert (done.stdout, done.stderr) == ("4096.0\n__main__\n", "")
    (kernel,) = facts()["kernels"]
    assert (kernel["file"], kernel["kernel"], kernel["runs"]) == ("kernels.py", "double", 2)


def test_a_kernel_that_cannot_report_is_named(record, facts, tmp_path):
    (tmp_path / "kernels.py").write_text(NEW, encoding="utf-8")
    plain = "import nki\nexec(compile(open('kernels.py').read(), 'kernels.py', 'exec'))\n"

    done = record(plain)

    assert (facts()["kernels"], done.returncode) == ([], 0)
    assert done.stderr == (
        "nki-run: --record: nothing is known of kernel double: its source was neither run as a "
        "script nor imported\n"
    )


def test_the_file_may_be_read_by_whom_other_new_files_may(record, tmp_path):
    record(NEW)

    assert (tmp_path / "facts.json").stat().st_mode == (tmp_path / "program.py").stat().st_mode


def test_a_missing_folder_is_rejected_before_the_program_runs(record):
    done = record(NEW, file="nowhere/facts.json")

    assert (done.returncode, done.stdout) == (2, "")
    assert "--record nowhere/facts.json: no such folder nowhere" in done.stderr
