"""Engines of calls that leave theirs open."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.enums import Engine
from neuroncore.program import calls, check, execute_program, parse_program

from .transformed_programs import rewritten_by

COPIED = """\
program("TARGET", "0.1")
def kernel(x: float32[128, 64], n: int32[128, 64]):
    out = buffer(DTYPE[128, 64], shared_hbm)
    tile = buffer(DTYPE[128, 64], sbuf)
    dma_copy(dst=tile[:, :], src=SOURCE[:, :])
    moved = buffer(DTYPE[128, 64], psum)
    memset(dst=moved[:, :], value=0.0)
    tensor_copy(dst=moved[:, :], src=tile[:, :], engine=vector)
    result = buffer(DTYPE[128, 64], sbuf)
    tensor_copy(dst=result[:, :], src=moved[:, :])
    dma_copy(dst=out[:, :], src=result[:, :])
    return out
"""


@pytest.mark.parametrize(
    ("target", "dtype", "source", "instruction"),
    [
        ("trn1", "float32", "x", "activation"),  # ScalarE copies from trn2 on
        ("trn2", "float32", "x", "tensor_copy"),
        ("trn1", "int32", "n", "tensor_copy"),  # not in float32: it stays on VectorE
    ],
)
def test_copies_and_fills_go_where_their_engine_can_make_them(target, dtype, source, instruction):
    text = COPIED.replace("TARGET", target).replace("DTYPE", dtype).replace("SOURCE", source)
    before = parse_program(text)
    random = np.random.default_rng(0)
    given = [random.standard_normal((128, 64)).astype(np.float32),
             random.integers(-(2**30), 2**30, (128, 64)).astype(np.int32)]  # fmt: skip

    made = rewritten_by(before, "copy_engine", "fill_engine")

    check(made)
    (one,), (other,) = execute_program(before, given), execute_program(made, given)
    np.testing.assert_array_equal(other, one)
    fill, _, copy = (c for c in calls(made.body) if not c.is_dma)
    assert fill.attrs["engine"] is Engine.unknown  # GpSimdE does not reach PSUM
    assert copy.instruction == instruction
