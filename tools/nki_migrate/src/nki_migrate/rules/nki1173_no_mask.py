"""NKI1173: `mask=None` goes."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.load(x[0:128, 0:512], mask=None)
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
"""

RULE = Rule(
    id="NKI1173",
    step=("0.1", "0.2"),
    klass="a",
    safety=Safety.SAFE,
    title="`mask=None` goes",
    page="""\
Old: `nl.load(x, mask=None)`

New: no mask

The keyword is gone.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
