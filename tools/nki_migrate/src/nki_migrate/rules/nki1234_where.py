"""NKI1234: `nl.where`."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
a = nl.load(x[0:128, 0:512])
chosen = nl.where(a, a, a)
"""
_GOOD = """
a = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x[0:128, 0:512])
# TODO(nki-migrate NKI1234): `nl.where` has no counterpart that this tool writes yet
chosen = nl.where(a, a, a)
"""

RULE = Rule(
    id="NKI1234",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.MANUAL,
    title="`nl.where`",
    page="""\
Old: `nl.where(c, x, y)`

New: `nisa.select_reduce` or `nisa.tensor_copy_predicated`

Not translated yet.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
