"""Fills that are left out because they are overwritten."""

from __future__ import annotations

import pytest

from neuroncore.program import calls, parse_program

from .transformed_programs import PADDED, after, rewritten_by, same_values


def test_what_only_products_fill_is_not_cleared():
    _, made = after("dead_fills")

    assert "memset" not in [call.instruction for call in calls(made.body)]


BLOCKS = """\
program("trn1", "0.1")
def kernel(x: float32[128, 512]):
    out = buffer(float32[128, 512], shared_hbm)
    left = buffer(float32[128, 512], sbuf)
    dma_copy(dst=left[:, :], src=x[:, :])
    for i in range(2):
        product = buffer(float32[128, 512], psum)
        memset(dst=product[:, :], value=0.0)
        for k in range(4):
            nc_matmul(dst=product[:, COLUMNS], stationary=left[:, 0:128], moving=left[:, ROWS])
        result = buffer(float32[128, 512], sbuf)
        tensor_copy(dst=result[:, :], src=product[:, :])
        dma_copy(dst=out[:, :], src=result[:, :])
    return out
""".replace("COLUMNS", "128*k : 128*k + 128").replace("ROWS", "128*i : 128*i + 128")


def test_a_tile_that_a_loop_fills_with_products_is_not_cleared():
    made = same_values(parse_program(BLOCKS), "dead_fills")

    assert "memset" not in [call.instruction for call in calls(made.body)]


MADE = "        product = buffer(float32[128, 512], psum)\n"
LOOP = "    for i in range(2):\n"


@pytest.mark.parametrize(
    ("change", "to"),
    [
        ("range(4)", "range(3)"),  # the products are a part of what is read
        (LOOP + MADE, MADE[4:] + LOOP),  # the tile is older: products would be added to it
        (
            "        for k in range(4):\n",
            "        tensor_copy(dst=left[:, :], src=product[:, :])\n        for k in range(4):\n",
        ),
        ("value=0.0", "value=1.0"),
        ("psum)", "psum, address=(0, 0))"),
        (
            "nc_matmul(",
            "tensor_copy(dst=product[:, 0:1], src=left[:, 0:1])\n            nc_matmul(",
        ),
    ],
)
def test_a_fill_that_is_read_stays(change, to):
    program = parse_program(BLOCKS.replace(change, to))

    assert same_values(program, "dead_fills") == program


def test_of_a_tile_that_a_load_overwrites_the_rest_is_filled():
    _, made = after("overwritten_fills")

    filled = [c.accesses["dst"] for c in calls(made.body) if c.instruction == "memset"]
    assert [(a.offset.constant, a.shape) for a in filled] == [(0, (128, 1)), (513, (128, 1))]


def test_a_tile_to_which_a_load_adds_is_filled():
    text = PADDED.replace("src=x[:, :])", "src=x[:, :], dst_rmw_op=add)")
    program = parse_program(text)

    assert program == rewritten_by(program, "overwritten_fills")
