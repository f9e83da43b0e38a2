"""NumPy's common names, through the emitted source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Function = Callable[..., Any]

MOVES: dict[str, Function] = {
    "vstack": lambda x: np.vstack([x, x[0], x[:2]]),
    "hstack": lambda x: (np.hstack([x, x[:, :1]]), np.hstack([x[0], x[1, :2]])),
    "dstack": lambda x: np.dstack([x, x + x]),
    "column_stack": lambda x: np.column_stack([x[:, 0], x, x[:, 1]]),
    "append": lambda x: (np.append(x, x[:1], axis=0), np.append(x, x[0])),
    "pad": lambda x: np.pad(x, 2),
    "pad with": lambda x: np.pad(x, ((1, 0), (2, 3)), constant_values=((5, 6), (7, 8))),
    "pad edge": lambda x: np.pad(x, ((3, 1), (0, 2)), mode="edge"),
    "pad reflect": lambda x: np.pad(x, (2, 3), mode="reflect"),
    "pad symmetric": lambda x: np.pad(x, ((2, 0), (1, 1)), "symmetric"),
    "pad wrap": lambda x: np.pad(x, ((2, 1), (0, 3)), "wrap"),
    "repeat": lambda x: (np.repeat(x, 3, axis=1), x.repeat(2), np.repeat(x[:3], [2, 0, 1], axis=0)),
    "tile": lambda x: (np.tile(x, 2), np.tile(x, (2, 1, 3)), np.tile(x[0], (3, 1))),
    "roll": lambda x: (np.roll(x, 1), np.roll(x, -2, axis=0), np.roll(x, (1, 3), axis=(0, 1))),
    "flips": lambda x: (np.flip(x), np.flipud(x), np.fliplr(x), np.rot90(x), np.rot90(x, 3)),
    "take": lambda x: (np.take(x, [0, 2, 4, -1], axis=0), x.take([[1, 1], [3, 2]], axis=1)),
    "take modes": lambda x: (np.take(x, [99], 0, mode="clip"), x.take([-9, 70], 1, mode="wrap")),
    "diagonal": lambda x: (np.diagonal(x), x.diagonal(1), np.diagonal(x, -2), np.diag(x, 2)),
    "diag": lambda x: (np.diag(x[0]), np.diag(x[0], 1), np.diag(x[0], -2)),
    "atleast": lambda x: (np.atleast_1d(x[0, 0]), np.atleast_2d(x[0]), np.atleast_3d(x[0], x)[1]),
    "broadcast_arrays": lambda x: tuple(np.broadcast_arrays(x[:, :1], x[0])),
    "meshgrid": lambda x: tuple(np.meshgrid(x[0], x[:3, 0], x[1, :2])),
    "meshgrid ij": lambda x: tuple(np.meshgrid(x[0], x[:3, 0], indexing="ij")),
    "splits": lambda x: (*np.array_split(x, 4), *np.hsplit(x, 2), *np.vsplit(x, [1, 4])),
    "orders": lambda x: (np.swapaxes(x, 0, 1), np.moveaxis(x, 0, 1), np.matrix_transpose(x)),
    "shapes": lambda x: (np.ravel(x), x.flatten(), np.squeeze(x[None]), np.expand_dims(x, 1)),
    "like": lambda x: (np.zeros_like(x), np.ones_like(x), np.full_like(x, 3)),
    "select": lambda x: np.select([x > 2, x < -2], [x, x + x], 7),
    "real": lambda x: (np.real(x), np.conj(x), x.conj(), np.positive(x)),
}
"""Functions that choose and move elements: bit for bit, of every dtype."""


@pytest.mark.parametrize("dtype", ["float32", "int32", "int8"])
@pytest.mark.parametrize("function", MOVES.values(), ids=MOVES)
def test_functions_that_move_elements(moves, function, dtype):
    moves(function, (np.arange(42).reshape(7, 6) % 23 - 11).astype(dtype))


COUNTS: dict[str, Function] = {
    "cumsum": lambda x: (np.cumsum(x), x.cumsum(0), np.cumsum(x, axis=1)),
    "cumprod": lambda x: np.cumprod(x, axis=1),
    "accumulate": lambda x: (np.add.accumulate(x), np.maximum.accumulate(x, axis=1)),
    "minimum.accumulate": lambda x: np.minimum.accumulate(x),
    "cumulative_sum": lambda x: np.cumulative_sum(x, axis=1, include_initial=True),
    "diff": lambda x: (np.diff(x), np.diff(x, 2, axis=0), np.diff(x, prepend=0, append=x[:, :1])),
    "ptp": lambda x: (np.ptp(x), np.ptp(x, axis=0)),
    "count_nonzero": lambda x: (np.count_nonzero(x), np.count_nonzero(x, axis=1, keepdims=True)),
    "outer": lambda x: (np.outer(x[0], x[1]), np.add.outer(x[0], x[:, 0])),
    "inner": lambda x: (np.inner(x, x), np.vdot(x, x)),
    "tensordot": lambda x: (np.tensordot(x, x, 2), np.tensordot(x, x, ([0], [0]))),
    "einsum": lambda x: (np.einsum("ij,kj->ik", x, x), np.einsum("ij->j", x)),
    "trace": lambda x: (np.trace(x), x.trace(1)),
    "array_equal": lambda x: (np.array_equal(x, x), np.array_equal(x, x[::-1])),
    "reduce": lambda x: (np.maximum.reduce(x), np.minimum.reduce(x, axis=1)),
    "subtract.reduce": lambda x: (np.subtract.reduce(x), np.subtract.reduce(x[0], initial=9)),
    "bits.reduce": lambda x: (np.bitwise_xor.reduce(x, 1), np.bitwise_and.reduce(x, None)),
    "or.reduce": lambda x: (np.bitwise_or.reduce(x, keepdims=True), np.logical_xor.reduce(x)),
    "fmax.reduce": lambda x: (np.fmax.reduce(x), np.fmin.reduce(x, (0, 1))),
    "cross": lambda x: np.cross(x[:, :3], x[:, 3:]),
    "kron": lambda x: np.kron(x[:2], x[2:4, :2]),
    "tens": lambda x: (np.round(x, -1), x.round(-2), np.round(x, -9), np.round(x, -10)),
    "floor_divide": lambda x: (np.floor_divide(x, 3), *np.divmod(x, 5), np.fmod(x, 4)),
    "fmod by a negative": lambda x: np.fmod(x, np.zeros_like(x) - 3),
}


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8"])
@pytest.mark.parametrize("function", COUNTS.values(), ids=COUNTS)
def test_functions_of_integers(exactly, function, dtype):
    exactly(
        function, (np.arange(42).reshape(7, 6) * 41 % 23 - 11 * (dtype[0] == "i")).astype(dtype)
    )


SMOOTH: dict[str, Function] = {
    "fabs": lambda x, y: (np.fabs(x), np.square(x), np.reciprocal(y), np.true_divide(x, y)),
    "hypot": np.hypot,
    "logaddexp": lambda x, y: (np.logaddexp(x, y), np.logaddexp2(x, y), np.logaddexp(x, x)),
    "exp2": lambda x, y: np.exp2(x),
    "logs": lambda x, y: (np.log2(y), np.log10(y)),
    "cbrt": lambda x, y: np.cbrt(x),
    "hyperbolic": lambda x, y: (np.sinh(x), np.cosh(x), np.arcsinh(x), np.tan(x)),
    "angles of tangents": lambda x, y: (np.arctan(x), np.arctan2(x, y), np.arctan2(y, -x)),
    "angles of sines": lambda x, y: (np.arcsin(x / 8), np.arccos(x / 8), np.arccosh(y + 0.5)),
    "cross": lambda x, y: (np.cross(x[:, :3], y[:, 2:5]), np.linalg.cross(x[0, :3], y[:, :3])),
    "cross along": lambda x, y: np.cross(x[:3], y[3:6], axis=0),
    "kron": lambda x, y: (np.kron(x[:3], y[:2, :3]), np.kron(x[0], y[:2])),
    "log-sums": lambda x, y: (np.logaddexp.reduce(x, -1), np.logaddexp2.reduce(x, keepdims=True)),
    "arctanh": lambda x, y: np.arctanh(x / 8),
    "copysign": lambda x, y: (np.copysign(y, x), np.copysign(x, -y)),
    "heaviside": lambda x, y: (np.heaviside(x, y), np.heaviside(x * 0, y)),
    "angles": lambda x, y: (np.degrees(x), np.deg2rad(x)),
    "fmod": lambda x, y: np.fmod(x, y),
    "fmax": lambda x, y: (np.fmax(x, y), np.fmin(x, y)),
    "float_power": lambda x, y: np.float_power(y, x),
    "sinc": lambda x, y: np.sinc(x),
    "polyval": lambda x, y: np.polyval([1, -2, 3], x),
    "average": lambda x, y: (np.average(x), np.average(x, axis=1, weights=y)),
    "average of rows": lambda x, y: np.average(x, axis=0, weights=y[:, 0]),
    "norms": lambda x, y: tuple(
        np.linalg.norm(x, o, axis=1) for o in (None, 1, 2, np.inf, -np.inf)
    ),
    "matrix norms": lambda x, y: tuple(np.linalg.norm(x, o) for o in ("fro", 1, -1, np.inf)),
    "norm": lambda x, y: (np.linalg.norm(x), np.linalg.norm(x, axis=0, keepdims=True)),
    "nan means": lambda x, y: (np.nansum(x, 0), np.nanmean(x, 1), np.nanmax(x), np.nanmin(x, 1)),
    "trapezoid": lambda x, y: (np.trapezoid(x, dx=0.5), np.trapezoid(x, y[0])),
    "spread": lambda x, y: (np.var(x, axis=1, correction=1), np.std(x, correction=1)),
    "running": lambda x, y: (np.cumsum(x, 1), np.cumprod(y, 1), np.cumsum(x, 0), x.cumsum()),
    "running extremes": lambda x, y: (np.maximum.accumulate(x, 1), np.minimum.accumulate(x)),
    "normalised": lambda x, y: (x - x.max(-1, keepdims=True)) / np.cumsum(y, -1),
    "einsum": lambda x, y: (np.einsum("ij,ij->i", x, y), np.einsum("ij,kj,kl->il", x, y, x)),
    "einsum batch": lambda x, y: np.einsum("bi,bj->bij", x, y, optimize="greedy"),
    "einsum dots": lambda x, y: (np.einsum("...j,...j", x, y), np.einsum("ij", x.T)),
    "products": lambda x, y: (np.inner(x, y), np.vdot(x, y), np.outer(x[0], y[0])),
    "vecdot": lambda x, y: (np.vecdot(x, y), np.linalg.vecdot(x, y)),
    "tensordot": lambda x, y: np.tensordot(x, y, ((0,), (0,))),
    "isclose": lambda x, y: (np.isclose(x, x + 1e-7), np.allclose(x, x), np.isclose(x, y)),
    "rounded": lambda x, y: (np.rint(x * 4), np.around(x * 4), np.fix(x * 4)),
}


@pytest.mark.parametrize("function", SMOOTH.values(), ids=SMOOTH)
def test_functions_of_floats(assert_lowers_right, normal, function):
    assert_lowers_right(function, normal(130, 9), np.abs(normal(130, 9, seed=1)) + 0.5)


SPECIAL = np.array([[0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.5e38, -1e-38]], np.float32)
TINY = np.array([[0, 1e-45, -3e-45, 1e-39, 2e-38, 1e-20, 3e38, -1e38, 1e30]], np.float32)
EDGES: dict[str, Function] = {
    "hypot": np.hypot, "arctan2": np.arctan2, "arctan": lambda x, y: np.arctan(x),
    "inverses": lambda x, y: (np.arcsin(x), np.arccos(x), np.arccosh(x)),
    "log-sums": lambda x, y: (np.logaddexp.reduce(x[:, :2]), np.logaddexp.reduce(x[:, 3:4])),
    "tens": lambda x, y: np.round(x, -1), "logaddexp": np.logaddexp,
    "copysign": np.copysign, "fmax": np.fmax,
    "mean of none": lambda x, y: (np.mean(x[:, :2], 0, where=x[:, :2] > 99), x.mean(where=False)),
    "fmin": np.fmin, "heaviside": np.heaviside, "cbrt": lambda x, y: np.cbrt(x),
    "signbit": lambda x, y: np.signbit(x), "isinf": lambda x, y: (np.isposinf(x), np.isneginf(x)),
    "nan_to_num": lambda x, y: (np.nan_to_num(x), np.nan_to_num(x, nan=3, posinf=1, neginf=-1)),
    "exp2": lambda x, y: np.exp2(np.clip(x, -100, 100)),
    "isclose": lambda x, y: (np.isclose(x, y), np.isclose(x, y, equal_nan=True)),
    "array_equal": lambda x, y: (np.array_equal(x, x), np.array_equal(x, x, equal_nan=True)),
    "running": lambda x, y: np.cumsum(x[:, 5:], 1), "running nan": lambda x, y: np.cumsum(x, 1),
    "nansum": lambda x, y: (np.nanmax(x[:, 4:]), np.nanmin(x[:, 4:5], 1), np.nanprod(x[:, 4:7])),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("function", EDGES.values(), ids=EDGES)
def test_zeros_infinities_and_nan(agree, function):
    agree(function, np.repeat(SPECIAL, 9, 0), np.ascontiguousarray(np.repeat(SPECIAL, 9, 0).T))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("function", [np.hypot, np.arctan2])
def test_quotients_of_the_smallest_and_the_largest_numbers(agree, function):
    agree(function, np.repeat(TINY, 9, 0) / 2, np.ascontiguousarray(np.repeat(TINY, 9, 0).T) / 2)


def test_floats_are_rounded_to_tens_with_ties_to_even(moves):
    x = np.array([[5, 15, 25, -35, 2500, 7500, 1e6 + 5, 123456.0, 25.000002, 14.999999]], "f4")

    moves(lambda x: (np.round(x, -1) + 0, np.around(x, -3) + 0), x)


def test_sinc_is_one_beside_zero(assert_lowers_right):
    assert_lowers_right(
        np.sinc, np.array([[0, 1e-45, -1e-38, 1e-12, 9e-6, 2e-5, -1e-3, 0.5]], np.float32)
    )


@pytest.mark.parametrize("length", [127, 4096, 4097, 8192, 9000])
def test_running_sums_of_long_rows(exactly, assert_lowers_right, normal, length):
    assert_lowers_right(lambda x: np.cumsum(x, axis=-1), normal(3, length))
    exactly(lambda x: np.cumsum(x > 0, axis=-1), normal(3, length))


def test_running_sums_of_integers_wrap(exactly):
    x = np.random.default_rng(0).integers(-(2**31), 2**31, (5, 300)).astype(np.int32)

    exactly(lambda x: (np.cumsum(x, 1), np.cumprod(x | 1, 1), np.maximum.accumulate(x, 1)), x)


def test_a_running_sum_is_one_instruction_for_rows_on_all_partitions(assert_lowers_right, normal):
    kernel = assert_lowers_right(lambda x: np.cumsum(x, axis=1), normal(128, 2048))

    assert kernel.stats.instructions == 4
    assert "nisa.tensor_tensor_scan" in kernel.source
