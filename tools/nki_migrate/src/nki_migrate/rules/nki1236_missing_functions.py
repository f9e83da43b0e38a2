"""NKI1236: `nl` functions without a counterpart."""

from nki_migrate.findings import Safety
from nki_migrate.lower.remainders import lower_mod
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
a = nl.load(x[0:128, 0:512])
rest = nl.fmod(a, 2)
"""

_GOOD = """
a = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x[0:128, 0:512])
# TODO(nki-migrate NKI1236): `nl.fmod` has no counterpart that this tool writes yet
rest = nl.fmod(a, 2)
"""

_BAD_WHOLE = """
a = nl.load(x[0:128, 0:1], dtype=nl.int32)
rest = nl.mod(a, 48)
"""
_GOOD_WHOLE = """
a = nl.ndarray((128, 1), dtype=nl.int32, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x[0:128, 0:1])
a_times = nl.ndarray((128, 1), dtype=nl.int32, buffer=nl.sbuf)
a_rest = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
nisa.tensor_scalar(dst=a_times, data=a, op0=nl.multiply, operand0=1.0 / 48)
nisa.scalar_tensor_tensor(
    dst=a_rest,
    data=a_times,
    op0=nl.multiply,
    operand0=-48,
    op1=nl.add,
    operand1=a,
)
nisa.tensor_scalar(dst=a_times, data=a_rest, op0=nl.multiply, operand0=1.0 / 48)
nisa.scalar_tensor_tensor(
    dst=a_rest,
    data=a_times,
    op0=nl.multiply,
    operand0=-48,
    op1=nl.add,
    operand1=a_rest,
)
a_more = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
nisa.tensor_scalar(
    dst=a_more,
    data=a_rest,
    op0=nl.less,
    operand0=0.0,
    op1=nl.multiply,
    operand1=48,
)
nisa.tensor_tensor(dst=a_rest, data1=a_rest, data2=a_more, op=nl.add)
nisa.tensor_scalar(
    dst=a_more,
    data=a_rest,
    op0=nl.greater_equal,
    operand0=48,
    op1=nl.multiply,
    operand1=-48,
)
rest = nl.ndarray((128, 1), dtype=nl.int32, buffer=nl.sbuf)
nisa.tensor_tensor(dst=rest, data1=a_rest, data2=a_more, op=nl.add)
"""

RULE = Rule(
    id="NKI1236",
    step=("0.1", "0.2"),
    klass="c",
    safety=Safety.MANUAL,
    title="`nl` functions without a counterpart",
    page="""\
Old: `nl.mod(positions, size)` of whole numbers

New: the multiple of `size` is subtracted, with the quotient as an integer, twice, and the rest is
put into `[0, size)`

`nl.mod` fails on the machine. In float32 all steps are exact while `|x| + 2 · size <= 2**24`, which
is as far as 0.1's own arithmetic goes. The size has to be positive: an `assert` says so.

Old: `nl.fmod`, `nl.rand`, `nl.dropout`, …

New: other instructions, by hand

0.2 has nothing that means the same.
""",
    examples=(Example.kernel(_BAD, _GOOD), Example.kernel(_BAD_WHOLE, _GOOD_WHOLE)),
    calls={"nl.mod": lower_mod},
)
