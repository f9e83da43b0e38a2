"""Predicted against measured by source line: profiles made of timelines with other constants."""

from __future__ import annotations

import re

import numpy as np
import pytest

from neuroncore.errors import LaunchError
from neuroncore.timeline import compare, constants, estimate, profile_of, refit
from neuroncore.timeline.profiles import refit as fitting

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


def refitted(text, table):
    kernel = program(text)
    profile = profile_of("p", at_lines_of(kernel, table))
    return refit(profile, lambda v: estimate(kernel, mode="device", constants=v), constants())


def at_lines_of(kernel, table):
    """The rows of a profile, as if its file were that of `kernel`."""
    (file,) = {bar.place.file for bar in estimate(kernel).bars if bar.place}
    places = [re.sub(r"<program \d+>", file, place) for place in table["nki_source_location"]]
    return {**table, "nki_source_location": places}


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


ALIKE = (
    """
tile = buffer(float32[128, 512], sbuf)
memset(dst=tile[:, :], value=1.0, engine=vector)
"""
    + 4 * "tensor_scalar(dst=tile[:, :], data=tile[:, :], operand0=2.0, op0=multiply)\n"
)
WIDER = SERIAL.replace("[128, 64]", "[128, 96]").replace("0:64]", "0:96]")
LONGER = SERIAL.replace("range(16)", "range(32)")


def test_a_profile_of_another_shape_is_rejected():
    kernel = program(SERIAL)
    table = at_lines_of(kernel, captured(played(program(WIDER))))

    with pytest.raises(LaunchError) as raised:
        compare(profile_of("p", table), estimate(kernel, mode="device"))

    assert raised.value.what.startswith("p is of other shapes than kernel: transfers of <program ")
    assert raised.value.what.endswith("move 49152 bytes to or from HBM each, 32768 in the kernel")


def test_constants_are_not_fitted_to_other_numbers_of_instructions():
    table = captured(played(program(LONGER)))
    first = [at for at, where in enumerate(table["engine"]) if where == "Vector"][:16]
    kept = [at for at, where in enumerate(table["engine"]) if where != "Vector" or at in first]
    table = {name: [values[at] for at in kept] for name, values in table.items()}

    with pytest.raises(LaunchError, match=r"p does not suit a fit of constants: \d+% of its time"):
        refitted(SERIAL, table)


def test_a_fit_that_stays_far_off_is_rejected_with_what_was_found():
    table = captured(played(program(ALIKE)))
    lines = sorted(set(table["nki_source_location"]))
    for at, (start, end) in enumerate(zip(table["start_ts"], table["end_ts"], strict=True)):
        factor = 3 if lines.index(table["nki_source_location"][at]) % 2 else 1 / 3
        table["end_ts"][at] = start + round(factor * (end - start))

    with pytest.raises(LaunchError, match=r"no constants suit p: lines are off by \d+"):
        refitted(ALIKE, table)


def test_a_value_that_is_not_plausible_is_named_and_not_taken(monkeypatch):
    far = constants().but("ACCESS_OVERHEAD", "trn2", 2000)
    monkeypatch.setattr(fitting, "fit_constants", lambda *_: far)

    found = refitted(SERIAL, captured(played(program(SERIAL))))

    name = "ACCESS_OVERHEAD"
    assert [what.split()[0] for what in found.implausible] == [name]
    assert f"not taken: {name} on trn2 is " in str(found)
    assert name not in found.changes
    assert found.constants.at("trn2")[name] == constants().at("trn2")[name]


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

    found = refitted(SERIAL, table)

    assert found.is_better
    sizes = [abs(line.error) for line in found.after.comparable]
    assert np.median(sizes) < 0.03
    assert found.constants.at("trn2")["DMA_START"] > 900
    assert found.constants.at("trn2")["WARM_UP"] == constants().at("trn2")["WARM_UP"]
    assert found.constants.at("trn1") == constants().at("trn1")
    assert "DMA_START" in str(found)


def test_constants_that_suit_already_are_not_changed():
    found = refitted(CARRIED, captured(played(program(CARRIED))))

    assert not found.changes
    assert found.constants == constants()
