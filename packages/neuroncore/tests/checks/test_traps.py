"""traps: accumulation groups of PSUM and results, in programs."""

from __future__ import annotations

import pytest

from neuroncore.options import Options

HEAD = """
w = buffer(float32[128, 128], sbuf)
dma_copy(dst=w[:, :], src=x[:, 0:128])
acc = buffer(float32[128, {columns}], psum)
"""
MATMUL = "nc_matmul(dst=acc[{rows}, {columns}], stationary=w[:, {rows}], moving=w[:, :]{more})"


def matmuls(*columns: str, rows: str = ":", more: str = "") -> str:
    return "\n".join(MATMUL.format(rows=rows, columns=c, more=more) for c in columns)


def codes(found) -> list[str | None]:
    return [finding.code for finding in found]


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        (("0:128", "128:256", "0:128"), ["HW01"]),
        (("0:128", "0:128", "128:256", "128:256"), []),
        (("0:128", "64:192", "0:128"), ["HW04"]),
    ],
    ids=["interleaved", "one after another", "overlapping"],
)
def test_groups_of_one_bank_end_before_the_next_starts(findings, columns, code):
    body = HEAD.format(columns=256) + matmuls(*columns)

    assert codes(findings("traps", body)) == code


def test_groups_of_different_banks_may_be_interleaved(findings):
    body = HEAD.format(columns=1024) + matmuls("0:128", "512:640", "0:128")

    assert findings("traps", body) == ()


def test_groups_on_different_partitions_of_a_bank_may_be_interleaved(findings):
    upper, lower = (matmuls("0:128", rows=rows) for rows in ("0:64", "64:128"))

    assert findings("traps", HEAD.format(columns=256) + "\n".join([upper, lower, upper])) == ()


def test_tensors_at_addresses_of_one_bank_share_it(findings):
    body = HEAD.format(columns=128).replace("psum)", "psum, address=(0, 0))")
    body += "other = buffer(float32[128, 128], psum, address=(0, 0))\n"
    one, two = matmuls("0:128"), matmuls("0:128").replace("acc", "other")

    assert codes(findings("traps", "\n".join([body + one, two, one]))) == ["HW01"]


@pytest.mark.parametrize(("policy", "severities"), [("warn", ["warning"]), ("ignore", [])])
def test_an_option_says_how_interleaved_groups_are_reported(findings, policy, severities):
    body = HEAD.format(columns=256) + matmuls("0:128", "128:256", "0:128")

    found = findings("traps", body, options=Options(interleaved_groups=policy))

    assert [f.severity for f in found] == severities


def test_a_partial_sum_that_is_read_may_be_continued_explicitly(findings):
    first, then = matmuls("0:128"), matmuls("0:128", more=", accumulate=True")
    read = "t = buffer(float32[128, 128], sbuf)\ntensor_copy(dst=t[:, :], src=acc[:, 0:128])"

    assert findings("traps", HEAD.format(columns=256) + "\n".join([first, read, then])) == ()


INTEGERS = """
a = buffer(int32[128, 8], sbuf)
b = buffer(int32[128, 8], sbuf)
r = buffer({result}[128, 8], sbuf)
memset(dst=a[:, :], value={a})
memset(dst=b[:, :], value={b})
{call}
"""
COMPARED = "tensor_tensor(dst=r[:, :], data1=a[:, :], data2=b[:, :], op=equal)"
COPIED = "tensor_copy(dst=r[:, :], src=a[:, :])"


def scalar(op: str, number: float, more: str = "") -> str:
    return f"tensor_scalar(dst=r[:, :], data=a[:, :], op0={op}, operand0={number}{more})"


@pytest.mark.parametrize(
    ("call", "result", "a", "code"),
    [
        (scalar("add", 1), "int32", 2**24, ["HW12"]),
        (scalar("add", 1), "int32", 2**24 - 1, []),
        (scalar("multiply", 3), "int32", 2**23 + 1, ["HW12"]),
        (scalar("multiply", 4), "int32", 2**23 + 1, []),
        (scalar("less", 0), "uint8", 2**24 + 1, []),
        (scalar("greater", 2**24), "uint8", 2**24 + 1, ["HW12"]),
        (scalar("multiply", 0.5), "float32", 2**24 + 1, []),
        (scalar("multiply", 0.5), "int32", 2**24 + 1, ["HW12"]),
        (scalar("bitwise_and", 255), "int32", 2**24 + 1, []),
        (scalar("maximum", 0, ", op1=maximum, operand1=0"), "int32", 2**24 + 1, ["HW12"]),
        (COMPARED.replace(")", ", engine=vector)"), "uint8", 2**24 + 1, ["HW12"]),
        (COPIED, "int32", 2**24 + 1, []),
        (COPIED, "float32", 2**24 + 1, []),
        (COPIED, "uint32", 2**24 + 1, ["HW12"]),
    ],
)
def test_integers_are_reported_where_float32_changes_the_result(findings, call, result, a, code):
    body = INTEGERS.format(result=result, a=a, b=2**24, call=call)

    assert codes(findings("traps", body)) == code


def test_values_are_read_unless_an_option_leaves_it_out(findings):
    body = INTEGERS.format(result="int32", a=2**24, b=0, call=scalar("add", 1))

    assert findings("traps", body, options=Options(trap_values="skip")) == ()
