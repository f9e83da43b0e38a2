"""Kernels with nl.shared_constant as programs, and programs with constants as kernels."""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuroncore.checks.subset import check_script
from neuroncore.program import (
    Allocate,
    Program,
    capture,
    check,
    constant_buffer,
    emit,
    execute_program,
    make_call,
    parse_program,
    whole,
)
from neuroncore.program.ir.nodes import Buffer
from nki_dtypes import ALL
from nki_runtime import use

VERSIONS = ("0.2", "0.3", "0.4", "0.5", "0.6", "0.7")
X = np.random.default_rng(5).standard_normal((256, 64)).astype(np.float32)

KERNELS = """\
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl

TABLE = np.random.default_rng(1).standard_normal((128, 64)).astype(np.float32)
EQUAL = TABLE.copy()
TABLES = [TABLE + np.float32(i) for i in range(4)]


@nki.jit
def scaled(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for i in range(x.shape[0] // 128):
        factors = nl.shared_constant(EQUAL if i else TABLE)
        tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        scale = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x[i * 128 : i * 128 + 128, :])
        nisa.dma_copy(dst=scale, src=factors)
        nisa.tensor_tensor(dst=tile, data1=tile, data2=scale, op=nl.multiply)
        nisa.dma_copy(dst=out[i * 128 : i * 128 + 128, :], src=tile)
    return out


@nki.jit
def scaled_by_several(x):
    out = nl.ndarray((512, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    factors = []
    for i in range(4):
        factors.append(nl.shared_constant(TABLES[i]))
    for j in range(2):
        for i in range(4):
            to = out[i * 128 + j * 64 : i * 128 + j * 64 + 64, :]
            nisa.dma_copy(dst=to, src=factors[i][j * 64 : j * 64 + 64, :])
    return out
"""

OLD = """\
import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def summed(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    ramp = nl.shared_constant(np.arange(64).reshape(1, 64) / 7, dtype=nl.float32)
    for i in nl.affine_range(2):
        rows = nl.load(x[i * 128 : i * 128 + 128, :])
        nl.store(out[i * 128 : i * 128 + 128, :], rows + nl.load(ramp).broadcast_to((128, 64)))
    return out
"""


def called(path: Path, name: str, version: str, *arrays: Any) -> Any:
    backend = "beta1" if version == "0.1" else "beta2"
    with use(backend, nki=version):
        return runpy.run_path(str(path))[name](*arrays)


def captured(path: Path, name: str, version: str = "0.6") -> Program:
    backend = "beta1" if version == "0.1" else "beta2"
    with use(backend, nki=version):
        return capture(runpy.run_path(str(path))[name], X)


@pytest.fixture
def scaled(tmp_path: Path) -> Program:
    (tmp_path / "kernels.py").write_text(KERNELS, encoding="utf-8")
    return captured(tmp_path / "kernels.py", "scaled")


def test_a_constant_of_a_kernel_is_one_of_its_program(scaled):
    (made,) = [s for s in scaled.body if isinstance(s, Allocate) and s.buffer.content]

    assert made.buffer.name == "factors"
    assert str(made.origin).endswith("kernels.py:15:19")
    check(scaled)


def test_equal_constants_are_one_and_the_loop_is_found(scaled):
    lines = str(scaled).splitlines()

    assert sum(" = constant(" in line for line in lines) == 1
    assert sum(" for i in range(2):" in line for line in lines) == 1
    assert parse_program(str(scaled)) == scaled


def test_different_constants_stay_separate(tmp_path):
    (tmp_path / "kernels.py").write_text(KERNELS, encoding="utf-8")
    program = captured(tmp_path / "kernels.py", "scaled_by_several")

    made = [s.buffer for s in program.body if isinstance(s, Allocate) and s.buffer.content]

    assert [b.name for b in made] == ["factors", "factors_2", "factors_3", "factors_4"]
    check(program)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_source_of_every_version_gives_what_the_kernel_gives(scaled, version, tmp_path):
    table = np.random.default_rng(1).standard_normal((128, 64)).astype(np.float32)
    expected = X * np.tile(table, (2, 1))
    path = tmp_path / "emitted.py"
    path.write_text(emit(scaled, version), encoding="utf-8")

    given = called(path, "scaled", version, X.copy())

    assert given.tobytes() == expected.tobytes()
    assert [f for f in check_script(path, version) if f.severity == "error"] == []


@pytest.mark.parametrize("version", ["0.2", "0.6"])
def test_constants_of_old_kernels_are_kept(version, tmp_path):
    (tmp_path / "old.py").write_text(OLD, encoding="utf-8")
    program = captured(tmp_path / "old.py", "summed", "0.1")
    path = tmp_path / "emitted.py"
    path.write_text(emit(program, version), encoding="utf-8")

    given = called(path, "summed", version, X.copy())

    assert given.tobytes() == called(tmp_path / "old.py", "summed", "0.1", X.copy()).tobytes()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("step", [32, 0], ids=["whole", "a row twice"])
def test_every_dtype_comes_through_the_source_bit_for_bit(dtype, version, step, tmp_path):
    if dtype.since > version:
        pytest.skip(f"{dtype} came with NKI {dtype.since}")
    elements = np.random.default_rng(2).integers(0, 256, 64 * dtype.itemsize, dtype=np.uint8)
    elements = (elements % 2 if dtype.name == "bool_" else elements).view(dtype.storage)
    constant = constant_buffer("table", elements.reshape(2, 32), dtype)
    out = Buffer("out", (2, 32), dtype, constant.space)
    read = replace(whole(constant), strides=(step, 1))
    copy = make_call("dma_copy", dst=whole(out), src=read)
    program = Program("np", (), (Allocate(constant), Allocate(out), copy), ("out",), nki=version)
    path = tmp_path / "emitted.py"
    path.write_text(emit(program, version), encoding="utf-8")

    given = called(path, "np_", version)

    rows = elements.reshape(2, 32) if step else np.tile(elements[:32], (2, 1))
    assert given.tobytes() == rows.tobytes() == execute_program(program, [])[0].tobytes()
    assert [f for f in check_script(path, version) if f.severity == "error"] == []
