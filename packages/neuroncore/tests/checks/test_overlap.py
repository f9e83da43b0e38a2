"""overlap: tensors at explicit addresses that share bytes while both are alive."""

from __future__ import annotations

import numpy as np
import pytest

BODY = """
a = buffer(float32[{rows}, 128], sbuf, address=({p}, 0))
b = buffer(float32[{rows}, 128], sbuf, address=({q}, {byte}))
out = buffer(float32[{rows}, 128], shared_hbm)
memset(dst=a[:, :], value=1.0)
memset(dst=b[:, :], value=2.0)
{end}
"""
BOTH = "tensor_tensor(dst=b[:, :], data1=a[:, :], data2=b[:, :], op=add)"


def body(p: int = 0, q: int = 0, byte: int = 0, rows: int = 32, end: str = BOTH) -> str:
    copy = "dma_copy(dst=out[:, :], src=b[:, :])"
    return BODY.format(p=p, q=q, byte=byte, rows=rows, end=f"{end}\n{copy}")


@pytest.mark.parametrize(
    ("byte", "shared"), [(0, True), (508, True), (511, True), (512, False), (1024, False)]
)
def test_a_shared_byte_is_an_overlap(findings, byte, shared):
    assert bool(findings("overlap", body(byte=byte))) is shared


@pytest.mark.parametrize(("byte", "shared"), [(508, True), (512, False)])
def test_the_first_one_may_lie_behind(findings, byte, shared):
    text = body().replace("address=(0, 0)", f"address=(0, {byte})", 1)

    assert bool(findings("overlap", text)) is shared


@pytest.mark.parametrize(("q", "shared"), [(0, True), (32, False), (96, False)])
def test_other_partitions_are_other_memory(findings, q, shared):
    assert bool(findings("overlap", body(q=q))) is shared


def test_the_finding_names_both_tensors_and_where_they_lie(findings):
    (found,) = findings("overlap", body(byte=256))

    assert found.message == "b overwrites a, which is used afterwards"
    assert found.got == (
        "b at partitions 0 to 31, bytes 256 to 767 of SBUF; "
        "a at partitions 0 to 31, bytes 0 to 511 of SBUF"
    )
    assert found.place.line == 4
    assert "a is allocated at" in found.notes[0]


def test_memory_may_be_used_again_after_the_last_use(findings):
    assert findings("overlap", body(end="")) == ()


def test_a_result_may_lie_exactly_where_its_input_lay(findings):
    in_place = """
a = buffer(float32[32, 128], sbuf, address=(0, 0))
b = buffer(float32[32, 128], sbuf, address=(0, {byte}))
memset(dst=a[:, :], value=1.0)
tensor_copy(dst=b[:, :], src=a[:, :])
"""
    assert findings("overlap", in_place.format(byte=0)) == ()
    assert len(findings("overlap", in_place.format(byte=4))) == 1


def test_tensors_without_an_address_are_left_to_the_compiler(findings):
    assert findings("overlap", body().replace(", address=(0, 0))", ")", 1)) == ()


def test_sbuf_and_psum_are_two_memories(findings):
    assert (
        findings("overlap", body().replace("sbuf, address=(0, 0)", "psum, address=(0, 0)", 1)) == ()
    )


BETWEEN = """
a = buffer(float32[32, {free}], sbuf, address=(0, 0))
b = buffer(float32[32, {free}], sbuf, address=(0, 0))
out = buffer(float32[32, {free}], shared_hbm)
memset(dst=a[:, :], value=1.0)
{instruction}
dma_copy(dst=out[:, :], src=b[:, :])
"""


