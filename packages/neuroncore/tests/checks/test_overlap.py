"""overlap: tensors at explicit addresses that share bytes while both are alive."""

from __future__ import annotations

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
