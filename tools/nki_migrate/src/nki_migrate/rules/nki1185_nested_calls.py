"""NKI1185: nested calls get temporaries."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
larger = nl.exp(nl.load(x[0:128, 0:512]))
"""
_GOOD = """
x_tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=x_tile, src=x[0:128, 0:512])
larger = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.activation(dst=larger, op=nl.exp, data=x_tile)
"""

RULE = Rule(
    id="NKI1185",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="nested calls get temporaries",
    page="""\
Old: `nl.exp(nl.load(x))`

New: one instruction after the other

In evaluation order.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
