"""NKI1163: broadcasts along free dimensions."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
a = nl.load(x[0:128, 0:8])
b = nl.ndarray((128, 8, 64), dtype=x.dtype, buffer=nl.sbuf)
c = nl.multiply(b, a)
"""
_GOOD = """
a = nl.ndarray((128, 8), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x[0:128, 0:8])
b = nl.ndarray((128, 8, 64), dtype=x.dtype, buffer=nl.sbuf)
# TODO(nki-migrate NKI1163): tiles of ranks 3 and 2: no instruction broadcasts so
c = nl.multiply(b, a)
"""

RULE = Rule(
    id="NKI1163",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.MANUAL,
    title="broadcasts along free dimensions",
    page="""\
Old: `a + b` with `(P, 1)` and `(P, F)`

New: `nisa.tensor_scalar` with the `(P, 1)` tile as operand

That form converts, and so do a single element `(1, 1)` and a column beside a row `(1, F)`, which
are first repeated over the partitions (NKI1164); other broadcasts of free dimensions stay.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
