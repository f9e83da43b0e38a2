"""What a toolchain makes of a program, one transformation at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from neuroncore.errors import AttributeValueError
from neuroncore.program import Allocate, Loop, parse_program
from neuroncore.timeline import estimate
from neuroncore.timeline.compilation.toolchain import in_force

from .transformed_programs import CLEARED, INVARIANT, TEXTS, after, same_values


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


def test_only_what_every_iteration_writes_anew_has_two_places():
    before, made = after("privatization")

    (loop,) = [s for s in made.body if isinstance(s, Loop)]
    assert [s.buffer.name for s in loop.body if isinstance(s, Allocate)] == ["tile"]
    assert estimate(before, mode="device").total_ns < (
        estimate(before, mode="device", without=["privatization"]).total_ns
    )


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
