"""The planner's view of a program: which operation accesses which bytes, in iterations."""

import pytest

from neuroncore.errors import ProgramError
from neuroncore.program import parse_program
from tokenplan import Mode, read

EVEN_ODD = """program("trn2", "0.6")
def even_odd(a: float32[2048, 512]):
    for k in range(2, 10, 2):
        t = buffer(float32[128, 512], sbuf)
        dma_copy(dst=t[:, :], src=a[128*k : 128*k + 128, :])
        dma_copy(dst=a[128*k + 128 : 128*k + 256, :], src=t[:, :])
    return a
"""
ROW = 512 * 4


def test_offsets_count_bytes_per_iteration_not_values_of_the_variable():
    kernel = read(parse_program(EVEN_ODD))
    load, store = kernel.ops()
    (loop,) = kernel.loops().values()
    assert (loop.trips, loop.start, loop.step) == (4, 2, 2)
    (source,) = (a for a in load.accesses if a.buffer == "a")
    assert source.mode is Mode.read
    assert (source.offset.constant, source.offset.terms) == (256 * ROW, (("k", 256 * ROW),))
    assert source.width == 128 * ROW
    assert (load.id, store.id, load.engine) == ("dma_copy", "dma_copy.2", "dma")


def test_a_buffer_of_a_loop_is_another_in_each_iteration():
    buffers = read(parse_program(EVEN_ODD)).buffers
    assert buffers["t"].scope == ("k",)
    assert buffers["a"].scope == () and buffers["a"].is_parameter


ALIKE = """program("trn2", "0.6")
def alike(a: float32[128, 16]):
    t = buffer(float32[128, 16], sbuf)
    s = buffer(float32[128, 16], sbuf)
    u = buffer(bfloat16[128, 16], sbuf)
    x = buffer(float32[128, 16], sbuf, address=(0, 64))
    {}
    return a
"""
NEARLY = [
    f"tensor_scalar(dst={dst}, data={data}, {rest})"
    for dst, data, rest in (
        ("t[:, :]", "t[:, :]", "op0=multiply, operand0=2.0"),
        ("s[:, :]", "t[:, :]", "op0=multiply, operand0=2.0"),
        ("s[:, :]", "u[:, :]", "op0=multiply, operand0=2.0"),
        ("s[:, :]", "x[:, :]", "op0=multiply, operand0=2.0"),
        ("s[:, :]", "t[:, :]", "op0=multiply, operand0=2"),
        ("s[:, :]", "t[:, :]", "op0=add, operand0=2.0"),
        ("s[:, :]", "t[:, :]", "op0=multiply, operand0=2.0, reverse0=True"),
        ("s[:, :]", "t[:, :]", "op0=multiply, operand0=t[:, 3]"),
        ("s[:, :]", "t[:, :]", "op0=multiply, operand0=t[:, 4]"),
        ("s[:, 0:8]", "t[:, 0:8]", "op0=multiply, operand0=2.0"),
        ("s[:, 0:8]", "t[:, 8:16]", "op0=multiply, operand0=2.0"),
        ("s[:, 0:16:2]", "t[:, 1:16:2]", "op0=multiply, operand0=2.0"),
        ("s[32:64, 0:8]", "t[32:64, 0:8]", "op0=multiply, operand0=2.0"),
    )
]


def test_calls_that_are_nearly_alike_are_read_as_each_is_alone():
    memsets = [f"memset(dst={t}[:, :], value=1.0)" for t in "tsux"]

    def ops(calls):
        program = parse_program(ALIKE.format("\n    ".join([*memsets, *calls])))
        return [(op.engine, op.accesses, op.details) for op in read(program).ops()][len(memsets) :]

    alone = [op for call in NEARLY for op in ops([call])]
    assert ops([*NEARLY, *NEARLY]) == [*alone, *alone]
    assert len(set(alone)) == len(NEARLY)


ADDRESSED = """program("trn2", "0.6")
def addressed(a: float32[128, 16]):
    x = buffer(float32[64, 16], sbuf, address=(64, 256))
    y = buffer(float32[64, 4], sbuf, address=(64, 288))
    dma_copy(dst=x[:, :], src=a[0:64, :])
    for k in range(2):
        dma_copy(dst=y[:, 2*k : 2*k + 2], src=a[64:128, 0:2])
    return a
"""


def test_tensors_at_fixed_addresses_share_their_memory():
    kernel = read(parse_program(ADDRESSED))
    first, second = kernel.ops()
    memory = kernel.buffers["sbuf@"]
    row = memory.shape[1]
    wide, narrow = (next(a for a in op.accesses if a.mode is Mode.write) for op in (first, second))
    assert wide.buffer == narrow.buffer == "sbuf@"
    assert (wide.offset.constant, wide.shape, wide.strides, wide.width) == (
        64 * row + 256, (64,), (row,), 64,
    )  # fmt: skip
    assert (narrow.offset.constant, narrow.offset.terms) == (64 * row + 288, (("k", 8),))


def test_a_program_that_breaks_rules_is_rejected_with_all_of_them():
    text = EVEN_ODD.replace("sbuf", "psum")
    with pytest.raises(ProgramError):
        read(parse_program(text))


WINDOW = """program("trn2", "0.6")
def window(a: float32[64, 32], first: int32[1, 1]):
    at = buffer(int32[1, 1], sbuf)
    t = buffer(float32[4, 32], sbuf)
    dma_copy(dst=at[:, :], src=first[:, :])
    dma_copy(dst=t[:, :], src=a.ap([[32, 4], [1, 32]], scalar_offset=at[:, :], dim=0))
    return a
"""


def test_what_an_index_on_the_device_may_reach_ends_with_its_tensor():
    *_, load = read(parse_program(WINDOW)).ops()
    (source,) = (a for a in load.accesses if a.buffer == "a")
    assert source.opaque
    assert (source.offset.constant, source.width) == (0, 64 * 32 * 4)
