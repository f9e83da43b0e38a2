"""NKI1161: assigning a number to a tile is a memset."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
tile[0:128, 0:256] = 1.0
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
nisa.memset(dst=tile[0:128, 0:256], value=1.0)
"""

RULE = Rule(
    id="NKI1161",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="assigning a number to a tile is a memset",
    page="""\
Old: `t[...] = 0.0`

New: `nisa.memset(dst=t, value=0.0)`

The value's kind has to be that of the tile from 0.3 on (NKI2006).
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
