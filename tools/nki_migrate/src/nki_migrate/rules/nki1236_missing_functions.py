"""NKI1236: `nl` functions without a counterpart."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
a = nl.load(x[0:128, 0:512])
rest = nl.mod(a, 2)
"""
_GOOD = """
a = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x[0:128, 0:512])
# TODO(nki-migrate NKI1236): `nl.mod` has no counterpart that this tool writes yet
rest = nl.mod(a, 2)
"""

RULE = Rule(
    id="NKI1236",
    step=("0.1", "0.2"),
    klass="c",
    safety=Safety.MANUAL,
    title="`nl` functions without a counterpart",
    page="""\
Old: `nl.mod`, `nl.rand`, `nl.dropout`, …

New: other instructions, by hand

0.2 has nothing that means the same.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
