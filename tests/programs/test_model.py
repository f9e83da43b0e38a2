"""The calibration programs are what their recipes say: legal, with these instructions and bytes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.model.__main__ import main
from benchmarks.model.counts import count
from benchmarks.model.fit import FREE, Fit
from benchmarks.model.library import library_rows
from benchmarks.model.points import Point, all_points, unmodelled
from benchmarks.model.predict import Model, Prediction, disorders, summary
from benchmarks.model.spread import fitted_spreads, half_widths
from benchmarks.model.table import BEGIN, END, order_lines, point_line, point_row

from neuroncore.program import verify
from neuroncore.timeline import constants
from neuroncore.work import costs

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
    "u26": {"tensor_tensor": 256, "dma_copy": 2},
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
    "g0": {"nc_matmul": M * N * K, "dma_copy": 2 * M * N * K + M * N, "activation": M * N},
    "g3": {
        "nc_matmul": M * N * K, "dma_copy": 64 * (64 * 6 + 8), "activation": M * N,
    },
    "d0": {
        "tensor_tensor": 65_536, "tensor_reduce": 65_536, "memset": 32, "dma_copy": 4 + 2 * 32,
    },
}  # fmt: skip

READ_OFF = ("inferred", "measured")
"""Confidences of constants that come from a published measurement."""

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

    found = [finding.rule for finding in verify(program)]

    assert program.target == point.device
    assert found == ["CapacityError"] * (point.id in FULL)


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


def test_constants_that_points_give_exist_and_inferred_ones_say_where_they_are_from():
    given = {name for point in all_points() for name in point.gives}
    table = costs()["constants"]

    assert given <= set(table)
    assert {name for name, row in table.items() if row["confidence"] in READ_OFF} <= given


def predictions(*ids: str) -> list[Prediction]:
    model = Model()
    return [model.predict(POINTS[i]) for i in ids]


def made(point: str, predicted: float) -> Prediction:
    """A prediction that a test makes up."""
    return Prediction(POINTS[point], predicted)


@pytest.mark.parametrize(
    ("name", "cycles", "ghz"),
    [("u04", 4096 + 354, 1.2), ("u10", 128 + 354, 1.2), ("u33", 512 + 144, 0.96)],
)
def test_an_instruction_seen_alone_lasts_as_long_as_the_documents_say(name, cycles, ghz):
    (found,) = predictions(name)

    assert found.predicted == pytest.approx(cycles / ghz, rel=0.01)


def test_a_stream_is_read_where_it_is_steady():
    (steady,) = predictions("u30")

    assert steady.predicted == pytest.approx(2 * 512 / 2.4, rel=0.01)  # not the cold first ones


def test_a_rate_is_a_fraction_of_the_plateau():
    small, plateau = predictions("curve_512", "curve_32768")

    assert plateau.predicted == 1
    assert 0 < small.predicted < 0.5


def test_errors_are_summed_up_without_the_reference():
    exact = POINTS["u04"].measured
    errors = [made("u04", exact * factor) for factor in (1.1, 0.8, 1.3, 1.0)]

    middle, ninth, count = summary([*errors, made("curve_32768", 5.0)])

    assert (middle, count) == (pytest.approx(0.15), 4)
    assert ninth == pytest.approx(0.27)  # 0.2 + 0.7 · (0.3 - 0.2): rank 0.9 · 3 of 0, .1, .2, .3


def test_versions_of_a_ladder_in_the_wrong_order_are_named():
    wrong = [made("a1", 200e3), made("a2", 300e3)]
    close = [made("k3", 29e6), made("k5", 28e6)]  # 28.20 and 28.30 ms: no order is asked for

    assert [(a.point.id, b.point.id) for a, b in disorders([*wrong, *close])] == [("a1", "a2")]
    said = list(order_lines([*wrong, *close]))
    assert said == ["order: 0 of 1 pairs that differ by 5% are right", "  a1 was slower than a2"]


def test_a_line_shows_both_numbers_in_the_unit_of_the_source():
    line = point_line(made("u02", 2551.5))

    assert " ".join(line.split()) == "u02 trn2 2.551 us 2.43 us +5.0 % (± 0.4 %)"


def made_up(errors: list[float], effects: list[float]) -> Fit:
    """A fit of made-up kernels, of which only the first free constant moves the times."""
    points = [POINTS[name] for name in ("c14", "a1", "k2", "m1")][: len(errors)]
    columns = np.zeros((len(errors), len(FREE)))
    columns[:, 0] = effects
    return Linear(points, np.array(errors), columns)


class Linear(Fit):
    """A fit whose points are moved by their effects instead of being estimated anew."""

    def errors_with(self, change: np.ndarray, mine: np.ndarray) -> np.ndarray:
        return self.errors[mine] - self.effects[mine] @ change


def test_a_constant_that_all_points_show_alike_is_fitted_to_them():
    change = made_up([0.2, 0.2, 0.2, 0.2], [1, 1, 1, 1]).solve(np.full(4, True))

    assert change[0] == pytest.approx(0.2, abs=0.02)


def test_one_point_that_contradicts_the_others_counts_less():
    change = made_up([0.1, 0.1, 0.1, 3.0], [1, 1, 1, 1]).solve(np.full(4, True))

    assert change[0] == pytest.approx(0.1, abs=0.06)


def test_a_constant_that_no_point_shows_goes_back_to_its_document():
    fit = made_up([0.5, 0.5, 0.5, 0.5], [0, 0, 0, 0])

    change = fit.solve(np.full(4, True))

    launch = costs()["constants"]["LAUNCH"]
    assert np.exp(change[0]) == pytest.approx(launch["published"]["trn1"] / launch["value"]["trn1"])


def test_a_constant_whose_points_are_left_out_goes_back_to_another_document():
    fit = made_up([0.5, 0.5, 0.5, 0.5], [0, 0, 0, 0])

    change = fit.solve(np.array([False, True, True, False]))  # c14 and m1 give LAUNCH

    launch = costs()["constants"]["LAUNCH"]
    assert np.exp(change[0]) == pytest.approx(launch["otherwise"] / launch["value"]["trn1"])


def test_costs_json_holds_what_the_fit_found():
    table = costs()["constants"]

    fitted = {name for name, row in table.items() if "published" in row}

    assert fitted == {name for name, _ in FREE}


def test_rows_of_the_library_have_a_time_and_are_no_points():
    rows = library_rows()

    assert len({row.id for row in rows} | POINTS.keys()) == len(rows) + len(POINTS)
    assert all(row.value > 0 and row.cores in (1, 2) and row.inputs for row in rows)


def test_a_left_out_point_has_no_part_in_its_constants():
    fit = made_up([0.2, 0.2, 0.2, 0.8], [1, 1, 1, 1])

    errors = fit.left_out(lambda point: point.id)

    assert errors[3] == pytest.approx(0.6, abs=0.03)


def test_left_out_points_are_estimated_anew_with_the_constants_of_the_others():
    point, change = POINTS["c14"], np.zeros(len(FREE))
    fit, change[0] = Fit([point], np.zeros(1), np.zeros((1, len(FREE)))), 0.5

    [error] = fit.errors_with(change, np.array([True]))

    launch = constants().at("trn1")["LAUNCH"] * np.exp(0.5)
    again = Model(constants().but("LAUNCH", "trn1", launch)).predict(point)
    assert error == pytest.approx(np.log(point.measured / again.predicted))


def test_a_given_spread_counts_when_the_others_are_found():
    errors = np.abs(np.random.default_rng(27).normal(0, [0.1] * 500 + [0.4] * 500))
    shares = np.repeat(np.eye(2), 500, axis=0)

    spreads = fitted_spreads(errors, np.zeros(1000), shares, np.array([1.0, np.nan]))

    inside = errors <= half_widths(np.zeros(1000), shares, spreads)
    assert spreads[0] == 1 and spreads[1] < 0.4
    assert inside[:500].all() and np.mean(inside[500:]) == pytest.approx(0.6, abs=0.03)


def test_spreads_leave_a_fifth_of_the_errors_outside():
    errors = np.abs(np.random.default_rng(26).normal(0, [0.1] * 500 + [0.4] * 500))
    shares = np.repeat(np.eye(2), 500, axis=0)
    known = np.zeros(1000)

    spreads = fitted_spreads(errors, known, shares)

    assert spreads == pytest.approx([0.1, 0.4], rel=0.15)
    assert np.mean(errors <= half_widths(known, shares, spreads)) == pytest.approx(0.8, abs=0.03)


def test_rows_without_a_program_give_their_reason():
    rows = unmodelled()

    assert len(POINTS) + len(library_rows()) + len(rows) >= 140
    assert all(row["why"] and row["cite"] and row["id"] not in POINTS for row in rows)


def test_the_last_line_sums_up_the_explicit_points_and_those_that_gave_no_constant(capsys):
    assert main(["--section", "4"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["a1", "a2", "a3"]
    row = next(line for line in lines if line.startswith("a library "))
    cells = r"6 +\d+\.\d% +\d+\.\d% +\d of 6 +\d+ of \d+ +\d of 6"
    assert re.fullmatch(f"a library +{cells}", row), row
    share = r"median \d+\.\d % p90 \d+\.\d % \(8 points\)"
    assert re.fullmatch(f"{share}; of points that gave no constant {share}", lines[-1])


def test_the_table_is_written_as_a_page(tmp_path, capsys):
    page = tmp_path / "table.md"

    main(["--section", "4", "--write", str(page)])

    rows = [line.split(" | ") for line in page.read_text().splitlines() if line.startswith("| a")]
    assert [row[0] for row in rows][:2] == ["| a1", "| a2"]
    assert [row[3] for row in rows][:2] == ["366 us", "262 us"]
    assert capsys.readouterr().out.splitlines()[-1] in page.read_text()


def test_a_point_about_an_instruction_that_is_not_played_says_so():
    other = replace(POINTS["u04"], of="tensor_copy")

    with pytest.raises(ValueError, match=r"u04: no pass .* of tensor_copy was played"):
        Model().predict(other)


def test_the_published_table_is_what_the_model_says():
    """When this fails: python -m benchmarks.model --write docs/model.md"""
    page = Path(__file__).parents[2].joinpath("docs", "model.md").read_text()
    model = Model()

    rows = [point_row(model.predict(point)) for point in POINTS.values()]

    published = page.partition(BEGIN)[2].partition(END)[0]
    assert [line for line in published.splitlines() if " | trn" in line] == rows
