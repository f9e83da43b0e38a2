"""Invariant calls leave their loops, narrow loops become wide calls."""

from __future__ import annotations

import pytest

from neuroncore.program import Call, Loop, calls, check, parse_program, walk

from .transformed_programs import SMALL, rewritten_by, same_values

NARROW = """\
program("trn1", "0.1")
def kernel(x: float32[128, 512]):
    out = buffer(float32[128, 257], shared_hbm)
    tile = buffer(float32[128, 512], sbuf)
    dma_copy(dst=tile[:, :], src=x[:, :])
    result = buffer(float32[128, 257], sbuf)
    for g in range(4):
        for i in range(64):
            tensor_copy(dst=result[:, AT : AT + 1], src=tile[:, AT : AT + 1])
            tensor_copy(dst=result[:, AGAIN : AGAIN + 1], src=tile[:, AT + 256 : AT + 257])
    dma_copy(dst=out[:, 0:256], src=result[:, 0:256])
    return out
""".replace("AT", "64*g + i")


@pytest.mark.parametrize("again", ["64*g + i + 1", "64*g + i", "64*g", "256"])
def test_loops_that_write_an_element_twice_stay(again):
    program = parse_program(NARROW.replace("AGAIN", again))

    assert same_values(program, "vectorization") == program


def test_two_calls_that_write_different_elements_become_wide():
    text = NARROW.replace("257], s", "512], s").replace("AGAIN", "64*g + i + 256")

    made = same_values(parse_program(text), "vectorization")

    assert [call.instruction for call in calls(made.body)].count("tensor_copy") == 2
    assert not [s for s in walk(made.body) if isinstance(s, Loop) and s.trips == 64]


def test_a_loop_whose_wide_tiles_do_not_fit_stays():
    text = SMALL.replace("AT", "64*group + column").replace(
        "    for group", "    full = buffer(float32[128, 44000], sbuf)\n"
        "    memset(dst=full[:, :], value=1.0)\n    for group"
    ).replace("  return", "  dma_copy(dst=out[:, 0:1], src=full[:, 0:1])\n    return")  # fmt: skip
    program = parse_program(text)

    assert same_values(program, "vectorization") == program


GATHER = """\
program("trn1", "0.1")
def kernel(x: float32[128, 64], rows: int32[128, 4]):
    out = buffer(float32[128, 256], shared_hbm)
    for i in range(4):
        index = buffer(int32[128, 1], sbuf)
        dma_copy(dst=index[:, :], src=rows[:, AT])
        tile = buffer(float32[128, 64], sbuf)
        dma_copy(dst=tile[:, :], src=x.ap([[0, 128], [1, 64]], vector_offset=index[:, :], dim=0))
        dma_copy(dst=out[:, 64*i : 64*i + 64], src=tile[:, :])
    return out
"""


@pytest.mark.parametrize(("at", "leave"), [("i : i + 1", 0), ("0:1", 2)])
def test_a_gather_leaves_its_loop_where_its_index_does(at, leave):
    before = parse_program(GATHER.replace("AT", at))

    made = rewritten_by(before, "loop_invariants")

    check(made)
    assert sum(isinstance(s, Call) for s in made.body) == leave


@pytest.mark.parametrize(("columns", "leave"), [(20_000, 2), (30_000, 0)])
def test_invariants_leave_their_loop_where_memory_has_room_for_all(columns, leave):
    tile = "        TILE = buffer(float32[128, 30000], sbuf)\n"
    text = (
        'program("trn1", "0.1")\ndef kernel(x: float32[128, 30000]):\n'
        "    out = buffer(float32[128, 30000], shared_hbm)\n    for i in range(4):\n"
    )
    for name in ("a", "b"):
        text += tile.replace("TILE", name) + (
            f"        memset(dst={name}[:, :], value=1.0)\n"
            f"        dma_copy(dst=out[:, :], src={name}[:, :])\n"
        )
    before = parse_program(text.replace("30000", str(columns)) + "    return out\n")

    made = rewritten_by(before, "loop_invariants")

    check(made)
    assert sum(isinstance(s, Call) for s in made.body) == leave
