"""`nki-run --profile` and `--constants`, on profiles that a device would give."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neuroncore.timeline import constants, estimate, read_constants
from neuroncore.timeline.profiles.rows import columns
from nki_runtime import estimate as estimate_kernel
from nki_runtime import program_of, use
from nki_runtime.profile.files import read_profile

KERNEL = """\
import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def scaled(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    for i in range(16):
        nisa.dma_copy(dst=tile, src=x[128 * i : 128 * i + 128, 0:64])
        nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=out[128 * i : 128 * i + 128, 0:64], src=tile)
    return out


if __name__ == "__main__":
    scaled(np.ones((2048, 64), np.float32))
"""

SLOWER = constants().but("DMA_START", "trn2", 1100).but("DMA_STORE_START", "trn2", 600)

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    (tmp_path / "kernel.py").write_text(KERNEL, encoding="utf-8")
    return partial(nki_run, tmp_path)


def nki_run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run kernel.py in `folder` under nki-run with these options."""
    return subprocess.run(
        [sys.executable, "-m", "nki_runtime", "--nki", "0.6", *options, "kernel.py"],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False, env={"PATH": ""},
    )  # fmt: skip


def scaled(folder: Path) -> Any:
    """The kernel of kernel.py."""
    names: dict[str, Any] = {"__name__": "kernel"}
    exec(compile(KERNEL, str(folder / "kernel.py"), "exec"), names)
    return names["scaled"]


@pytest.fixture
def rows(tmp_path: Path) -> list[dict[str, Any]]:
    """What a device with slower DMAs would have measured, some rows lost, with noise."""
    with use("beta2", "0.6"):
        program = program_of(scaled(tmp_path), ((2048, 64), np.float32))
    slow, random = estimate(program, mode="device", constants=SLOWER, skip_periods=False), np.random
    generator = random.default_rng(5)
    return [_row(bar, generator.normal(1, 0.02)) for bar in slow.bars if generator.random() > 0.05]


def _row(bar: Any, noise: float) -> dict[str, Any]:
    is_dma, start = bar.lane == "dma", 10**9 + round(bar.start_ns)
    receipt = constants().at("trn2")["DMA_COMPLETION"] * is_dma
    end = start + round((bar.end_ns - bar.start_ns - receipt) * noise)
    return {
        "start_ts": start, "end_ts": start + 60 if is_dma else end, "pcore_idx": 0,
        "engine": "sync" if is_dma else bar.lane, "opcode": bar.instruction.upper(),
        "nki_source_location": f"kernel.py:{bar.place.line}",
        "dma_trigger_end_ts": end if is_dma else None,
    }  # fmt: skip


def as_folder(rows: list[dict[str, Any]], folder: Path) -> str:
    """Parquet tables, the large one cut into numbered files."""
    (folder / "scaled@latest").mkdir()
    for number, part in enumerate((rows[:20], rows[20:])):
        pq.write_table(
            pa.Table.from_pylist(part), folder / f"scaled@latest/Instruction_{number}.parquet"
        )
    return "scaled@latest"


def as_json(rows: list[dict[str, Any]], folder: Path) -> str:
    (folder / "p.json").write_text(json.dumps({"summary": [], "instruction": rows}))
    return "p.json"


@pytest.mark.parametrize("write", [as_folder, as_json])
def test_a_profile_is_compared_line_by_line(run, rows, tmp_path, write):
    done = run("--profile", write(rows, tmp_path))

    assert (done.returncode, done.stderr) == (0, "")
    head, _, *lines = done.stdout.splitlines()
    assert head.startswith("scaled on trn2, --profile ")
    assert "100% of the measured time" in head
    assert [line.split()[:2] for line in lines] == [
        ["kernel.py:12", "dma"], ["kernel.py:13", "vector"], ["kernel.py:14", "dma"],
    ]  # fmt: skip
    errors = [float(line.split()[-1].rstrip("%")) for line in lines]
    assert errors[0] < -10 and abs(errors[1]) < 5 and errors[2] < -5


