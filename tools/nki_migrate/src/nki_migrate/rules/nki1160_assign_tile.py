"""NKI1160: assigning a tile to a subscript is a copy."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.load(x[0:128, 0:256])
both = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
both[0:128, 0:256] = tile
"""
_GOOD = """
tile = nl.ndarray((128, 256), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:256])
both = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.tensor_copy(dst=both[0:128, 0:256], src=tile)
"""

RULE = Rule(
    id="NKI1160",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="assigning a tile to a subscript is a copy",
    page="""\
Old: `t[ip, jf] = x`

New: `nisa.tensor_copy(dst=t[0:128, 0:512], src=x)`

Item assignment of tensors is an error from 0.2 on. Where the right side is an instruction it
writes there itself: NKI1181.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
