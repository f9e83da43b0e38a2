"""NKI1238: `dtype=` of `nl` functions."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.load(x[0:128, 0:512])
wide = nl.add(tile, 1.0, dtype=nl.float32)
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
wide = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
nisa.tensor_scalar(dst=wide, data=tile, op0=nl.add, operand0=1.0)
"""

RULE = Rule(
    id="NKI1238",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="`dtype=` of `nl` functions is the dtype of the destination",
    page="""\
Old: `nl.add(a, b, dtype=nl.float32)`

New: the new tile has `dtype=nl.float32`

A tile that is there already rounds to its own dtype, with or without `dtype=`.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