@pytest.mark.parametrize(
    ("instruction", "operand"),
    [
        ("nc_transpose(dst=b[:, :], data=a[:, :])", "data"),
        ("tensor_copy(dst=b[:, :], src=a.ap([[32, 32], [-1, 32]], 31))", "src"),
        ("tensor_copy(dst=b[:, 0:31], src=a[:, 1:32])", "src"),
        ("tensor_tensor(dst=b[:, :], data1=a[:, :], data2=a.ap([[32, 32], [-1, 32]], 31), op=add)",
         "data2"),
        ("tensor_scalar(dst=b[:, :], data=a[:, :], op0=add, operand0=a[:, 0:1])", "operand0"),
        ("tensor_reduce(dst=b[:, 0:1], data=a[:, :], op=add, axis=1)", "data"),
    ],
    ids=["transposed", "reversed", "shifted", "second-reversed", "per-partition", "reduced"],
)  # fmt: skip
def test_a_result_on_elements_that_are_still_to_be_read_is_an_overlap(
    findings, instruction, operand
):
    found = findings("overlap", BETWEEN.format(free=32, instruction=instruction))[0]

    name = instruction.partition("(")[0]
    assert (found.instruction, found.message) == (
        name,
        f"dst overwrites {operand} while it is read",
    )
    assert found.got == (
        "b at partitions 0 to 31, bytes 0 to 127 of SBUF; "
        "a at partitions 0 to 31, bytes 0 to 127 of SBUF"
    )


@pytest.mark.parametrize(
    "instruction",
    [
        "tensor_copy(dst=b.ap([[32, 32], [-1, 32]], 31), src=a.ap([[32, 32], [-1, 32]], 31))",
        "tensor_copy(dst=b[:, 0:16], src=a[:, 16:32])",
        "tensor_scalar(dst=b[0:16, :], data=a[0:16, :], op0=add, operand0=1.0)",
        "tensor_copy(dst=b.ap([[32, 32], [8, 4], [1, 8]], 0), src=a[:, :])",
        "dma_copy(dst=b[:, :], src=a[:, :])",
    ],
    ids=["both-reversed", "other-columns", "some-partitions", "other-shape", "dma"],
)
def test_a_result_may_lie_on_its_operand_element_on_element(findings, instruction):
    assert findings("overlap", BETWEEN.format(free=32, instruction=instruction)) == ()


def test_a_tensor_that_is_written_anew_has_lost_nothing(findings):
    turns = """
a = buffer(float32[32, 128], sbuf, address=(0, 0))
b = buffer(float32[32, 128], sbuf, address=(0, 256))
out = buffer(float32[32, 128], shared_hbm)
for i in range(3):
    dma_copy(dst=a[:, :], src=x[0:32, 0:128])
    dma_copy(dst=out[:, :], src=a[:, :])
    memset(dst=b[:, :], value=1.0)
    dma_copy(dst=out[:, :], src=b[:, :])
"""
    outside = "    dma_copy(dst=a[:, :], src=x[0:32, 0:128])\n"
    moved = turns.replace(outside, "").replace("for i", outside.strip() + "\nfor i")

    assert findings("overlap", turns) == ()
    (found,) = findings("overlap", moved)
    assert found.message == "b overwrites a, which is used afterwards"
    assert found.count == 2  # from the second iteration on


@pytest.mark.parametrize(
    ("again", "read", "lost"),
    [("0:64", "0:64", False), ("0:64", "64:128", True), ("0:128", "0:128", False),
     ("0:64", "0:65", True)],
)  # fmt: skip
def test_what_is_written_again_in_part_is_lost_elsewhere(findings, again, read, lost):
    text = f"""
a = buffer(float32[32, 128], sbuf, address=(0, 0))
b = buffer(bfloat16[32, 256], sbuf, address=(0, 0))
out = buffer(float32[32, 128], shared_hbm)
memset(dst=a[:, :], value=1.0)
memset(dst=b[:, :], value=2.0)
memset(dst=a[:, {again}], value=3.0)
dma_copy(dst=out[:, {read}], src=a[:, {read}])
"""
    assert bool(findings("overlap", text)) is lost


