"""Square roots and logarithms at zero, which is outside the ranges of ScalarE's functions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nkigen_lite.compiler.compile import Compiled, compile

EDGES = np.array([0, -0.0, 1, 4, 0.25, 1e-30, 1e-36, 1e-44, 1e30, np.inf, np.nan], np.float32)
BELOW = np.array([-1, -4, -np.inf, -1e-30], np.float32)


def inverse_root(x: Any) -> Any:
    return 1 / np.sqrt(x)


def root_of_power(x: Any) -> Any:
    return x**0.5


def inverse_root_of_power(x: Any) -> Any:
    return x**-0.5


def is_numpys(ours: np.ndarray, numpys: np.ndarray) -> bool:
    """Equal with the sign of zeros; any NaN is as good as any other."""
    signs = np.signbit(ours) == np.signbit(numpys)
    return bool(np.all((ours == numpys) & signs | np.isnan(ours) & np.isnan(numpys)))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("function", [np.sqrt, np.log, inverse_root, root_of_power])
@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_every_value_is_numpys(source_results, tmp_path, function, kind):
    x = np.concatenate([EDGES, BELOW]).astype(kind)
    kernel = compile(function, x)

    (written,) = source_results(kernel, tmp_path, (x,))

    assert is_numpys(kernel(x), function(x))
    assert is_numpys(written, function(x))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
def test_powers_of_minus_one_half_are_inverse_roots(source_results, tmp_path, kind):
    x = np.concatenate([EDGES, BELOW, np.geomspace(1e-7, 6e4, 4096)]).astype(kind)
    kernel = compile(inverse_root_of_power, x)
    units = np.finfo(kind).eps if kind != "bfloat16" else 2.0**-7

    (written,) = source_results(kernel, tmp_path, (x,))

    numpys = inverse_root_of_power(x.astype(np.float64))
    normal = np.isfinite(numpys) & (x >= 1e-30) & np.isfinite(x)
    for ours in (kernel(x), written):
        exact = ours.astype(np.float64)[normal]
        assert np.all(np.abs(exact / numpys[normal] - 1) <= 2 * units)
        assert is_numpys(ours[~np.isfinite(numpys)], numpys[~np.isfinite(numpys)])
        assert not ours[x == -np.inf].any()


def test_a_power_of_minus_one_half_takes_no_logarithm():
    """26 instructions by logarithm and exponential."""
    kernel = compile(inverse_root_of_power, "f32[128, 512]")

    assert kernel.stats.instructions <= 10
    assert "nl.log" not in kernel.source


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_log1p_of_minus_one_is_infinite(moves):
    moves(np.log1p, np.array([-1, 0, 1e-30, -0.0], np.float32))


def test_the_cube_root_of_zero_keeps_its_sign(moves):
    moves(np.cbrt, np.array([0, -0.0, np.inf, -np.inf], np.float32))


def test_a_selected_value_that_is_added_up_is_added_up_as_selected(assert_lowers_right, normal):
    assert_lowers_right(lambda x: np.where(x > 0, x, np.exp(x)).sum(-1), normal(130, 40))


def norm(x: Any) -> Any:
    return np.linalg.norm(x, axis=-1)


def deviation(x: Any) -> Any:
    return x.std(-1), x / np.sqrt(np.square(x).mean(-1, keepdims=True))


def likelihood(x: Any) -> Any:
    return np.log(np.maximum(x, 0)), np.log1p(x - 1), np.arcsinh(x), np.cbrt(x)


def roots(x: Any) -> Any:
    return np.sqrt(np.maximum(x, 0)), np.abs(x) ** 0.5, np.abs(x) ** 0.3, np.hypot(x, x)


def of_integers(x: Any) -> Any:
    return np.sqrt((x > 1).astype(np.int32)), np.log(x.astype(np.int8))


KERNELS = (np.sqrt, np.log, inverse_root, norm, deviation, likelihood, roots, of_integers)


def test_no_check_finds_zeros_outside_a_range(tmp_path: Path):
    lines = ["import numpy as np"]
    for function in KERNELS:
        name = function.__name__
        kernel = compile(function, np.zeros((130, 20), np.float32))
        (tmp_path / f"{name}_kernel.py").write_text(kernel.source, encoding="utf-8")
        lines.append(f"from {name}_kernel import {kernel.program.name}")
        lines.append(f"{kernel.program.name}(np.zeros((130, 20), np.float32))")
    script = tmp_path / "all_kernels.py"
    script.write_text("\n".join(lines) + "\n", encoding="utf-8")

    checks = ("--check", "memory,capacity,subset,device,race")
    done = subprocess.run(
        [sys.executable, "-m", "nki_runtime", *checks, str(script)], capture_output=True,
        text=True, check=False, cwd=tmp_path,
    )  # fmt: skip

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def is_guarded(kernel: Compiled) -> bool:
    """Whether ones are put where zeros were."""
    nodes = kernel.passes["decomposed"].nodes
    truths = {n.name for n in nodes if n.op == "equal"}
    return any(n.op == "convert" and n.operands[0] in truths for n in nodes)


def layer_norm(x: Any) -> Any:
    away = x - x.mean(-1, keepdims=True)
    return away / np.sqrt(np.square(away).mean(-1, keepdims=True) + 1e-5)


def log_softmax(x: Any) -> Any:
    away = x - x.max(-1, keepdims=True)
    return away - np.log(np.exp(away).sum(-1, keepdims=True))


PROVED = {
    "layer norm": layer_norm,
    "variance + eps": lambda x: 1 / np.sqrt(x.var(-1) + 1e-6),
    "log softmax": log_softmax,
    "at least one": lambda x: np.log(np.maximum(x, 1)) + np.sqrt(1 + x * x),
    "log-add": lambda x: np.logaddexp(x, 1),
    "power": lambda x: (np.square(x) + 1e-5) ** -0.5,
}


@pytest.mark.parametrize("function", PROVED.values(), ids=PROVED)
def test_what_is_proved_to_be_in_range_is_not_guarded(assert_lowers_right, normal, function):
    kernel = assert_lowers_right(function, normal(130, 40))

    assert not is_guarded(kernel)


UNPROVED = {
    "rounded to zero": lambda x: np.sqrt((np.exp(x) + 1e-9).astype(np.float16)),
    "eps that may be cancelled": lambda x: 1 / np.sqrt(x + 1e-5),
    "the maximum of something else": lambda x: np.log(np.exp(x - x.max(0)).sum(-1)),
}


@pytest.mark.parametrize("function", UNPROVED.values(), ids=UNPROVED)
def test_what_is_not_proved_is_guarded(function):
    kernel = compile(function, "f32[5, 7]")

    assert is_guarded(kernel)
