"""swap: neighbouring statements change places where neither reads what the other writes."""

import pytest

from neuroncore.program import parse_program, print_program
from nkigym.checker import check_kernels, check_step
from nkigym.transforms import TransformError, TransformStep, apply, certify, opportunities

BEFORE = """program("trn2", "0.6")
def kernel(x: float32[128, 64], y: float32[128, 64]):
    out = buffer(float32[128, 64], shared_hbm)
    a = buffer(float32[128, 64], sbuf)
    b = buffer(float32[128, 64], sbuf)
    dma_copy(dst=a[:, :], src=x[:, :])
    dma_copy(dst=b[:, :], src=y[:, :])
    tensor_tensor(dst=a[:, :], data1=a[:, :], data2=b[:, :], op=add)
    dma_copy(dst=out[:, :], src=a[:, :])
    return out
"""
LOADS = TransformStep("swap", (3,))


def test_a_statement_and_the_next_one_change_places():
    after = apply(parse_program(BEFORE), LOADS)

    first, second = BEFORE.splitlines()[5:7]
    assert print_program(after).splitlines()[5:7] == [second, first]


def test_the_certificate_holds_and_the_kernel_computes_the_same():
    program = parse_program(BEFORE)

    assert check_step(certify(program, LOADS).to_json()) == []
    assert check_kernels(program, apply(program, LOADS)) == []


def test_a_write_and_a_read_of_one_tile_keep_their_order():
    with pytest.raises(TransformError, match="their order matters: a write and a read of b"):
        apply(parse_program(BEFORE), TransformStep("swap", (4,)))


def test_every_statement_before_another_is_offered():
    offered = [s.at for s in opportunities(parse_program(BEFORE)) if s.transform == "swap"]

    assert offered == [(3,), (4,), (5,)]
