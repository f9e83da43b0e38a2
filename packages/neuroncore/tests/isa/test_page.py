"""What help() says about an instruction comes from its record."""

from __future__ import annotations

import pytest

from neuroncore.instructions import INSTRUCTIONS
from neuroncore.isa.command import main
from neuroncore.isa.page import describe, docstring, reference_page


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


def test_a_docstring_is_the_description_with_a_command_in_place_of_the_rejections():
    record = INSTRUCTIONS["nc_matmul"]
    before, _, _ = describe(record).partition("Rejected, for example")

    assert docstring(record).startswith(before)
    assert "Rejections: python -m neuroncore nc_matmul\n" in docstring(record)


def test_the_command_prints_the_descriptions_of_the_instructions_it_names(capsys):
    assert main(["nc_matmul", "memset"]) == 0

    printed = capsys.readouterr().out
    assert describe(INSTRUCTIONS["nc_matmul"]) in printed
    assert describe(INSTRUCTIONS["memset"]) in printed


def test_the_command_rejects_a_name_of_no_instruction(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["nc_matmull"])

    assert capsys.readouterr().err == (
        "neuroncore: error: no instruction 'nc_matmull'; did you mean 'nc_matmul'? "
        "(see neuroncore --help)\n"
    )
