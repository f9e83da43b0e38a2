"""NKI1223: operators on tiles are instructions."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.load(x[0:128, 0:512])
rest = 1.0 - tile / 2.0
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
tile_multiply = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
nisa.tensor_scalar(dst=tile_multiply, data=tile, op0=nl.multiply, operand0=0.5)
rest = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
nisa.tensor_scalar(
    dst=rest,
    data=tile_multiply,
    op0=nl.subtract,
    operand0=1.0,
    reverse0=True,
)
"""

RULE = Rule(
    id="NKI1223",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="operators on tiles are instructions",
    page="""\
Old: `c = a + b`

New: `nisa.tensor_tensor(dst=c, data1=a, data2=b, op=nl.add)`

As NKI1220; tensor arithmetic is an error from 0.2 on.

A comparison gives truth values, as `nl.greater` does: a tile of `nl.bool_` (NKI1220).
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
