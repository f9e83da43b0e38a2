"""NKI1171: a predicate on loop variables is an `if`."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
for i in nl.affine_range(4):
    tile[...] = nl.load(x[0:128, 0:512], mask=(i < 2))
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
for i in nl.affine_range(4):
    if i < 2:
        nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
"""

RULE = Rule(
    id="NKI1171",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="a predicate on loop variables is an `if`",
    page="""\
Old: `mask=(i < n_tiles)`

New: `if i < n_tiles:`

From 0.2 on loops are unrolled and loop variables are numbers.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
