"""Predicted against measured by source line: profiles made of timelines with other constants."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.errors import LaunchError
from neuroncore.timeline import compare, constants, estimate, profile_of, refit

from ..kernels import ALL, CARRIED, TILED_COPY, program
from .captured import captured

SERIAL = """
tile = buffer(float32[128, 64], sbuf)
for i in range(16):
    dma_copy(dst=tile[:, :], src=x[128*i : 128*i + 128, 0:64])
    tensor_scalar(dst=tile[:, :], data=tile[:, :], operand0=2.0, op0=multiply)
    activation(dst=tile[:, :], data=tile[:, :], scale=1.0, op=exp)
    dma_copy(dst=out[128*i : 128*i + 128, 0:64], src=tile[:, :])
"""
SLOWER = constants().but("DMA_START", "trn2", 1100).but("ACCESS_OVERHEAD", "trn2", 90)


def played(kernel, values=None):
    return estimate(kernel, mode="device", constants=values, skip_periods=False)


@pytest.mark.parametrize("name", ALL)
def test_a_profile_of_the_model_itself_has_no_errors(name):
    kernel = program(ALL[name])

    found = compare(profile_of("p", captured(played(kernel))), estimate(kernel, mode="device"))

    assert found.matched == 1.0
    assert [line.measured for line in found.lines] == [line.predicted for line in found.lines]
    assert max(abs(line.error) for line in found.lines) < 0.01  # whole nanoseconds


def test_noise_and_dropped_rows_leave_the_lines_comparable():
    kernel = program(SERIAL)
    table = captured(played(kernel, SLOWER), noise=0.1, drop=0.2, seed=3)

    found = compare(profile_of("p", table), estimate(kernel, mode="device"))

    assert len(found.comparable) == len(found.lines)
    load, store = (line for line in found.lines if line.where.engine == "dma")
    assert load.error > 0.1 > abs(store.error)


def test_a_line_whose_instructions_are_others_is_not_compared():
    kernel = program(CARRIED)
    table = captured(played(kernel))
    first = {name: [values[-2]] * 40 for name, values in table.items()}
    first["start_ts"] = [max(table["end_ts"]) + 100 * n for n in range(40)]
    first["end_ts"] = [start + 90 for start in first["start_ts"]]
    both = {name: table[name] + first[name] for name in table}

    found = compare(profile_of("p", both), estimate(kernel, mode="device"))

    assert [line.measured - line.predicted for line in found.lines if not line.is_comparable] == [
        40
    ]


@pytest.mark.parametrize(
    ("change", "hint"),
    [("other lines", "profile this file"), ("other unit", "in ns: are these in another unit")],
)
def test_a_profile_of_another_kernel_is_rejected(change, hint):
    kernel = program(CARRIED)
    table = captured(played(program(TILED_COPY) if change == "other lines" else kernel))
    if change == "other unit":
        for name in ("start_ts", "end_ts", "dma_trigger_end_ts"):
            table[name] = [v and 1000 * v for v in table[name]]

    with pytest.raises(LaunchError, match=rf"p is not a profile of kernel(.|\n)*{hint}"):
        compare(profile_of("p", table), estimate(kernel, mode="device"))


def test_the_table_names_lines_counts_and_errors():
    kernel = program(CARRIED)

    text = str(
        compare(
            profile_of("p", captured(played(kernel, SLOWER))), estimate(kernel, mode="as_written")
        )
    )

    assert "24 of 24" in text
    assert text.splitlines()[1].split() == [
        "line", "engine", "instructions", "predicted", "measured", "error",
    ]  # fmt: skip


def test_a_fit_finds_the_constants_of_the_device():
    kernel = program(SERIAL)
    table = captured(played(kernel, SLOWER), noise=0.05, drop=0.1, seed=7)

    found = refit(profile_of("p", table), lambda v: estimate(kernel, mode="device", constants=v),
                  constants())  # fmt: skip

    assert found.is_better
    sizes = [abs(line.error) for line in found.after.comparable]
    assert np.median(sizes) < 0.03
    assert found.constants.at("trn2")["DMA_START"] > 900
    assert found.constants.at("trn2")["WARM_UP"] == constants().at("trn2")["WARM_UP"]
    assert found.constants.at("trn1") == constants().at("trn1")
    assert "DMA_START" in str(found)


def test_constants_that_suit_already_are_not_changed_much():
    kernel = program(CARRIED)

    found = refit(profile_of("p", captured(played(kernel))),
                  lambda v: estimate(kernel, mode="device", constants=v), constants())  # fmt: skip

    changes = [np.log(after / before) for before, after in found.changes.values()]
    assert all(abs(change) < 0.01 for change in changes)
