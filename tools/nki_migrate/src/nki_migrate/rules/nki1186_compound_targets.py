"""NKI1186: tuple and chained assignments of tiles."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
a, b = nl.load(x[0:128, 0:512]), nl.load(y[0:128, 0:512])
"""
_GOOD = """
a = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x[0:128, 0:512])
b = nl.ndarray((128, 512), dtype=y.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=b, src=y[0:128, 0:512])
"""

RULE = Rule(
    id="NKI1186",
    step=("0.1", "0.2"),
    klass="a",
    safety=Safety.SAFE,
    title="tuple and chained assignments of tiles",
    page="""\
Old: `a, b = nl.load(x), nl.load(y)`

New: one statement each

A chained assignment of a new tile stays a TODO.
""",
    examples=(Example.kernel(_BAD, _GOOD, parameters="x, y"),),
)
