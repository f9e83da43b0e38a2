"""Programs run on the machine as they say, without a language."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.errors import (
    AccessError,
    KernelError,
    LaunchError,
    SignatureError,
    UndefinedError,
)
from neuroncore.machine.observe import Event, Watcher, watched_by
from neuroncore.options import Options
from neuroncore.program import execute_program, parse_program

RANDOM = np.random.default_rng(3)


def program(body: str, head: str = "x: float32[256, 512]", result: str = "out"):
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    return parse_program(f'program("trn2", "0.6")\ndef p({head}):\n{lines}\n    return {result}\n')


DOUBLE = program("""
out = buffer(float32[256, 512], shared_hbm)
for i in range(2):
    t = buffer(float32[128, 512], sbuf)
    dma_copy(dst=t[:, :], src=x[128*i : 128*i + 128, :])
    tensor_scalar(dst=t[:, :], data=t[:, :], operand0=2.0, op0=multiply)
    dma_copy(dst=out[128*i : 128*i + 128, :], src=t[:, :])
""")


def test_a_loop_over_tiles_doubles_a_matrix():
    x = RANDOM.random((256, 512), np.float32)

    (out,) = execute_program(DOUBLE, [x])

    assert np.array_equal(out, 2 * x)


def test_a_program_runs_again_on_other_arrays():
    for _ in range(2):
        x = RANDOM.random((256, 512), np.float32)
        assert np.array_equal(execute_program(DOUBLE, [x])[0], 2 * x)


def test_matmuls_accumulate_over_a_loop_of_blocks():
    multiply = program(
        """
out = buffer(float32[64, 96], shared_hbm)
acc = buffer(float32[64, 96], psum)
for k in range(3):
    a = buffer(float32[128, 64], sbuf)
    b = buffer(float32[128, 96], sbuf)
    dma_copy(dst=a[:, :], src=w[128*k : 128*k + 128, :])
    dma_copy(dst=b[:, :], src=x[128*k : 128*k + 128, :])
    nc_matmul(dst=acc[:, :], stationary=a[:, :], moving=b[:, :])
t = buffer(float32[64, 96], sbuf)
tensor_copy(dst=t[:, :], src=acc[:, :])
dma_copy(dst=out[:, :], src=t[:, :])
""",
        "w: float32[384, 64], x: float32[384, 96]",
    )
    w, x = (RANDOM.integers(-8, 8, (384, n)).astype(np.float32) for n in (64, 96))

    (out,) = execute_program(multiply, [w, x])

    assert np.array_equal(out, w.T @ x)  # small integers: every sum is exact


def test_memory_is_new_each_time_an_allocation_is_reached():
    stale = program(
        """
out = buffer(float32[4, 2], shared_hbm)
for i in range(2):
    t = buffer(float32[4, 2], sbuf)
    dma_copy(dst=t[:, i : i + 1], src=x[:, i : i + 1])
    dma_copy(dst=out[:, :], src=t[:, :])
""",
        "x: float32[4, 2]",
    )
    x = RANDOM.random((4, 2), np.float32)

    (out,) = execute_program(stale, [x])

    assert np.array_equal(out[:, 1], x[:, 1])
    assert np.isnan(out[:, 0]).all()


def test_what_an_instruction_skips_in_new_memory_is_undefined():
    skipping = program(
        """
out = buffer(float32[4, 8], shared_hbm)
for i in range(2):
    rows = buffer(int32[4, 1], sbuf)
    dma_copy(dst=rows[:, :], src=which[:, i : i + 1])
    t = buffer(float32[4, 8], sbuf)
    dma_copy(
        dst=t[:, :], src=x.ap([[0, 4], [1, 8]], vector_offset=rows[:, :], dim=0), oob_mode=skip,
    )
    dma_copy(dst=out[:, :], src=t[:, :])
