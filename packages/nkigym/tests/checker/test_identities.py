"""Expressions with equal value numbers are equal for every float, of -0, infinity and NaN too.

NumPy computes in float32, for every bit pattern of float16 and all pairs of patterns of 8 bits.
"""

from collections import defaultdict
from itertools import product

import ml_dtypes
import numpy as np
import pytest

from neuroncore.program import parse_program
from nkigym.checker.kernel_value_numbering import kernel_values
from nkigym.checker.operators import COMMUTE, combined

EVERY = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
"""All values of float16."""
BYTES = np.arange(256, dtype=np.uint8)
CONSTANTS = {"zero": 0.0, "minus_zero": -0.0, "one": 1.0}
OPS = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply,
    "maximum": np.maximum, "minimum": np.minimum,
}  # fmt: skip


def bits(array):
    """Bit patterns; one for every NaN."""
    return np.where(np.isnan(array), np.uint32(0x7FC00000), array.view(np.uint32))


def expressions():
    """Up to two operations of x with constants, in both orders, by name: lines and value."""
    one = {
        f"{a} {op} {b}": ([(op, a, b)], OPS[op](value(a), value(b)))
        for op, other in product(OPS, CONSTANTS)
        for a, b in (("x", other), (other, "x"))
    }
    two = {
        f"({name}) {op} {c}": ([*lines, (op, "t", c)], OPS[op](found, value(c)))
        for (name, (lines, found)), op, c in product(one.items(), OPS, CONSTANTS)
    }
    return {"x": ([], EVERY)} | one | two


def value(name):
    return EVERY if name == "x" else np.full_like(EVERY, CONSTANTS[name])


def kernel(lines):
    made = "\n".join(
        f"    {name} = buffer(float32[128, 4], sbuf)\n"
        f"    memset(dst={name}[:, :], value={constant})"
        for name, constant in CONSTANTS.items()
    )
    calls = "\n".join(
        f"    tensor_tensor(dst=t[:, :], data1={a}[:, :], data2={b}[:, :], op={op})"
        for op, a, b in ((op, *("t" if n == "x" else n for n in of)) for op, *of in lines)
    )
    return parse_program(f"""program("trn2", "0.7")
def f(x: float32[128, 4]):
    out = buffer(float32[128, 4], shared_hbm)
    t = buffer(float32[128, 4], sbuf)
    dma_copy(dst=t[:, :], src=x[:, :])
{made}
{calls}
    dma_copy(dst=out[:, :], src=t[:, :])
    return out
""")


@np.errstate(all="ignore")
def test_expressions_with_equal_numbers_are_equal_for_every_float16():
    names_of, found_of = defaultdict(list), expressions()
    for name, (lines, _) in found_of.items():
        names_of[kernel_values(kernel(lines))[0].tobytes()].append(name)

    for first, *others in names_of.values():
        for other in others:
            same = bits(found_of[first][1]) == bits(found_of[other][1])
            assert same.all(), f"{first} and {other} have the same numbers"
    (of_x,) = (names for names in names_of.values() if "x" in names)
    assert of_x[:3] == ["x", "x add minus_zero", "minus_zero add x"]
    assert len(names_of) < len(found_of) - 20


@np.errstate(all="ignore")
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3, ml_dtypes.float8_e5m2])
def test_operations_that_commute_do_so_for_every_pair_of_bytes(op, dtype):
    floats = BYTES.view(dtype).astype(np.float32)
    one, other = np.repeat(floats, 256), np.tile(floats, 256)
    commutes = (bits(OPS[op](one, other)) == bits(OPS[op](other, one))).all()

    assert commutes or op not in COMMUTE
    assert (combined(1, 2, op) == combined(2, 1, op)) == (op in COMMUTE)
