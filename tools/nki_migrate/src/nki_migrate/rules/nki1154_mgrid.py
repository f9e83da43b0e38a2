"""NKI1154: `nl.mgrid` is slices."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
g = nl.mgrid[0:128, 0:256]
tile = nl.load(x[g.p, g.x])
"""
_GOOD = """
tile = nl.ndarray((128, 256), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:256])
"""

RULE = Rule(
    id="NKI1154",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="`nl.mgrid` is slices",
    page="""\
Old: `g = nl.mgrid[0:128, 0:512]`, `t[g.p, g.x]`

New: `t[0:128, 0:512]`

`.p .x .y .z` are the axes 0 to 3.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