""",
        "x: float32[4, 8], which: int32[4, 2]",
    )
    x, which = RANDOM.random((4, 8), np.float32), np.array([[0, 3], [1, 9], [2, 1], [3, 0]])

    (out,) = execute_program(skipping, [x, which.astype(np.int32)])

    assert np.array_equal(out[[0, 2, 3]], x[[3, 1, 0]])
    assert np.isnan(out[1]).all()


def test_a_new_accumulation_group_starts_with_each_psum_allocation():
    groups = program(
        """
out = buffer(float32[4, 8], shared_hbm)
t = buffer(float32[4, 4], sbuf)
dma_copy(dst=t[:, :], src=x[:, :])
for i in range(2):
    acc = buffer(float32[4, 4], psum)
    nc_matmul(dst=acc[:, :], stationary=t[:, :], moving=t[:, :])
    s = buffer(float32[4, 4], sbuf)
    tensor_copy(dst=s[:, :], src=acc[:, :])
    dma_copy(dst=out[:, 4*i : 4*i + 4], src=s[:, :])
""",
        "x: float32[4, 4]",
    )
    x = RANDOM.integers(-4, 4, (4, 4)).astype(np.float32)

    (out,) = execute_program(groups, [x])

    assert np.array_equal(out, np.hstack([x.T @ x] * 2))


def test_indices_read_on_the_device_gather_rows_and_move_windows():
    gather = program(
        """
rows = buffer(int32[5, 1], sbuf)
dma_copy(dst=rows[:, :], src=which[:, :])
t = buffer(float32[5, 8], sbuf)
dma_copy(dst=t[:, :], src=x.ap([[0, 5], [1, 8]], vector_offset=rows[:, :], dim=0))
one = buffer(float32[5, 2], sbuf)
tensor_copy(dst=one[:, :], src=t.ap([[8, 5], [1, 2]], 1, scalar_offset=rows[0:1, :], dim=1))
dma_copy(dst=out[:, :], src=one[:, :])
""",
        "x: float32[16, 8], which: int32[5, 1], out: float32[5, 2]",
    )
    x = RANDOM.random((16, 8), np.float32)
    which = np.array([[3], [0], [15], [3], [7]], np.int32)
    out = np.zeros((5, 2), np.float32)

    execute_program(gather, [x, which, out])

    assert np.array_equal(out, x[which[:, 0], 4:6])


def test_bytes_are_seen_as_another_dtype():
    magnitude = program(
        """
