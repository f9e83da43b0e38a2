"""Integers, bool and arrays of the program: in every version, on every target, with every check."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nki_runtime
from nkigen_lite.compiler.compile import Compiled, compile

CHECKS = "memory,capacity,subset,device,race,traps"


def function(x: Any, y: Any, holds: Any, small: Any) -> Any:
    """Something of every way in which integers and bool are computed."""
    return (
        x * y + 3, x // y, x.astype(np.int8) + small, np.where(holds, x, 7), holds & (small > 1),
        x.max(-1), np.tril(x), x.argmax(-1), small @ small.T, x.astype(np.uint32) >> 3, x[:0],
        np.where(holds.any(-1, keepdims=True), small, small[:1]),
    )  # fmt: skip


def arrays() -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    x = rng.integers(-(2**31), 2**31 - 1, (130, 33), np.int32)
    y, small = (rng.integers(-9, 9, x.shape).astype(t) for t in (np.int32, np.int8))
    return x, y, rng.random(x.shape) > 0.5, small


def expected() -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        found = function(*arrays())
    return [a.astype(np.int32) if a.dtype == np.int64 else a for a in found]


def kernel(folder: Path, version: str, target: str) -> tuple[Compiled, Path]:
    made, file = compile(function, *arrays(), nki=version, target=target), folder / "kernel.py"
    file.write_text(made.source, encoding="utf-8")
    return made, file


@pytest.mark.parametrize(
    ("version", "target"), [("0.2", "trn1"), ("0.3", "trn2"), ("0.5", "trn3"), ("0.6", "trn1")]
)
def test_every_version_and_target_gives_numpys_integers(tmp_path, version, target):
    made, file = kernel(tmp_path, version, target)

    with nki_runtime.use(nki=version, target=target):
        given = [np.array(a) for a in made.inputs(*arrays())]
        found = made.results(runpy.run_path(str(file))["function"](*given), arrays())

    for ours, numpys in zip(found, expected(), strict=True):
        assert ours.dtype == numpys.dtype
        assert (ours == numpys).all()


def test_the_checks_find_nothing(tmp_path):
    made, file = kernel(tmp_path, "0.6", "trn2")
    given = tmp_path / "given.npz"
    np.savez(given, *made.inputs(*arrays()))
    with file.open("a", encoding="utf-8") as text:
        text.write(f"\nimport numpy\nfunction(*numpy.load({str(given)!r}).values())\n")
    command = [sys.executable, "-m", "nki_runtime", "--nki", "0.6", "--target", "trn2"]

    done = subprocess.run(
        [*command, "--check", CHECKS, str(file)], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
