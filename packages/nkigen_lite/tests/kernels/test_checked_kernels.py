"""Emitted kernels of every way that elements go, under all checks of nki-run."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nki_runtime
from nkigen_lite.compiler.compile import compile


def softmax_of_columns(x: Any) -> Any:
    e = np.exp(x - x.max(0))
    return e / e.sum(0)


def patched(x: Any, y: Any) -> Any:
    x[1:4, ::2] = np.tanh(y)
    return x * 2


def joined(x: Any, y: Any) -> Any:
    return np.concatenate([np.exp(x), y * 2, x, np.zeros((3, 40), np.float32)])


def interleaved(x: Any, y: Any) -> Any:
    return np.stack([x, y], -1)


def reversed_axes(x: Any) -> Any:
    return np.transpose(x, (3, 2, 1, 0))


def weight_transposed(x: Any) -> Any:
    return np.transpose(x, (0, 2, 3, 4, 1))


def put_in_order(x: Any, y: Any) -> Any:
    return x.transpose(2, 1, 0) + y


def summed_by_ones(x: Any) -> Any:
    return x.sum(0)


def averaged_in_a_loop(x: Any) -> Any:
    return x.mean(0)


def greatest_of_columns(x: Any) -> Any:
    return np.abs(x).max(0), x.sum()


def far_from_zero(x: Any) -> Any:
    x = np.maximum(np.minimum(x, 1.0), -1.0) * 50.0  # beyond the range of ScalarE's logarithm
    return np.expm1(x) + np.expm1(-x)


def in_patches(x: Any) -> Any:
    return x.reshape(2, 3, 4, 8, 4, 8).transpose(0, 2, 4, 3, 5, 1)


def positions_added(x: Any, p: Any) -> Any:
    return x + p


def running(x: Any) -> Any:
    return np.cumsum(x, axis=1) - np.maximum.accumulate(x), np.cumsum(x > 0, axis=0)


def softmax_of_long_rows(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True), (x > 0).sum()


def bordered(x: Any) -> Any:
    return np.pad(x, ((1, 2), (3, 1)), mode="edge"), np.roll(x, 5), np.tile(x, (2, 3))


def backwards(x: Any) -> Any:
    return x[:, ::-1], np.roll(x, (3, 5), (0, 1)), np.flip(x, (1, 3)).transpose(0, 2, 3, 1)


def rolled(x: Any) -> Any:
    return np.roll(x, 5)


def convolved(x: Any, w: Any) -> Any:
    taps = [x[:, i : i + 30, j : j + 17] * w[:, i, j][:, None, None]
            for i in range(3) for j in range(3)]  # fmt: skip
    return sum(taps)


def neighbours(x: Any) -> Any:
    return x[:, ::2] - x[:, 1::2], np.diff(x.reshape(-1)), x[::-1, ::-1] * 2


def masked(q: Any, k: Any, v: Any) -> Any:
    s = np.where(np.tri(140, dtype=bool), q @ np.swapaxes(k, -1, -2) * 0.125, -np.inf)
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v, np.argmax(q @ np.swapaxes(k, -1, -2), -1)


def contracted(x: Any, y: Any) -> Any:
    return np.einsum("ij,kj,kl->il", x, y, x[:60]), np.outer(x[0], y[1])


WEIGHT = np.random.default_rng(0).standard_normal((140, 60)).astype(np.float32)


def with_constants(x: Any) -> Any:
    places = np.outer(np.arange(x.shape[0]), 1 / np.arange(1, 141))
    return (x * np.cos(places) + np.sin(places)) @ WEIGHT + np.eye(x.shape[0], 60)


KERNELS = {
    running: [(130, 300)],
    softmax_of_long_rows: [(3, 32768)],
    bordered: [(130, 20)],
    masked: [(2, 140, 16)] * 3,
    backwards: [(3, 140, 5, 20)],
    rolled: [(131, 1100)],
    convolved: [(130, 32, 19), (130, 3, 3)],
    neighbours: [(260, 140)],
    contracted: [(130, 70), (60, 70)],
    with_constants: [(130, 140)],
    far_from_zero: [(130, 4)],
    in_patches: [(2, 3, 32, 32)],
    positions_added: [(3, 197, 256), (197, 256)],
    softmax_of_columns: [(129, 260)],
    patched: [(130, 40), (3, 20)],
    joined: [(130, 40), (20, 40)],
    interleaved: [(130, 140), (130, 140)],
    reversed_axes: [(2, 8, 128, 64)],
    weight_transposed: [(130, 3, 2, 16, 16)],
    put_in_order: [(70, 130, 5), (5, 130, 70)],
    summed_by_ones: [(3000, 64)],
    averaged_in_a_loop: [(3, 12807)],
    greatest_of_columns: [(300, 140)],
}
WAYS = (
    "columns transposed into rows by TensorE: ", "is written into its place in ",
    "parts put together in SBUF: ", "transposed by TensorE: ", "reordered in SBUF by copies: ",
    "arrays put in order in HBM: ", "each tile by ones on TensorE: ", "a loop over the reduced ax",
    "DMAs of parts: ", ": neighbours loaded together: ", "lines of neighbours loaded together: ",
)  # fmt: skip


def test_kernels_of_every_way_pass_every_check(tmp_path: Path):
    kernels = {f: compile(f, *(np.zeros(s, np.float32) for s in k)) for f, k in KERNELS.items()}
    told = "\n".join(k.explain() for k in kernels.values())
    assert [way for way in WAYS if way not in told] == []
    lines = ["import numpy as np"]
    for function, kernel in kernels.items():
        name = function.__name__
        (tmp_path / f"{name}.py").write_text(kernel.source, encoding="utf-8")
        given = ", ".join(f"np.ones({s}, np.float32)" for s in KERNELS[function])
        if kernel.constants:
            np.savez(tmp_path / f"{name}.npz", **dict[str, Any](kernel.constants))
            given += f", *np.load('{name}.npz').values()"
        lines += [f"from {name} import {name}", f"{name}({given})"]
    script = tmp_path / "all_kernels.py"
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")

    checks = ("--check", "memory,capacity,subset,device,race")
    done = subprocess.run(
        [sys.executable, "-m", "nki_runtime", *checks, str(script)], capture_output=True,
        text=True, check=False, cwd=tmp_path,
    )  # fmt: skip

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("version", "target"),
    [("0.2", "trn2"), ("0.3", "trn1"), ("0.4", "trn2"), ("0.5", "trn3"), ("0.6", "trn1")],
)
def test_every_version_and_target_runs_its_own_source(tmp_path: Path, version: str, target: str):
    rng = np.random.default_rng(0)
    for function, shapes in KERNELS.items():
        arrays = [rng.standard_normal(s).astype(np.float32) for s in shapes]
        kernel = compile(function, *arrays, nki=version, target=target)
        file = tmp_path / "kernel.py"
        file.write_text(kernel.source, encoding="utf-8")

        given = kernel.inputs(*map(np.array, arrays))
        with nki_runtime.use(nki=version, target=target):
            found = runpy.run_path(str(file))[function.__name__](*given)

        found = found if isinstance(found, tuple) else (found,)
        exact = function(*(a.astype(np.float64) for a in arrays))
        exact = exact if isinstance(exact, tuple) else (exact,)
        for ours, wanted in zip(found[: len(exact)], exact, strict=True):
            worst = np.abs(np.asarray(ours).reshape(wanted.shape) - wanted).max()
            assert worst <= 2.0**-17 * max(1.0, np.abs(wanted).max())  # 128 roundings
