"""`nki_runtime.estimate`: the time of a kernel, from arrays or from their shapes."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from neuroncore import timeline
from neuroncore.errors import (
    AttributeValueError,
    DTypeError,
    LaunchError,
    ProgramError,
    ShapeError,
    UnsupportedError,
)
from neuroncore.machine.observe import Event, Watcher
from neuroncore.program import capture
from neuroncore.timeline import constants, machine
from nki_runtime import estimate, program_of, simulate, use

FOLDER = Path(__file__).parent
X = np.ones((300, 64), np.float32)


@pytest.fixture
def kernels():
    with use("beta2", nki="0.6"):
        yield SimpleNamespace(**runpy.run_path(str(FOLDER / "time_kernels.py")))


@pytest.fixture
def old_kernels():
    with use("beta1"):
        yield SimpleNamespace(**runpy.run_path(str(FOLDER / "old_time_kernels.py")))


def test_a_kernel_takes_as_long_as_its_captured_program(kernels):
    x = X[0:256]

    program = capture(kernels.rows_doubled, x)

    played = timeline.estimate(program, mode="device")
    assert estimate(kernels.rows_doubled, x).total_ns == played.total_ns


@pytest.mark.parametrize(
    "spec",
    [
        ((300, 64), "float32"),
        ([300, 64], np.float32),
        ((np.int64(300), 64), np.dtype(np.float32)),
        SimpleNamespace(shape=(300, 64), dtype=np.dtype(np.float32)),
        SimpleNamespace(shape=[300, 64], dtype="float32"),
    ],
    ids=["pair", "list-and-class", "numpy-numbers", "object", "object-with-names"],
)
def test_a_spec_stands_for_an_array(kernels, spec):
    assert (
        estimate(kernels.rows_doubled, spec).total_ns == estimate(kernels.rows_doubled, X).total_ns
    )


def test_specs_may_be_inside_containers_and_have_narrow_dtypes(kernels):
    wide = (X[0:128], (X[0:128], 0))
    narrow = (((128, 64), "bf16"), (((128, 64), ml_dtypes.bfloat16), 0))

    assert (
        estimate(kernels.in_place, *narrow).hbm_bytes * 2
        == (estimate(kernels.in_place, *wide).hbm_bytes)
        == 2 * 128 * 64 * 4
    )


def test_numbers_among_the_arguments_are_passed_on(kernels):
    program = estimate(kernels.rows_doubled, X, factor=np.float32(3.0)).program

    assert "operand0=3.0" in str(program)


def test_the_callers_arrays_keep_their_content(kernels):
    x, other = np.zeros((4, 8), np.float32), np.ones((4, 8), np.float32)

    estimate(kernels.in_place, x, (other,))

    assert not x.any()


def test_an_instruction_is_seen_and_not_executed(kernels):
    class Log(Watcher):
        needs_values = False

        def __init__(self) -> None:
            self.held: list[float] = []

        def did(self, event: Event) -> None:
            self.held.append(float(event.views["dst"].array[0, 0]))

    log = Log()
    with use("beta2", nki="0.6", observers=[log]):
        x = np.zeros((4, 8), np.float32)
        estimate(kernels.in_place, x, (np.ones((4, 8), np.float32),))

    assert len(log.held) == 3
    assert log.held[-1] == 0.0  # x: nothing has been written


def test_a_watcher_that_needs_values_gets_them(kernels):
    class Last(Watcher):
        value: float | None = None

        def did(self, event: Event) -> None:
            self.value = float(event.views["dst"].array[0, 0])

    last = Last()
    with use("beta2", nki="0.6", observers=[last]):
        estimate(kernels.in_place, np.zeros((4, 8), np.float32), (np.ones((4, 8), np.float32),))

    assert last.value == 2.0


def test_what_memory_holds_takes_no_time(kernels):
    """The last tile of 300 rows is computed whole, though 84 of its rows were never written."""
    whole, last = estimate(kernels.rows_doubled, X[0:256]), estimate(kernels.rows_doubled, X)

    assert last.num_ops == whole.num_ops + 3


@pytest.mark.parametrize(("target", "name"), [("trn1", "trn1"), ("gen3", "trn2"), ("gen4", "trn3")])
def test_the_target_is_chosen(kernels, target, name):
    assert estimate(kernels.product, ((128, 128), "bf16"), ((128, 512), "bf16"), target=target
                    ).target == name  # fmt: skip


def test_the_target_of_the_switch_counts(kernels):
    with use("beta2", target="trn1"):
        assert estimate(kernels.rows_doubled, X).target == "trn1"


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
def test_a_named_target_counts_more_than_the_switch(kernels, old_kernels, target):
    with use("beta2", nki="0.6", target="trn2"):
        assert estimate(kernels.rows_doubled, X, target=target).target == target
    with use("beta1", target="trn2"):
        found = estimate(
            old_kernels.repeated,
            np.ones((4, 8), np.float32),
            np.ones((1, 1), np.int32),
            target=target,
        )
    assert found.target == target


def test_matmuls_count_once_each(kernels):
    found = estimate(kernels.product, ((128, 128), "bf16"), ((128, 512), "bf16"))

    assert found.flops == 3 * 2 * 128 * 128 * 512


def test_the_mode_is_chosen(kernels):
    assert estimate(kernels.rows_doubled, X, mode="as_written").mode == "as_written"


def test_a_kernel_that_uses_values_is_executed(old_kernels):
    x = np.ones((4, 8), np.float32)

    counts = [
        estimate(old_kernels.repeated, x, np.full((1, 1), n, np.int32)).num_ops for n in (1, 5)
    ]

    assert counts[1] == counts[0] + 4


def test_the_number_of_a_row_that_a_tile_names_does_not_matter_for_time(old_kernels):
    x, number = np.ones((300, 64), np.float32), np.array([[7]], np.int32)

    found = estimate(old_kernels.row_that_an_array_names, x, number)

    spec = ((1, 1), "int32")
    assert estimate(old_kernels.row_that_an_array_names, x, spec).total_ns == found.total_ns


def test_an_index_into_a_reshaped_tensor_costs_what_it_costs_in_one_made_so(old_kernels):
    x, number = np.ones((2, 150, 64), np.float32), np.array([[170]], np.int32)

    found = estimate(old_kernels.row_of_a_reshaped, x, number)

    made_so = estimate(old_kernels.row_that_an_array_names, x.reshape(300, 64), number)
    assert found.total_ns == made_so.total_ns
    assert found.uncertainty.sensitivities == made_so.uncertainty.sensitivities
    with pytest.raises(UnsupportedError, match="of a tensor that has been reshaped"):
        program_of(old_kernels.row_of_a_reshaped, x, number)


def test_tensors_of_one_dimension_are_loaded_with_the_same_index_again_and_again(old_kernels):
    x = ((128 * 64,), np.float32)

    found = [estimate(old_kernels.sum_of_flat, x, x).total_ns for _ in range(2)]

    assert found[0] == found[1] > 0


# -- what it rejects ------------------------------------------------------------------------------


def test_values_of_a_spec_are_rejected(old_kernels):
    with pytest.raises(UnsupportedError, match="repeated uses values in Python, and a spec has no"):
        estimate(old_kernels.repeated, ((4, 8), "float32"), ((1, 1), "int32"))


def test_data_that_moves_without_an_instruction_is_rejected_with_its_line(kernels, old_kernels):
    with pytest.raises(UnsupportedError, match=r"time_kernels\.py:\d+.*data is moved without an"):
        estimate(kernels.zeros_in_hbm, X)
    with pytest.raises(UnsupportedError, match=r"choose with nisa\.affine_select or nl\.where"):
        estimate(old_kernels.lower_triangle, np.ones((128, 128), np.float32))


@pytest.mark.parametrize("given", [X, ((300, 64), "float32")], ids=["array", "spec"])
def test_an_edge_between_instructions_has_a_time_and_no_program(kernels, given):
    assert estimate(kernels.waits, given).total_ns > 0
    with pytest.raises(
        UnsupportedError, match=r"time_kernels\.py:\d+.*depends_on or with_schedule, which no prog"
    ):
        program_of(kernels.waits, given)


def test_a_loop_that_the_device_bounds_has_the_time_of_its_values_and_no_program(kernels):
    times = [estimate(kernels.counted, np.full((1, 1), n, np.int32)).total_ns for n in (2, 4)]

    assert times[0] < times[1]
    with pytest.raises(UnsupportedError, match=r"time_kernels\.py:\d+.*which no program says"):
        program_of(kernels.counted, np.full((1, 1), 2, np.int32))


def test_a_program_over_capacity_says_who_holds_what_and_has_a_time(kernels):
    spec = (128, 1), "float32"

    with pytest.raises(ProgramError, match="tile"):
        program_of(kernels.too_much, spec)

    assert estimate(kernels.too_much, spec).total_ns > 0


@pytest.mark.parametrize("name", ["left_half", "halves_as_rows"])
def test_a_result_that_is_a_part_or_reshaped_does_not_matter_for_time(kernels, name):
    assert estimate(getattr(kernels, name), X).total_ns > 0


def test_a_mistake_in_the_kernel_is_raised_as_ever(kernels):
    with pytest.raises(ShapeError):
        estimate(kernels.product, ((128, 64), "bf16"), ((128, 512), "bf16"))


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (((4, 0), "float32"), "shape"),
        (((4, -1), "float32"), "shape"),
        (((4, 8), "flot32"), "flot32"),
        (((4, 8), np.complex64), "complex64"),
        (((4, 8), "float32", 1), "3 parts"),
        (SimpleNamespace(shape=3, dtype="float32"), "shape 3"),
        (SimpleNamespace(shape=(4, "b"), dtype="float32"), "shape"),
        (((128.5, 512), "float32"), r"shape \(128\.5, 512\)"),
        (((None, 512), np.float32), r"shape \(None, 512\)"),
        (((10**9, 10**9), "float32"), r"shape \(1000000000, 1000000000\), which no array has"),
        (((10**10, 10**10), "float32"), "which no array has"),
    ],
    ids=["zero", "negative", "dtype", "complex", "three-parts", "no-shape", "text-in-shape",
         "fraction", "none-in-shape", "too-large", "beyond-all-bounds"],
)  # fmt: skip
def test_a_spec_that_is_none_says_so(kernels, spec, says):
    with pytest.raises(LaunchError, match=f"argument x is a spec of .*{says}") as caught:
        estimate(kernels.rows_doubled, spec)
    assert caught.value.expected
    assert caught.value.got == (repr(spec)[:80])


@pytest.mark.parametrize("given", [None, ((128, 512),), 3, "x"])
def test_an_argument_that_is_no_tensor_is_named(kernels, given):
    with pytest.raises(LaunchError, match="argument x is used as a tensor") as caught:
        estimate(kernels.rows_doubled, given)
    assert "a (shape, dtype) pair" in (caught.value.expected or "")
    assert caught.value.got == repr(given)
    with pytest.raises(LaunchError, match="argument x is used as a tensor"):
        estimate(kernels.rows_doubled, x=given)


def test_an_error_of_the_kernel_that_is_no_argument_stays_what_it_is(kernels):
    with pytest.raises(AttributeError, match="nothing"):
        estimate(kernels.without_its_tensor, X)


def test_unknown_targets_modes_and_kernels_are_rejected(kernels):
    with pytest.raises(LaunchError, match="trn7"):
        estimate(kernels.rows_doubled, X, target="trn7")
    with pytest.raises(AttributeValueError, match="'fast' is not a mode of the timeline"):
        estimate(kernels.rows_doubled, X, mode="fast")
    with pytest.raises(LaunchError, match="not a kernel"):
        estimate("rows_doubled", X)
    with pytest.raises(UnsupportedError, match="a program of 2 cores"):
        program_of(kernels.rows_doubled[2], X)


def test_of_two_cores_each_does_its_part_and_the_slower_one_counts(kernels):
    rows = ((1024, 64), "float32")

    halves, uneven = estimate(kernels.copied[2], rows), estimate(kernels.second_core_more[2], rows)

    alone = estimate(kernels.copied, ((512, 64), "float32"))
    assert halves.total_ns == pytest.approx(alone.total_ns, rel=0.01)  # they share HBM
    assert halves.hbm_bytes == 2 * 512 * 64 * 4
    assert uneven.hbm_bytes == 2 * 896 * 64 * 4


def test_two_cores_share_the_bandwidth_of_hbm(kernels):
    both = estimate(kernels.copied[2], ((8192, 4096), "float32"))
    alone = estimate(kernels.copied, ((4096, 4096), "float32"))

    assert alone.hbm_bytes == both.hbm_bytes
    own, shared = constants().at("trn2")["DMA_BANDWIDTH"], machine("trn2")["hbm_gbps_per_core"] / 16
    assert both.total_ns / alone.total_ns == pytest.approx(own / shared, rel=0.005)


def test_what_cores_exchange_is_a_dma_that_was_never_measured(kernels):
    found = estimate(kernels.exchanged[2], ((256, 64), "float32"))

    sent = [bar for bar in found.bars if bar.lane == "dma" and not bar.hbm_bytes]
    assert [bar.place and bar.place.file.rpartition("/")[2] for bar in sent] == ["time_kernels.py"]
    assert found.uncertainty.domain["extrapolated"] == [
        "dma_copy (HBM shared by 2 cores)", "dma_copy (copy on chip)",
    ]  # fmt: skip
    assert found.bars[sent[0].number + 1].start_ns >= sent[0].end_ns


@pytest.mark.parametrize("what", [type, dict, list, pytest.Item, max, print])
def test_classes_and_functions_without_known_parameters_are_no_kernels(what):
    for ask in (estimate, program_of):
        with pytest.raises(LaunchError, match="not a kernel") as raised:
            ask(what, X)
        assert raised.value.got == repr(what)
    with pytest.raises(LaunchError, match="simulate takes a kernel"):
        simulate(what)


def test_an_argument_that_is_no_tensor_is_rejected(kernels):
    with pytest.raises(DTypeError):
        estimate(kernels.rows_doubled, np.ones((4, 8), np.complex64))
