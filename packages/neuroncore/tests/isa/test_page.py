"""What help() says about an instruction comes from its record."""

from __future__ import annotations

import pytest

from neuroncore.instructions import INSTRUCTIONS
from neuroncore.isa.page import describe, reference_page


@pytest.mark.parametrize("record", INSTRUCTIONS.values(), ids=str)
def test_a_description_names_every_part_of_the_record(record):
    text = describe(record)

    for name in (*record.operands, *record.attrs):
        assert f"\n  {name}" in text
    for engine in record.engines:
        assert engine.name in text.partition("Engines: ")[2].partition("\n")[0]
    assert record.source in text
    assert text.partition("\n")[0].strip()


def test_a_limit_is_told_by_the_call_that_breaks_it():
    text = describe(INSTRUCTIONS["nc_matmul"])

    assert "- moving free size 640 exceeds 512 (expected: at most 512 elements" in text
    assert "[NKI: nc_matmul, tile limits]" in text


def test_the_page_spells_every_version():
    page = reference_page([INSTRUCTIONS["affine_select"]])

    assert "\n0.2         affine_select(dst, pattern, offset, channel_multiplier," in page
    assert "\n0.3 to 0.7  affine_select(dst, pattern, channel_multiplier, on_true_tile," in page
