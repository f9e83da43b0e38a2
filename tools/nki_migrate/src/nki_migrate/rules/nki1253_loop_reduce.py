"""NKI1253: `nl.loop_reduce`."""

from nki_migrate.findings import Safety
from nki_migrate.lower.loop_sums import lower_loop_reduce
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
total = nl.zeros((128, 512), dtype=nl.float32, buffer=nl.sbuf)
for i in nl.affine_range(4):
    a = nl.load(x[i, 0:128, 0:512], dtype=nl.float32)
    total[...] = nl.loop_reduce(a, op=nl.add, loop_indices=[i])
"""
_GOOD = """
total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
nisa.memset(dst=total, value=0.0)
for i in nl.affine_range(4):
    a = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=a, src=x[i, 0:128, 0:512])
    nisa.tensor_tensor(dst=total, data1=a, data2=total, op=nl.add)
"""
_BAD_NAME = """
for i in nl.affine_range(4):
    a = nl.load(x[i, 0:128, 0:512])
    total = nl.loop_reduce(a, op=nl.add, loop_indices=[i])
"""
_GOOD_NAME = """
for i in nl.affine_range(4):
    a = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=a, src=x[i, 0:128, 0:512])
    # TODO(nki-migrate NKI1253): `nl.loop_reduce` that is not assigned to part of a tensor
    total = nl.loop_reduce(a, op=nl.add, loop_indices=[i])
"""

RULE = Rule(
    id="NKI1253",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="`nl.loop_reduce` is an instruction in place",
    page="""\
Old: `t[…] = nl.loop_reduce(x, op, loop_indices=[i])`

New: `nisa.tensor_tensor(dst=t[…], data1=x, data2=t[…], op=op)`

In 0.1 "the destination tile is also the second operand"; a destination that nothing has written
starts with x. Converted where it was made with a value, or gets one right before the loop. Left:
a name instead of a part of a tensor, and a destination that may hold nothing yet.
""",
    examples=(Example.kernel(_BAD, _GOOD), Example.kernel(_BAD_NAME, _GOOD_NAME)),
    calls={"nl.loop_reduce": lower_loop_reduce},
)
