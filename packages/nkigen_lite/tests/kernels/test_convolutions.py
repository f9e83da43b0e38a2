"""Convolutions and pooling against sums over windows in float64; torch, where it is installed,
agrees with those sums."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nkigen_lite import compile, trace
from nkigen_lite.numpy_extras import avg_pool, conv1d, conv2d, conv3d, max_pool

VERSIONS = ("0.2", "0.6", "0.7")
CONVOLUTIONS = (conv1d, conv2d, conv3d)


def normal(*shape: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    rng = np.random.default_rng([seed, *shape])
    return rng.standard_normal(shape, np.float32).astype(dtype)


def windows(
    x: np.ndarray, size: Any, strides: Any, padding: Any, dilation: Any, fill: float
) -> Any:
    """(element of the window, what is there in all places), one by one."""
    sides = [(0, 0), (0, 0), *((p, p) if isinstance(p, int) else p for p in padding)]
    padded = np.pad(x.astype(np.float64), sides, constant_values=fill)
    for at in product(*map(range, size)):
        key = [slice(None), slice(None)]
        for d, i in enumerate(at):
            count = (padded.shape[2 + d] - (size[d] - 1) * dilation[d] - 1) // strides[d] + 1
            first = i * dilation[d]
            key.append(slice(first, first + (count - 1) * strides[d] + 1, strides[d]))
        yield at, padded[tuple(key)]


def reference(
    x: np.ndarray, w: np.ndarray, bias: np.ndarray | None, strides: Any, padding: Any,
    dilation: Any, groups: int,
) -> np.ndarray:  # fmt: skip
    """Σ over channels of the group and elements of the kernel."""
    outputs, inputs = w.shape[0] // groups, w.shape[1]
    total: Any = 0.0
    for at, seen in windows(x, w.shape[2:], strides, padding, dilation, 0.0):
        parts = [
            np.einsum("nc...,oc->no...", seen[:, g * inputs : (g + 1) * inputs],
                      w[(slice(g * outputs, (g + 1) * outputs), slice(None), *at)])
            for g in range(groups)
        ]  # fmt: skip
        total = total + np.concatenate(parts, 1)
    return total if bias is None else total + bias.reshape(-1, *[1] * (x.ndim - 2))


def is_close(found: np.ndarray, exact: np.ndarray) -> bool:
    """Within the rounding of sums in float32, and one of the result's format."""
    scale = np.abs(exact).max()
    unit = max(2.0**-20, float(ml_dtypes.finfo(found.dtype).eps))
    return found.shape == exact.shape and np.abs(found.astype(np.float64) - exact).max() <= (
        scale * unit
    )


Case = tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]
CASES: dict[str, Case] = {
    "plain": ((1, 3, 9, 11), (4, 3, 3, 3), {}),
    "padded": ((2, 3, 9, 11), (5, 3, 3, 3), {"padding": 1}),
    "every option": (
        (2, 3, 9, 11), (4, 3, 3, 2),
        {"padding": [(1, 0), (2, 1)], "strides": (2, 3), "dilation": (2, 1)},
    ),
    "many channels": ((1, 130, 6, 6), (140, 130, 3, 3), {"padding": 1}),
    "rows longer than a bank": ((1, 2, 3, 700), (3, 2, 1, 5), {}),
    "blocks": ((2, 3, 8, 12), (5, 3, 4, 4), {"strides": 4}),
    "groups": ((2, 6, 9, 11), (4, 3, 3, 2), {"groups": 2}),
    "each channel": ((2, 130, 9, 11), (130, 1, 3, 3), {"groups": 130, "padding": 1}),
    "rows": ((2, 6, 19), (4, 6, 3), {"padding": 1, "strides": 2}),
    "volumes": ((2, 3, 5, 9, 8), (4, 3, 3, 3, 3), {"padding": 1, "strides": (2, 1, 1)}),
    "patches": ((4, 3, 2, 8, 8), (20, 3, 2, 4, 4), {"strides": (2, 4, 4)}),
}  # fmt: skip


def full_options(rank: int, options: dict[str, Any]) -> dict[str, Any]:
    every = {"strides": 1, "padding": 0, "dilation": 1} | options
    each = {k: (v,) * rank if isinstance(v, int) else tuple(v) for k, v in every.items()}
    return each | {"groups": options.get("groups", 1)}


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_convolutions_are_sums_over_windows(case, dtype, versioned_results):
    shape, kernel, options = case
    x, w, bias = normal(*shape, dtype=dtype), normal(*kernel, dtype=dtype), normal(kernel[0])
    convolve = CONVOLUTIONS[len(shape) - 3]
    made = compile(lambda x, w, b: convolve(x, w, b, **options).astype(dtype), x, w, bias)
    exact = reference(x, w.astype(np.float64), bias, **full_options(len(shape) - 2, options))

    assert is_close(made(x, w, bias), exact)
    assert is_close(versioned_results(made, (x, w, bias)), exact)
    assert is_close(convolve(x, w, bias, **options), exact)