t = buffer(float32[8, 16], sbuf)
dma_copy(dst=t[:, :], src=x[:, :])
tensor_scalar(
    dst=t.ap([[16, 8], [1, 16]], dtype=uint32), data=t.ap([[16, 8], [1, 16]], dtype=uint32),
    operand0=0x7fffffff, op0=bitwise_and,
)
dma_copy(dst=x[:, :], src=t[:, :])
""",
        "x: float32[8, 16]",
        "x",
    )
    x = RANDOM.standard_normal((8, 16)).astype(np.float32)
    kept = x.copy()

    execute_program(magnitude, [x])

    assert np.array_equal(x, np.abs(kept))  # parameters are written in place


# -- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arrays", "what"),
    [
        ([], "program p takes 1 arrays, not 0"),
        ([np.zeros((256, 511), np.float32)], "parameter x of program p is another tensor"),
        ([np.zeros((256, 512), np.int32)], "parameter x of program p is another tensor"),
        ([3], "parameter x of program p is not an array"),
        ([None], "parameter x of program p is not an array"),
        ([[[0.0] * 512] * 256], "parameter x of program p is not an array"),
        (np.zeros((256, 512), np.float32), "program p takes its arrays in a list"),
        (None, "program p takes its arrays in a list"),
    ],
)
def test_other_arrays_are_rejected(arrays, what):
    with pytest.raises(LaunchError, match=what) as caught:
        execute_program(DOUBLE, arrays)
    assert caught.value.expected == "x: float32[256, 512]"


def failing(body: str) -> KernelError:
    with pytest.raises(KernelError) as caught:
        execute_program(program(body, "x: float32[8, 8]", "x"), [np.zeros((8, 8), np.float32)])
    return caught.value


def test_an_instruction_is_rejected_at_the_line_of_the_program():
    error = failing("t = buffer(float32[8, 9], sbuf)\ndma_copy(dst=t[:, :], src=x[:, :])")

    assert str(error).splitlines()[0].endswith(":4:5: dma_copy: src has 64 elements, dst 72")
    assert "dma_copy(dst=t[:, :], src=x[:, :])" in str(error)


@pytest.mark.parametrize(
    ("call", "missing"),
    [
        ("exponential(dst=t[:, :], src=t[:, :], max_value=0.0)", "reduce_init"),
        ("exponential(dst=t[:, :], src=t[:, :], reduce_init=0.0)", "max_value"),
        ("activation(dst=t[:, :], op=exp)", "data"),
    ],
)
def test_an_instruction_that_lacks_an_operand_is_rejected(call, missing):
    load = "t = buffer(float32[8, 8], sbuf)\ndma_copy(dst=t[:, :], src=x[:, :])\n"

    error = failing(load + call)

    assert isinstance(error, SignatureError)
    first = f":5:5: {call.split('(')[0]}: {missing} is missing"
    assert str(error).splitlines()[0].endswith(first)


def test_an_access_that_leaves_its_buffer_is_rejected():
    error = failing(
        "t = buffer(float32[8, 8], sbuf)\nfor i in range(9):\n"
        "    dma_copy(dst=t[0:1, :], src=x[i : i + 1, :])"
    )

    assert isinstance(error, AccessError)
    assert (error.what, error.got) == ("the access leaves x", "elements 64 to 71")


def test_an_access_that_runs_into_the_next_partition_is_rejected():
    error = failing("t = buffer(float32[8, 8], sbuf)\nmemset(dst=t[0:7, 4:12], value=0.0)")

    assert error.what == "the access runs into the next partition of t"


def test_accumulating_onto_unwritten_psum_follows_the_option():
    body = (
        "t = buffer(float32[8, 8], sbuf)\nmemset(dst=t[:, :], value=1.0)\n"
        "a = buffer(float32[8, 8], psum)\nmemset(dst=a[:, :], value=1.0)\n"
        "nc_matmul(dst=a[:, :], stationary=t[:, :], moving=t[:, :], accumulate=True)\n"
        "tensor_copy(dst=t[:, :], src=a[:, :])\ndma_copy(dst=x[:, :], src=t[:, :])"
    )
    adds, x = program(body, "x: float32[8, 8]", "x"), np.zeros((8, 8), np.float32)

    assert isinstance(failing(body), UndefinedError)
    execute_program(adds, [x], options=Options(accumulate_on_unwritten="add"))
    assert (x == 9).all()


class Log(Watcher):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def allocated(self, storage) -> None:
        self.lines.append(f"new {storage.name or 'argument'}")

    def did(self, event: Event) -> None:
        line = event.place.line if event.place else None
        self.lines.append(f"{line} {event.call.record.name}")


def test_observers_see_every_tensor_and_instruction_with_its_line():
    log = Log()

    with watched_by(log):
        execute_program(DOUBLE, [np.zeros((256, 512), np.float32)])

    body = ["new t", "6 dma_copy", "7 tensor_scalar", "8 dma_copy"]
    assert log.lines == ["new argument", "new out", *body, *body]


def test_the_step_of_a_single_element_is_never_taken():
    program = parse_program(
        """program("trn2", "0.6")
def kernel(x: float32[128, 8]):
    out = buffer(float32[128, 1], shared_hbm)
    t = buffer(float32[128, 8], sbuf)
    dma_copy(dst=t[:, :], src=x[:, :])
    dma_copy(dst=out[:, :], src=t[:, 2:8:99999999999999999999])
    return out
"""
    )
    x = np.arange(1024, dtype=np.float32).reshape(128, 8)

    assert np.array_equal(execute_program(program, [x])[0], x[:, 2:3])
