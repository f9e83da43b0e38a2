"""NKI1158: nested subscripts become one."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.load(x[0:128, 0:512])
part = nl.load(x[0:256, 0:512][64:128, 0:256])
root = nl.sqrt(tile[0:128][0:64, 0:256])
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
part = nl.ndarray((64, 256), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=part, src=x[64:128, 0:256])
root = nl.ndarray((64, 256), dtype=x.dtype, buffer=nl.sbuf)
nisa.activation(dst=root, op=nl.sqrt, data=tile[0:64, 0:256])
"""

RULE = Rule(
    id="NKI1158",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="nested subscripts become one",
    page="""\
Old: `x[0:256][64:128, 0:256]`, `t[i][ip, jf]`

New: `x[64:128, 0:256]`; a tile of a list of tiles keeps its own subscript (NKI1131)

Views of views come with 0.5.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
