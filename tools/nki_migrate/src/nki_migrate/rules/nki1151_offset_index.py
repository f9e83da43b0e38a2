"""NKI1151: an index tensor with an offset is a slice."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
jf = nl.arange(512)[None, :]
for i in nl.affine_range(4):
    tile = nl.load(x[i * 128 + nl.arange(128)[:, None], 64 + jf])
"""
_GOOD = """
for i in nl.affine_range(4):
    tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[nl.ds(i * 128, 128), 64:576])
"""

RULE = Rule(
    id="NKI1151",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="an index tensor with an offset is a slice",
    page="""\
Old: `t[i * 128 + ip, jf]`

New: `t[nl.ds(i * 128, 128), 0:512]`

`nl.ds(start, size)` is a slice; `a:b` is written where both ends are numbers.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