@pytest.mark.parametrize(("file", "most"), [("t.pftrace", 0.5), ("t.parquet", 0.0)])
def test_a_trace_of_nki_run_is_a_profile_of_its_kernel_without_errors(run, file, most):
    assert run("--trace", file).returncode == 0

    done = run("--profile", file)

    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()[2:] if "kernel.py:" in line]
    assert next(line[2:5] for line in lines if line[1] == "vector") == ["16", "of", "16"]
    assert all(abs(float(line[-1].rstrip("%"))) <= most for line in lines), done.stdout


def test_constants_are_fitted_and_estimates_take_them(run, rows, tmp_path):
    fitted = run("--profile", as_json(rows, tmp_path), "--constants", "mine.json")

    assert fitted.returncode == 0, fitted.stderr
    assert "--constants wrote mine.json" in fitted.stderr
    found = json.loads((tmp_path / "mine.json").read_text())["constants"]
    assert found["DMA_START"]["trn2"] == pytest.approx(1100, rel=0.2)
    again = run("--profile", "p.json", "--constants", "mine.json")
    errors = [float(line.split()[-1][:-1]) for line in again.stdout.splitlines()[2:5]]
    assert max(map(abs, errors)) < 2

    with use("beta2", "0.6"):
        arguments = scaled(tmp_path), ((2048, 64), np.float32)
        before = estimate_kernel(*arguments)
        after = estimate_kernel(*arguments, constants=read_constants(tmp_path / "mine.json"))
    assert after.total_ns > 1.1 * before.total_ns
    before, after = run("--trace", "t.svg"), run("--trace", "t.svg", "--constants", "mine.json")
    assert "µs modelled" in after.stderr
    assert after.stderr != before.stderr


def test_a_profile_of_another_kernel_is_rejected_and_nothing_is_written(run, rows, tmp_path):
    others = [{**row, "nki_source_location": "other.py:3"} for row in rows]

    done = run("--profile", as_json(others, tmp_path), "--constants", "mine.json")

    assert done.returncode == 1
    assert done.stderr.startswith("nki-run: --profile p.json is not a profile of scaled: 0% of its")
    assert not (tmp_path / "mine.json").exists()


@pytest.mark.parametrize(
    "name, text, what",
    [
        ("none.json", None, "no such file"),
        ("p.txt", "", "this is not a profile"),
        ("p.json", "[", "cannot be read"),
        ("p.json", '{"instruction": []}', "has no instructions"),
        ("p.json", '[{"start": 1, "engine": "vector"}]', "has no column start_ts"),
        ("p.parquet", "no table", "cannot be read"),
        ("p.pftrace", "no trace", "cannot be read"),
    ],
)
def test_what_is_not_a_profile_is_a_mistake_in_the_options(run, tmp_path, name, text, what):
    if text is not None:
        (tmp_path / name).write_text(text)

    done = run("--profile", name)

    assert done.returncode == 2
    assert f"--profile {name}" in done.stderr and what in done.stderr


def test_constants_without_an_estimate_are_a_mistake(run):
    done = run("--constants", "mine.json")

    assert done.returncode == 2
    assert "--constants is for estimates" in done.stderr


def test_a_trace_is_not_written_as_json(run, tmp_path):
    done = run("--trace", "out.json")

    assert done.returncode == 2
    assert "--trace out.json: traces are not written as JSON" in done.stderr
    assert "--trace out.pftrace for ui.perfetto.dev, or .parquet, .svg" in done.stderr
    assert not (tmp_path / "out.json").exists()


def test_a_trace_in_parquet_is_a_profile_of_the_estimate(run, tmp_path):
    done = run("--trace", "out.parquet")
    table = pq.read_table(tmp_path / "out.parquet").to_pydict()
    with use(nki="0.6", target="trn2"):
        names = runpy.run_path(str(tmp_path / "kernel.py"))
        timeline = estimate(program_of(names["scaled"], ((2048, 64), np.float32)))

    assert "opens in --profile and any reader of Parquet" in done.stderr
    assert table["start_ts"] == [bar.start_ns for bar in timeline.bars]
    assert table["duration_ns"] == [bar.busy_ns for bar in timeline.bars]
    assert set(table) <= {*columns()["columns"], *columns()["own"]}
    profile = read_profile(tmp_path / "out.parquet")
    assert [row.places[0][1] for row in profile.rows] == [
        b.place.line for b in timeline.bars if b.place
    ]
