"""Broadcasts of rows as products with ones."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.program import Loop, calls, execute_program, parse_program

from .random_programs import SPECIAL, signs
from .transformed_programs import BROADCAST, after, rewritten_by, same_values


def test_a_row_reaches_all_partitions_as_products_with_ones():
    _, made = after("partition_broadcasts")

    names = [call.instruction for call in calls(made.body)]

    assert names == [
        "memset", "dma_copy", "dma_copy", "nc_matmul", "nc_matmul", "tensor_tensor", "dma_copy"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "to"),
    [
        ("op=multiply)", "op=multiply)\n        dma_copy(dst=out[:, :], src=rows[:, :])"),
        ("600", "5000"),  # more than PSUM has
        ("data1=tile[:, :]", "data1=rows[:, :]"),  # one operand alone may be in PSUM
        ("op=multiply)", "op=multiply, engine=gpsimd)"),
        (
            "        tensor_tensor(dst=tile",
            "        dma_copy(dst=rows[:, :], src=x[:, :])\n        tensor_tensor(dst=tile",
        ),
    ],
)
def test_a_row_that_cannot_stay_in_psum_is_copied_from_there(change, to):
    before = parse_program(BROADCAST.replace(change, to))

    made = same_values(before, "partition_broadcasts")

    (loop,) = [s for s in made.body if isinstance(s, Loop)]
    products = -(-int(before.parameters[0].shape[1]) // 512)
    names = [call.instruction for call in calls(loop.body)]
    assert names[1 : 1 + 2 * products] == ["nc_matmul", "tensor_copy"] * products


INVERTED = BROADCAST.replace(
    "        tensor_tensor",
    "        reciprocal(dst=rows[:, :], data=rows[:, :])\n        tensor_tensor",
)


@pytest.mark.parametrize("text", [BROADCAST, INVERTED], ids=["in PSUM", "copied from PSUM"])
def test_products_with_ones_change_nothing_of_a_row_but_the_sign_of_zeros(text):
    before, x = parse_program(text), np.ones((100, 600), np.float32)
    rows = np.ones((4, 600), np.float32)
    rows[0] = np.resize(SPECIAL, 600)

    (found,) = execute_program(rewritten_by(before, "partition_broadcasts"), [x, rows])

    positive = np.where(rows == 0, np.float32(0), rows)
    (expected,) = execute_program(before, [x, positive])
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(signs(found), signs(expected))
    (as_written,) = execute_program(before, [x, rows])
    assert (signs(as_written) != signs(found)).any()


def test_a_row_is_broadcast_by_dma_where_psum_is_full():
    text = BROADCAST.replace(
        "    for i in",
        "    full = buffer(float32[128, 4096], psum)\n    memset(dst=full[:, :], value=1.0)\n"
        "    for i in",
    ).replace("    return", "    tensor_copy(dst=tile[:, :], src=full[0:100, 0:600])\n    return")
    program = parse_program(text)

    assert program == rewritten_by(program, "partition_broadcasts")


def test_a_row_is_written_anew_where_its_tile_is_older_than_the_loop():
    rows = "        rows = buffer(float32[100, 600], sbuf)\n"
    text = BROADCAST.replace(rows, "").replace("    for i in", f"{rows[4:]}    for i in")

    same_values(parse_program(text), "partition_broadcasts")
