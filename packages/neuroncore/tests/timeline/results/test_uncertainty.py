"""An estimate says how far it may be off, and of what it was not measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from neuroncore.timeline import constants, estimate

from ..kernels import COLUMNS, MATMUL, TILED_COPY, program

WIDE = """
t = buffer(float32[128, 4], sbuf)
u = buffer(float32[128, 4], sbuf)
memset(dst=t[:, :], value=1.0)
scalar_tensor_tensor(dst=u[:, :], data=t[:, :], op0=add, operand0=2.0, op1=add, operand1=t[:, :])
dma_copy(dst=out[0:128, 0:4], src=u[:, :])
"""

COPY = """
t = buffer(float32[128, 4], sbuf)
dma_copy(dst=t[:, :], src=x[0:128, 0:4])
dma_copy(dst=out[0:128, 0:4], src=t[:, :])
"""

OVERTAKEN = """
t = buffer(float32[128, 4], sbuf)
u = buffer(float32[128, 4], sbuf)
dma_copy(dst=t[:, :], src=x[0:128, 0:4])
tensor_scalar(dst=t[:, :], data=t[:, :], operand0=2.0, op0=multiply)
memset(dst=u[:, :], value=1.0, engine=vector)
dma_copy(dst=out[0:128, 0:4], src=t[:, :])
dma_copy(dst=out[0:128, 4:8], src=u[:, :])
"""


def relative_width(timeline) -> float:
    found = timeline.uncertainty
    return found.high_ns / found.low_ns


def test_the_interval_holds_the_estimate():
    timeline = estimate(program(MATMUL), mode="device")

    found = timeline.uncertainty

    assert found.low_ns < timeline.launch_ns < found.high_ns


def test_a_closed_compiler_decides_how_many_short_instructions_there_are():
    closed, explicit = (
        estimate(replace(program(COLUMNS), nki=nki), mode="as_written").uncertainty
        for nki in ("0.1", "0.6")
    )

    by_size = ("LAUNCH", "instruction rates", "DMA_BANDWIDTH")
    fixed = [part for name, part in closed.sensitivities.items() if name not in by_size]
    assert closed.shares["instruction count"] == pytest.approx(sum(fixed))
    assert explicit.shares == {"explicit": 1}
    assert closed.high_ns / closed.low_ns > 1.1 * explicit.high_ns / explicit.low_ns


def test_the_parts_of_the_total_add_up_to_it():
    found = estimate(program(TILED_COPY), mode="as_written").uncertainty

    assert sum(found.sensitivities.values()) == pytest.approx(1)


@pytest.mark.parametrize("name", ["LAUNCH", "DMA_START"])
def test_a_share_is_what_the_total_changes_by_with_the_constant(name):
    kernel = program("t = buffer(float32[1, 2], sbuf)\ndma_copy(dst=t[:, :], src=x[0:1, 0:2])")
    value = constants().at("trn2")[name]

    share = estimate(kernel, mode="as_written").uncertainty.sensitivities[name]

    more = estimate(kernel, constants=constants().but(name, "trn2", 1.1 * value), mode="as_written")
    change = more.launch_ns / estimate(kernel, mode="as_written").launch_ns - 1
    assert share == pytest.approx(change / 0.1, rel=0.01)


def test_an_instruction_of_another_size_than_measured_is_extrapolated():
    timeline = estimate(program(WIDE), mode="as_written")

    assert timeline.uncertainty.domain["extrapolated"] == ["scalar_tensor_tensor"]


FORMS = {
    "load": "dma_copy(dst=t[:, 0:64], src=x[0:128, 0:64])",
    "load in runs of 4 bytes": "dma_copy(dst=t[:, 0:64], src=x[0:128, 0:128:2])",
    "store": "dma_copy(dst=out[0:128, 0:64], src=t[:, 0:64])",
    "store in runs of 4 bytes": "dma_copy(dst=out[0:128, 0:128:2], src=t[:, 0:64])",
    "copy within HBM": "dma_copy(dst=out[0:128, 0:64], src=x[0:128, 0:64])",
    "copy on chip": "dma_copy(dst=t[:, 0:64], src=t[:, 64:128])",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_transfer_in_a_form_that_was_not_measured_is_extrapolated(form):
    fill = "t = buffer(float32[128, 128], sbuf)\nmemset(dst=t[:, :], value=0.0)\n"

    found = estimate(program(fill + FORMS[form]), mode="as_written").uncertainty

    measured = form in ("load", "store")
    expected = {"measured": ["memset", "dma_copy"]} if measured else {
        "measured": ["memset"], "extrapolated": [f"dma_copy ({form})"]
    }  # fmt: skip
    assert found.domain == expected


def test_the_interval_of_a_store_in_runs_is_wider():
    fill = "t = buffer(float32[128, 2048], sbuf)\nmemset(dst=t[:, :], value=0.0)\n"
    whole, cut = (
        estimate(program(f"{fill}dma_copy(dst=out[0:128, {to}], src=t[:, :])"), mode="as_written")
        for to in ("0:2048", "0:4096:2")
    )

    assert relative_width(cut) > 1.3 * relative_width(whole)


def test_a_generation_that_was_not_measured_is_extrapolated_and_its_interval_wider():
    known, unknown = (
        estimate(program(MATMUL, target), mode="as_written") for target in ("trn2", "trn3")
    )

    assert list(unknown.uncertainty.domain) == ["extrapolated"]
    assert relative_width(unknown) > relative_width(known)


def test_a_constant_that_was_measured_elsewhere_is_assumed():
    short = program("t = buffer(float32[1, 2], sbuf)\ndma_copy(dst=t[:, :], src=x[0:1, 0:2])")

    known, taken_over = (
        estimate(replace(short, target=target), mode="as_written").uncertainty
        for target in ("trn2", "trn3")
    )

    launch = taken_over.sensitivities["LAUNCH"]
    assert known.known < 0.15 and taken_over.known > 0.5 * launch > 0.4


def test_the_report_begins_with_time_bottleneck_domain_and_toolchain():
    time, bottleneck, domain, toolchain, *_ = str(estimate(program(MATMUL), mode="device")).split(
        "\n"
    )

    assert "with the launch (80 %: " in time
    assert bottleneck.startswith("bottleneck: ")
    assert domain.startswith("domain: measured; most uncertain: ")
    assert toolchain == "assumed of the toolchain: slot_rotation"


def test_the_report_names_the_transformations_that_changed_the_kernel():
    found = [estimate(program(text)) for text in (COPY, TILED_COPY, OVERTAKEN)]

    names = [[each.name for each in timeline.changes] for timeline in found]
    assert names == [[], ["slot_rotation"], ["scheduling"]]
    assert all(len(timeline.assumed) > 3 for timeline in found)
    shown = [str(timeline).split("\n")[3].partition(": ")[2] for timeline in found]
    assert shown == ["nothing is moved", "slot_rotation", "scheduling"]


def test_several_cores_were_never_measured():
    alone, both = (estimate(program(COPY), cores=cores).uncertainty for cores in (1, 2))

    assert list(alone.domain) == ["measured"]
    assert both.domain == {"extrapolated": ["dma_copy (HBM shared by 2 cores)"]}
    assert both.high_ns / both.low_ns > alone.high_ns / alone.low_ns
    assert "domain: extrapolated: dma_copy (HBM shared by 2 cores); most" in str(
        estimate(program(COPY), cores=2)
    )


def test_the_critical_path_is_searched_once(monkeypatch):
    timeline = estimate(program(MATMUL))
    found, searched = timeline.critical_path(), []
    monkeypatch.setattr(
        "neuroncore.timeline.results.timeline.critical_path", lambda state: searched.append(state)
    )
    timeline.by_line(), timeline.uncertainty, str(timeline)

    assert timeline.critical_path() == found
    assert searched == []
