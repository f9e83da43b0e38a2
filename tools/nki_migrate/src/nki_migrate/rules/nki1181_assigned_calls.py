"""NKI1181: an assigned subscript is the destination."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.load(x[0:128, 0:256])
both = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
ip = nl.arange(128)[:, None]
jf = nl.arange(256)[None, :]
both[ip, 256 + jf] = nisa.activation(op=nl.tanh, data=tile)
"""
_GOOD = """
tile = nl.ndarray((128, 256), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:256])
both = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.activation(dst=both[:, 256:512], op=nl.tanh, data=tile)
"""

RULE = Rule(
    id="NKI1181",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="an assigned subscript is the destination",
    page="""\
Old: `t[ip, jf] = nisa.activation(op=nl.exp, data=a)`

New: `nisa.activation(dst=t[0:128, 0:512], op=nl.exp, data=a)`

No new tile is needed. If the tile has another dtype, two roundings become one.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
