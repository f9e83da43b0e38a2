"""Transposing loads and stores as transpositions by TensorE."""

from __future__ import annotations

import pytest

from neuroncore.program import calls, parse_program
from neuroncore.timeline import TRANSFORMATIONS, estimate

from .transformed_programs import STRIDED, after, rewritten_by, same_values


@pytest.mark.parametrize(("name", "tiles"), [("transposing_loads", 1), ("strided_loads", 3)])
def test_transposing_loads_are_loads_and_transpositions_by_tensor(name, tiles):
    _, made = after(name)

    names = [call.instruction for call in calls(made.body)]

    assert names == ["dma_copy", "nc_transpose", "tensor_copy"] * tiles + ["dma_copy"]


@pytest.mark.parametrize(
    ("change", "to"),
    [
        ("float32[300, 100]", "int32[300, 100]"),  # TensorE takes floats
        ("[[1, 100], [100, 300]]", "[[100, 100], [1, 300]]"),  # rows
        ("[[1, 100], [100, 300]]", "[[2, 100], [100, 300]]"),  # elements that are apart
    ],
)
def test_other_loads_stay(change, to):
    program = parse_program(STRIDED.replace(change, to).replace("bfloat16", "float32"))

    made = rewritten_by(program, *TRANSFORMATIONS)

    assert [c.instruction for c in calls(made.body)] == ["dma_copy", "dma_copy"]


STORED = """\
program("trn1", "0.1")
def kernel(x: float32[100, 300]):
    out = buffer(float32[300, 100], shared_hbm)
    tile = buffer(bfloat16[100, 300], sbuf)
    dma_copy(dst=tile[:, :], src=x[:, :])
    dma_copy(dst=out.ap([[1, 100], [100, 300]]), src=tile[:, :])
    return out
"""


def test_transposing_stores_are_transpositions_by_tensor_and_stores():
    made = same_values(parse_program(STORED), "transposing_stores")

    names = [call.instruction for call in calls(made.body)]
    assert names == ["dma_copy", *["nc_transpose", "tensor_copy", "dma_copy"] * 3]


@pytest.mark.parametrize(
    ("change", "to"),
    [
        ("src=tile[:, :]", "src=tile[:, :], dst_rmw_op=add"),
        ("bfloat16", "int32"),
        ("[[1, 100], [100, 300]]", "[[300, 100], [1, 300]]"),
    ],
)
def test_other_stores_stay(change, to):
    program = parse_program(STORED.replace(change, to))

    assert rewritten_by(program, "transposing_stores") == program


def test_a_transposing_store_goes_through_tensor_where_that_is_faster():
    program = parse_program(STORED)

    found = estimate(program)

    assert "nc_transpose" in [call.instruction for call in calls(found.program.body)]
    assert found.total_ns < estimate(program, without=["transposing_stores"]).total_ns
