"""`--step`: one version at a time, and the text runs under each version on the way."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pytest
from tools.nki_migrate.tests.command_line import run as migrate

import nki_runtime
from nki_migrate.settings.request import VERSIONS

KERNEL = """
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def scaled(x, *, bias=None):
    rows, columns = x.shape
    assert columns * 4 <= nl.tile_size.total_available_sbuf_size
    out = nl.ndarray((rows, columns), dtype=x.dtype, buffer=nl.shared_hbm)
    ip = nl.arange(32)[:, None]
    jf = nl.arange(columns)[None, :]
    for i in nl.affine_range(rows // 32):
        tile = nl.load(x[i * 32 + ip, jf])
        if bias is not None:
            tile = nl.add(tile, 2.0)
        nl.store(out[i * 32 + ip, jf], value=nisa.tensor_scalar(tile, nl.multiply, 3.0))
    return out
"""
X = np.arange(64 * 16, dtype=np.float32).reshape(64, 16)


def run(path: Path, **backend) -> np.ndarray:
    with nki_runtime.use(**backend):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)  # pyrefly: ignore
        spec.loader.exec_module(module)  # pyrefly: ignore
        return np.asarray(module.scaled(X.copy(), bias=2.0))


def one_step(path: Path, version: str) -> str:
    result = migrate("fix", "--step", "--from", version, str(path))
    assert result.exit_code == 0, result.stderr
    return path.read_text()


def test_a_kernel_of_0_1_runs_under_every_version_on_the_way_to_0_7(tmp_path):
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    assert np.array_equal(run(path, backend="beta1"), (X + 2) * 3)
    changed = []

    for old, new in itertools.pairwise(VERSIONS):
        before = path.read_text()
        changed += [new] if one_step(path, old) != before else []
        assert np.array_equal(run(path, backend="beta2", nki=new), (X + 2) * 3), new

    assert changed == ["0.2", "0.3", "0.4", "0.6"]  # 0.5 and 0.7 change nothing in this kernel


def test_a_kernel_that_is_newer_than_the_target_is_reported_and_stays(tmp_path):
    path = tmp_path / "kernel.py"
    text = "import nki\nimport nki.language as nl\n\n@nki.jit\ndef k(x):\n    return nl.tiles(x)\n"
    path.write_text(text)

    result = migrate("fix", "--to", "0.5", str(path))

    assert result.exit_code == 1 and path.read_text() == text
    assert "NKI0007" in result.stdout
    assert (
        "`k` uses nl.tiles (line 6), which NKI 0.5 does not have" in result.stdout + result.stderr
    )


@pytest.mark.parametrize(
    ("version", "gone", "there"),
    [
        ("0.1", "nl.load", "nisa.dma_copy"),
        ("0.2", "is not None", "!= None"),
        ("0.3", "total_available_sbuf_size", "sbuf_fmax_bytes"),
        ("0.5", "nl.affine_range", "in range("),
    ],
)
def test_a_step_does_what_its_version_asks_and_nothing_of_the_next(tmp_path, version, gone, there):
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    for earlier in VERSIONS[: VERSIONS.index(version)]:
        one_step(path, earlier)
    assert gone in path.read_text() and there not in path.read_text()

    after = one_step(path, version)

    assert gone not in after and there in after


def test_all_steps_at_once_give_what_single_steps_give(tmp_path):
    single, whole = tmp_path / "single.py", tmp_path / "whole.py"
    for path in (single, whole):
        path.write_text(KERNEL)

    for version in VERSIONS[:-1]:
        one_step(single, version)
    migrate("fix", "--to", VERSIONS[-1], str(whole))

    assert single.read_text() == whole.read_text()
