"""The calibration programs are what their recipes say: legal, with these instructions and bytes."""

from __future__ import annotations

import pytest
from benchmarks.model.counts import count
from benchmarks.model.points import Point, all_points

from neuroncore.errors import CapacityError
from neuroncore.program import verify

POINTS = {point.id: point for point in all_points()}
PROGRAMS = list({point.key: point for point in reversed(POINTS.values())}.values())[::-1]
"""One point of each program."""

# 128 + 32 + 64 KiB per partition: the published kernel fills SBUF to the last byte, of which the
# verifier keeps a reserve.
FULL = {"k5"}

# (row tiles, column tiles, contraction tiles) of the 4096 x 8192 x 8192 product
M, N, K = 32, 16, 64
TILE = 128 * 128 * 4  # bytes of a float32 tile of 128 columns

CALLS = {
    "u01": {"dma_copy": 2, "activation": 1},
    "u20": {"activation": 64, "dma_copy": 4},
    "u22": {"nc_matmul": 64, "tensor_copy": 1, "dma_copy": 3},
    "u26": {"tensor_tensor": 1024, "dma_copy": 2},
    "u30": {"nc_matmul": 64, "tensor_copy": 1, "dma_copy": 3},
    "k2": {"nc_matmul": M * N * K, "dma_copy": 2 * M * N * K + M * N, "tensor_copy": M * N},
    "k3": {"nc_matmul": M * N * K, "dma_copy": M * K + M * N * K + M * N, "tensor_copy": M * N},
    "k5": {
        "nc_matmul": M * N * K, "tensor_tensor": M * N * K // 8, "memset": M * N,
        "tensor_copy": M * N, "dma_copy": 8 * (8 * (8 + 2 * 8) + M),
    },
    "a1": {"nc_matmul": 16 * 4 * 16, "memset": 16, "tensor_copy": 16, "dma_copy": 48},
    "a2": {"nc_matmul": 16 * 4 * 16, "memset": 16, "tensor_copy": 16, "dma_copy": 48},
    "c1": {"tensor_scalar": 25_600, "dma_copy": 3 * 25_600},
    "c3": {"tensor_tensor": 100, "dma_copy": 300},
    "c6": {"tensor_tensor": 2, "dma_copy": 6},
    "c11": {"tensor_scalar": 25_600, "dma_copy": 3 * 25_600},
    "c14": {"tensor_tensor": 1, "dma_copy": 3},
    "m1": {
        "memset": 2, "dma_copy": 5 * 32 + 2, "activation": 32, "tensor_tensor": 4 * 32,
        "nc_matmul": 2 * 32, "tensor_tensor_scan": 32,
    },
    "m3": {
        "memset": 1 + 32, "dma_copy": 3 * 32 + 3 * 512, "activation": 512,
        "tensor_tensor": 4 * 512, "nc_matmul": 2 * 512, "tensor_tensor_scan": 512,
    },
    "m5": {
        "memset": 1 + 32 + 512, "dma_copy": 3 * 32 + 512 + 2 * 8192, "activation": 8192,
        "tensor_tensor": 4 * 8192, "nc_matmul": 2 * 8192, "tensor_tensor_scan": 8192,
        "tensor_copy": 8192,
    },
    "b0": {
        "memset": 2, "dma_copy": 5 * 32 + 2, "activation": 32, "tensor_tensor": 4 * 32,
        "nc_matmul": 8 * 32, "tensor_tensor_scan": 32,
    },
    "n_silu": {
        "memset": 2, "dma_copy": 2 * 224, "activation": 2 * 448, "reciprocal": 448,
        "tensor_tensor": 448,
    },
    "n_matmul": {
        "nc_transpose": 12 * 32 * 40, "activation": 12 * 32 * (40 + 2),
        "nc_matmul": 12 * 32 * 2 * 40, "dma_copy": 1 + 12 * 32 * (5 + 40 + 1),
    },
    "n_rope": {"dma_copy": 4 * 512, "activation": 512, "tensor_tensor": 6 * 512},
    "g0": {"nc_matmul": M * N * K, "dma_copy": 2 * M * N * K + M * N, "tensor_copy": M * N},
    "g3": {
        "nc_matmul": M * N * K, "dma_copy": 64 * (64 * 6 + 8), "tensor_copy": M * N,
    },
    "d0": {
        "tensor_tensor": 65_536, "tensor_reduce": 65_536, "memset": 32, "dma_copy": 4 + 2 * 32,
    },
}  # fmt: skip

BYTES = {
    "u01": (32 * 1024, 32 * 1024),
    "u07": (32 * 1024, 32 * 1024),
    "k2": (M * N * K * (TILE + 4 * TILE), M * N * 4 * TILE),
    "k3": (M * K * TILE + M * N * K * 4 * TILE, M * N * 4 * TILE),
    "k5": (8 * 8192 * 1024 * 4 + 8 * 8192 * 4096 * 4, M * N * 4 * TILE),
    "a1": (2 * 2048 * 2048 * 2, 2048 * 2048 * 2),
    "c1": (2 * 25_600 * 4, 25_600 * 4),
    "c6": (2 * 256_000 * 4, 256_000 * 4),
    "n_silu": (117_440_512, 117_440_512),
    "n_matmul": (9_059_762_176, 201_326_592),
    "n_rope": (268_435_456, 134_217_728),
}
"""Read and written: operand shapes times how often the recipe loads them; for n_ the profile's."""


@pytest.mark.parametrize("point", PROGRAMS, ids=lambda p: p.id)
def test_a_calibration_program_is_legal_on_its_device(point: Point):
    program = point.build()

    found = [finding.violation.error for finding in verify(program)]

    assert program.target == point.device
    assert found == [CapacityError] * (point.id in FULL)


@pytest.mark.parametrize("name", CALLS)
def test_a_calibration_program_executes_the_instructions_of_its_recipe(name):
    assert dict(count(POINTS[name].build()).calls) == CALLS[name]


@pytest.mark.parametrize("name", BYTES)
def test_a_calibration_program_moves_the_bytes_of_its_recipe(name):
    counts = count(POINTS[name].build())

    assert (counts.read_bytes, counts.written_bytes) == BYTES[name]


def test_every_load_of_the_throughput_curve_goes_to_its_own_place():
    for name, point in POINTS.items():
        if name.startswith("curve_"):
            columns, loads = int(point.sizes["COLUMNS"]), int(point.sizes["LOADS"])
            assert columns * 4 == int(name.removeprefix("curve_"))
            assert columns * loads * 4 <= 192 * 1024
            assert count(point.build()).read_bytes == 128 * columns * 4 * loads


def test_ids_are_unique_and_only_the_plateau_of_the_curve_is_not_counted():
    assert len(POINTS) == len(all_points())
    assert [p.id for p in all_points() if p.reference] == ["curve_32768"]