@pytest.mark.parametrize(("column", "lost"), [(3, False), (4, True), (7, True), (8, False)])
def test_only_bytes_that_are_written_are_lost(findings, column, lost):
    text = f"""
a = buffer(float32[64, 128], sbuf, address=(0, 0))
b = buffer(bfloat16[32, 128], sbuf, address=(32, 8))
out = buffer(float32[64, 128], shared_hbm)
memset(dst=a[:, :], value=1.0)
memset(dst=b[:, 4:12], value=2.0)
dma_copy(dst=out[:, 0:1], src=a[:, {column}:{column + 1}])
"""
    assert bool(findings("overlap", text)) is lost
    assert (
        findings(
            "overlap",
            text.replace("[:, 0:1]", "[0:32, 0:1]").replace(f"a[:, {column}", f"a[0:32, {column}"),
        )
        == ()
    )


def test_a_read_of_what_was_never_written_is_no_overlap(findings):
    text = """
a = buffer(float32[32, 128], sbuf, address=(0, 0))
b = buffer(float32[32, 128], sbuf, address=(0, 0))
out = buffer(float32[32, 128], shared_hbm)
memset(dst=a[:, 0:64], value=1.0)
dma_copy(dst=out[:, 0:64], src=a[:, 0:64])
memset(dst=b[:, :], value=2.0)
dma_copy(dst=out[:, 64:128], src=a[:, 64:128])
"""
    assert findings("overlap", text) == ()
    assert (
        len(
            findings(
                "overlap",
                text.replace("src=a[:, 64", "src=a[:, 63").replace("out[:, 64", "out[:, 63"),
            )
        )
        == 1
    )


ROWS = (slice(0, 32), slice(32, 64), slice(0, 64))
"""Partitions of a tensor that an access may name; all only of one that begins at partition 0."""


class Chip:
    """A program of fills and reads of tensors at addresses, and what a device's memory holds.

    Each fill has a number; a tensor has the numbers that it should hold, the memory the numbers
    that it does hold.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.memory = np.zeros((96, 64), np.int64)
        self.places = [(32 * int(q), 4 * int(b)) for q, b in rng.integers(0, (2, 8), (4, 2))]
        self.tensors = [np.zeros((64, 32), np.int64) for _ in self.places]
        self.lines = [
            f"t{n} = buffer(float32[64, 8], sbuf, address=({q}, {b}))"
            for n, (q, b) in enumerate(self.places)
        ]
        self.lines.append("out = buffer(float32[64, 8], shared_hbm)")

    def where(self, tensor: int) -> tuple[slice, slice]:
        """Partitions and bytes of a tensor in the memory."""
        partition, byte = self.places[tensor]
        return slice(partition, partition + 64), slice(byte, byte + 32)

    def step(self, number: int) -> bool:
        """Add an instruction; True where it reads what another tensor has written over."""
        rng = self.rng
        tensor = int(rng.integers(4))
        rows = ROWS[rng.integers(2 if self.places[tensor][0] else 3)]
        left, right = sorted(rng.choice(9, 2, replace=False))
        view = f"[{rows.start}:{rows.stop}, {left}:{right}]"
        mine = self.tensors[tensor][rows, 4 * left : 4 * right]
        held = self.memory[self.where(tensor)][rows, 4 * left : 4 * right]
        if rng.integers(2):
            self.lines.append(f"memset(dst=t{tensor}{view}, value=1.0)")
            mine[...] = held[...] = number
            return False
        self.lines.append(f"dma_copy(dst=out{view}, src=t{tensor}{view})")
        return bool(((mine != 0) & (mine != held)).any())


@pytest.mark.parametrize("seed", range(20))
def test_it_finds_what_a_memory_of_bytes_shows(findings, seed):
    chip = Chip(np.random.default_rng(seed))

    lost = sum([chip.step(number) for number in range(1, 41)])

    found = findings("overlap", "\n".join(chip.lines))
    assert sum(f.count for f in found) == lost, "\n".join(chip.lines)