@pytest.mark.parametrize("nki", VERSIONS)
def test_images_with_channels_last_then_a_function(nki, versioned_results):
    x, w = normal(1, 9, 11, 3), normal(4, 3, 3, 3)
    made = compile(
        lambda x, w: np.maximum(conv2d(x, w, padding=1, layout="NHWC"), 0), x, w, nki=nki
    )
    options = full_options(2, {"padding": 1})
    exact = np.maximum(reference(np.moveaxis(x, -1, 1), w, None, **options), 0)

    assert is_close(versioned_results(made, (x, w)), np.moveaxis(exact, 1, -1))


LAST: dict[str, Case] = {
    "prime width": ((2, 3, 9, 11), (5, 3, 3, 3), {"padding": 1}),
    "many channels": ((1, 130, 6, 6), (140, 130, 3, 3), {"padding": 1}),
    "columns that no window reads": ((1, 4, 8, 10), (5, 4, 3, 3), {"strides": 2}),
    "strides and padding on one side": (
        (1, 8, 12, 14), (8, 8, 3, 3), {"strides": 2, "padding": [(1, 0), (0, 1)]},
    ),
    "bands of rows": ((1, 2, 100, 192), (3, 2, 3, 3), {"padding": 1}),
    "each channel": ((2, 130, 9, 12), (130, 1, 3, 3), {"groups": 130, "padding": 1}),
    "groups": ((1, 4, 8, 8), (6, 2, 3, 3), {"groups": 2, "padding": 1}),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("case", LAST.values(), ids=LAST)
def test_images_with_channels_last(case, dtype, versioned_results):
    shape, kernel, options = case
    x, w, bias = normal(*shape, dtype=dtype), normal(*kernel, dtype=dtype), normal(kernel[0])
    last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    made = compile(
        lambda x, w, b: conv2d(x, w, b, layout="NHWC", **options).astype(dtype), last, w, bias
    )
    exact = reference(x, w.astype(np.float64), bias, **full_options(2, options))

    assert is_close(made(last, w, bias), np.moveaxis(exact, 1, -1))
    assert is_close(versioned_results(made, (last, w, bias)), np.moveaxis(exact, 1, -1))


def test_images_with_channels_last_are_moved_once():
    made = compile(
        lambda x, w, b: conv2d(x, w, b, padding=1, layout="NHWC"), "f32[1,56,56,64]",
        "f32[64,64,3,3]", "f32[64]",
    )  # fmt: skip

    assert made.stats.hbm_bytes == 4 * (2 * 56 * 56 * 64 + 64 * 64 * 9 + 64)
    assert made.stats.instructions <= 165


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_torch_agrees_with_the_sums(case):
    torch = pytest.importorskip("torch", reason="torch is the second oracle: it is not installed")
    shape, kernel, options = case
    if any(not isinstance(p, int) for p in full_options(len(shape) - 2, options)["padding"]):
        options = options | {"padding": 1}
    x, w = normal(*shape), normal(*kernel)
    names = {"strides": "stride"}
    found = getattr(torch.nn.functional, f"conv{len(shape) - 2}d")(
        torch.tensor(x), torch.tensor(w), **{names.get(k, k): v for k, v in options.items()}
    )

    every = full_options(len(shape) - 2, options)
    assert is_close(found.numpy(), reference(x, w.astype(np.float64), None, **every))


POOLS: dict[str, dict[str, Any]] = {
    "blocks": {"window": 2},
    "overlapping": {"window": 3, "strides": 2, "padding": 1},
    "of rows": {"window": (1, 3), "strides": (1, 1)},
}


@pytest.mark.parametrize("pool", [max_pool, avg_pool])
@pytest.mark.parametrize("options", POOLS.values(), ids=POOLS)
def test_pooling(pool, options, versioned_results):
    x = normal(2, 6, 8, 12)
    fill = -np.inf if pool is max_pool else 0.0
    each = {k: (v,) * 2 if isinstance(v, int) else v for k, v in options.items()}
    seen = [
        part for _, part in windows(
            x, each["window"], each.get("strides", each["window"]), each.get("padding", (0, 0)),
            (1, 1), fill,
        )
    ]  # fmt: skip
    exact = np.max(seen, 0) if pool is max_pool else np.mean(seen, 0)

    made = compile(lambda x: pool(x, **options), x)
    assert is_close(made(x), exact)
    assert is_close(versioned_results(made, (x,)), exact)
    assert is_close(pool(x, **options), exact)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("sizes", [(30, 4), (5, 30), (7, 7), (9, 1)])
def test_numpys_convolve(mode, sizes, versioned_results):
    a, v = (normal(n) for n in sizes)
    made = compile(lambda a, v: np.convolve(a, v, mode), a, v)

    exact = np.convolve(a.astype(np.float64), v.astype(np.float64), mode)
    assert is_close(versioned_results(made, (a, v)), exact)


BOUNDS: dict[str, tuple[Callable[..., Any], tuple[str, ...], int, float]] = {
    "64 by 64 channels": (
        lambda x, w, b: conv2d(x, w, b, padding=1),
        ("f32[1, 64, 56, 56]", "f32[64, 64, 3, 3]", "f32[64]"), 100, 2.0,
    ),
    "each of 256 channels": (
        lambda x, w: conv2d(x, w, padding=1, groups=256),
        ("f32[1, 256, 56, 56]", "f32[256, 1, 3, 3]"), 80, 6.5,
    ),
    "64 patches": (
        lambda x, w: conv3d(x, w, strides=(2, 16, 16)),
        ("f32[64, 3, 2, 16, 16]", "f32[1152, 3, 2, 16, 16]"), 198, 7.5,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BOUNDS.values(), ids=BOUNDS)
def test_windows_are_not_copied_in_hbm(case):
    function, specs, instructions, mib = case
    stats = compile(function, *specs).stats

    assert stats.instructions <= instructions
    assert stats.hbm_bytes <= mib * 2**20


MISTAKES: dict[str, tuple[Callable[..., Any], type[Exception], str]] = {
    "larger than the image": (lambda x, w: conv2d(x, w, dilation=9), ValueError, "larger than"),
    "groups": (lambda x, w: conv2d(x, w, groups=2), ValueError, "does not divide"),
    "channels": (lambda x, w: conv2d(x[:, :2], w), ValueError, "do not take 2 channels"),
    "rank": (lambda x, w: conv3d(x, w), ValueError, "of 5 axes"),
    "layout": (lambda x, w: conv2d(x, w, layout="CHWN"), ValueError, "layout"),
    "padding": (lambda x, w: conv2d(x, w, padding=-1), ValueError, "padding 0"),
}


@pytest.mark.parametrize(("function", "error", "said"), MISTAKES.values(), ids=MISTAKES)
def test_a_convolution_that_does_not_fit_is_rejected(function, error, said):
    with pytest.raises(error, match=said):
        trace(function, "f32[2, 3, 5, 7]", "f32[4, 3, 3, 3]")


def random_case(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    groups = int(rng.choice([1, 1, 2, 3]))
    inputs, outputs = (groups * int(rng.integers(1, 4)) for _ in range(2))
    rank = int(rng.integers(1, 4))
    kernel = rng.integers(1, 4, rank).tolist()
    options = {
        "strides": tuple(rng.integers(1, 4, rank).tolist()),
        "dilation": tuple(rng.integers(1, 3, rank).tolist()),
        "padding": [tuple(rng.integers(0, 3, 2).tolist()) for _ in range(rank)], "groups": groups,
    }  # fmt: skip
    image = [int(rng.integers((k - 1) * d + 1, 12)) for k, d in
             zip(kernel, options["dilation"], strict=True)]  # fmt: skip
    shape = (int(rng.integers(1, 3)), inputs, *image)
    return shape, (outputs, inputs // groups, *kernel), options


def check_random(seed: int, results: Any) -> None:
    shape, kernel, options = random_case(seed)
    x, w = normal(*shape, seed=seed), normal(*kernel, seed=seed + 1)
    convolve = CONVOLUTIONS[len(shape) - 3]
    made = compile(lambda x, w: convolve(x, w, **options), x, w, nki=VERSIONS[seed % 3])
    exact = reference(x, w.astype(np.float64), None, **full_options(len(shape) - 2, options))

    assert is_close(results(made, (x, w)), exact)


@pytest.mark.parametrize("seed", range(9))
def test_random_convolutions(seed, versioned_results):
    check_random(seed, versioned_results)


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(100, 700))
def test_many_random_convolutions(seed, versioned_results):
    check_random(seed, versioned_results)
