"""Results that are written to where they are copied."""

from __future__ import annotations

import pytest

from neuroncore.program import calls, parse_program

from .transformed_programs import ADDED, after, rewritten_by, same_values


def test_a_copy_of_a_copy_is_made_once():
    sum_tile = "sum = buffer(float32[128, 64], sbuf)"
    copies = "copied[:, :], src=sum[:, :])\n        tensor_copy(dst=total[:, :], src=copied[:, :])"
    text = ADDED.replace(sum_tile, f"{sum_tile}\n        {sum_tile.replace('sum', 'copied')}")
    text = text.replace("total[:, :], src=sum[:, :])", copies)
    before = parse_program(text)
    made = same_values(before, "direct_results")

    assert [c.instruction for c in calls(made.body)].count("tensor_copy") == 1


def test_a_result_is_written_to_where_it_is_copied():
    _, made = after("direct_results")

    names = [call.instruction for call in calls(made.body)]

    assert names == ["memset", "dma_copy", "tensor_tensor", "dma_copy"]


@pytest.mark.parametrize(
    ("change", "to"),
    [
        ("src=sum[:, :])", "src=sum[:, :])\n        memset(dst=sum[:, :], value=0.0)"),
        ("sum = buffer(float32", "sum = buffer(float16"),  # is rounded twice
        ("total = buffer(bfloat16", "total = buffer(int32"),  # is a whole number on the way
        ("src=sum[:, :])", "src=sum[:, :], engine=scalar)"),
        ("data1=total[:, :]", "data1=total.ap([[64, 128], [0, 64]])"),
        ("tensor_copy(dst=total[:, :], src=sum[:, :])",
         "tensor_copy(dst=total[:, 0:32], src=sum[:, 0:32])"),
    ],
)  # fmt: skip
def test_copies_that_change_a_value_or_that_others_need_stay(change, to):
    program = parse_program(ADDED.replace(change, to))

    assert program == rewritten_by(program, "direct_results")


def test_a_result_is_written_to_its_place_past_what_does_not_access_it():
    text = ADDED.replace(
        "        tensor_copy(", "        other = buffer(float32[128, 64], sbuf)\n"
        "        tensor_copy(dst=other[:, :], src=tile[:, :])\n        tensor_copy("
    )  # fmt: skip

    made = same_values(parse_program(text), "direct_results")

    assert [c.instruction for c in calls(made.body)].count("tensor_copy") == 1


def test_a_place_that_is_allocated_behind_the_result_is_allocated_before():
    text = ADDED.replace(
        "        tensor_copy(dst=total[:, :], src=sum[:, :])\n",
        "        place = buffer(bfloat16[128, 64], sbuf)\n"
        "        tensor_copy(dst=place[:, :], src=sum[:, :])\n"
        "        tensor_tensor(dst=total[:, :], data1=total[:, :], data2=place[:, :], op=add)\n",
    )

    made = same_values(parse_program(text), "direct_results")

    assert "tensor_copy" not in [c.instruction for c in calls(made.body)]


@pytest.mark.parametrize(
    "between",
    [
        "tensor_tensor(dst=tile[:, :], data1=total[:, :], data2=tile[:, :], op=add)",
        "memset(dst=total[:, 0:8], value=1.0)",
    ],
)
def test_a_copy_stays_where_its_place_is_accessed_in_between(between):
    program = parse_program(
        ADDED.replace("        tensor_copy(", f"        {between}\n        tensor_copy(")
    )

    assert same_values(program, "direct_results") == program
