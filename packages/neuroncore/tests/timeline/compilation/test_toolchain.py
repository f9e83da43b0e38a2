"""What a toolchain makes of a program, one transformation at a time."""

from __future__ import annotations

from dataclasses import replace
from re import sub

import numpy as np
import pytest

from neuroncore.checks import watching
from neuroncore.errors import AttributeValueError
from neuroncore.program import Allocate, Loop, check, execute_program, parse_program
from neuroncore.timeline import estimate
from neuroncore.timeline.compilation.toolchain import in_force

from .transformed_programs import CLEARED, INVARIANT, TEXTS, after, rewritten_by, same_values


@pytest.mark.parametrize("name", TEXTS)
def test_a_transformation_keeps_what_the_program_computes(name):
    before, made = after(name)

    assert made != before
    same_values(before, "transposing_loads" if name == "strided_loads" else name)


@pytest.mark.parametrize(
    ("name", "executed"), [("loop_invariants", 4 + 4 + 16 + 4), ("vectorization", 4 + 4 + 4)]
)
def test_a_transformation_executes_fewer_instructions(name, executed):
    before, made = after(name)

    counts = [estimate(p, mode="as_written").num_ops for p in (before, made)]

    assert counts[1] == executed < counts[0]


@pytest.mark.parametrize(
    ("name", "tile"),
    [
        ("loop_invariants", "tile"),
        ("vectorization", "product"),
        ("direct_results", "sum"),
        ("direct_results", "total"),
        ("privatization", "tile"),
    ],
)
def test_a_tile_at_a_fixed_address_is_live_no_longer_than_before(name, tile):
    placed = sub(rf"( {tile} = .* sbuf)\)", r"\1, address=(0, 0))", TEXTS[name])
    assert placed != TEXTS[name]
    before = parse_program(placed)

    assert rewritten_by(before, name) == before


REUSED = """\
program("trn2", "0.1")
def kernel(x: float32[128, 128]):
    out = buffer(float32[128, 512], shared_hbm)
    for i in range(4):
        a = buffer(float32[128, 128], sbuf, address=(0, 0))
        memset(dst=a[:, :], value=2.0)
        dma_copy(dst=out[:, 128*i : 128*i + 64], src=a[:, 0:64])
        b = buffer(float32[128, 128], sbuf, address=(0, 0))
        memset(dst=b[:, :], value=3.0)
        dma_copy(dst=out[:, 128*i + 64 : 128*i + 128], src=b[:, 0:64])
    return out
"""


def test_tiles_that_share_an_address_are_live_one_after_the_other():
    program = estimate(parse_program(REUSED)).program

    with watching("overlap") as report:
        execute_program(program, [np.zeros((128, 128), np.float32)])

    assert not report.findings


def test_only_what_every_iteration_writes_anew_has_two_places():
    before, made = after("privatization")

    (loop,) = [s for s in made.body if isinstance(s, Loop)]
    assert [s.buffer.name for s in loop.body if isinstance(s, Allocate)] == ["tile"]
    assert estimate(before, mode="device").total_ns < (
        estimate(before, mode="device", without=["privatization"]).total_ns
    )


HALVES = """\
program("trn2", "0.6")
def kernel(x: float32[128, 512], chosen: uint8[128, 128]):
    out = buffer(float32[128, 512], shared_hbm)
    tile = buffer(float32[128, 128], sbuf)
    mask = buffer(uint8[128, 128], sbuf)
    dma_copy(dst=mask[:, :], src=chosen[:, :])
    for k in range(4):
        dma_copy(dst=tile[:, 0:64], src=x[:, 128*k : 128*k + 64])
        dma_copy(dst=tile[:, 64:128], src=x[:, 128*k + 64 : 128*k + 128])
        dma_copy(dst=out[:, 128*k : 128*k + 128], src=tile[:, :])
    return out
"""
TWO = (
    HALVES.replace("[128, 128], sbuf)\n    mask", "[128, 2, 64], sbuf)\n    mask")
    .replace("dst=tile[:, 0:64]", "dst=tile[:, 0, :]")
    .replace("dst=tile[:, 64:128]", "dst=tile[:, 1, :]")
    .replace("tile[:, :])", "tile[:, :, :])")
)
IN_A_LOOP = """\
        for j in range(2):
            dma_copy(dst=tile[:, 64*j : 64*j + 64], src=x[:, 128*k + 64*j : 128*k + 64*j + 64])
"""
CHOSEN = "        tensor_copy_predicated(dst=tile[:, :], src=1.0, predicate=mask[:, :])\n"
LOADS = "".join(f"{line}\n" for line in HALVES.splitlines() if "dst=tile" in line)


@pytest.mark.parametrize("text", [HALVES, TWO, HALVES.replace(LOADS, IN_A_LOOP)])
def test_a_tile_that_every_iteration_writes_in_parts_has_two_places(text):
    made = rewritten_by(parse_program(text), "privatization")

    check(made)
    (loop,) = [s for s in made.body if isinstance(s, Loop)]
    assert [s.buffer.name for s in loop.body if isinstance(s, Allocate)] == ["tile"]


@pytest.mark.parametrize(
    ("change", "to"),
    [
        (IN_A_LOOP, IN_A_LOOP.replace("range(2)", "range(1)")),  # half of it stays
        (IN_A_LOOP, CHOSEN),
        (IN_A_LOOP, "        dma_copy(dst=out[:, 0:128], src=tile[:, :])\n" + IN_A_LOOP),
    ],
)  # fmt: skip
def test_a_tile_that_an_iteration_needs_of_another_one_stays(change, to):
    program = parse_program(HALVES.replace(LOADS, IN_A_LOOP).replace(change, to))

    made = rewritten_by(program, "privatization")

    assert "tile" in [s.buffer.name for s in made.body if isinstance(s, Allocate)]


def test_the_version_selects_the_toolchain():
    old = parse_program(CLEARED)
    new = replace(old, nki="0.6", target="trn2")

    names = [{t.name for t in in_force(p)} for p in (old, new)]

    assert names[1] == {"dead_fills", "fill_engine", "privatization", "slot_rotation", "scheduling"}
    assert "loop_invariants" in names[0]


def test_a_transformation_is_switched_off_by_its_name():
    program = parse_program(INVARIANT)

    timeline = estimate(program, mode="device", without=["loop_invariants"])

    found = estimate(program, mode="device")
    assert "loop_invariants" not in [t.name for t in timeline.assumed]
    assert "loop_invariants" in [t.name for t in found.changes]
    assert timeline.num_ops > found.num_ops


def test_a_name_that_no_transformation_has_is_rejected_with_those_there_are():
    with pytest.raises(AttributeValueError, match="not a transformation") as error:
        estimate(parse_program(CLEARED), mode="device", without=["magic"])

    assert "slot_rotation" in str(error.value)
