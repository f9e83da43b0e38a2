"""NKI1235: `nl.expand_dims`."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
a = nl.load(x[0:128, 0:512])
deeper = nl.expand_dims(a, 1)
"""
_GOOD = """
a = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x[0:128, 0:512])
# TODO(nki-migrate NKI1235): `nl.expand_dims` has no counterpart that this tool writes yet
deeper = nl.expand_dims(a, 1)
"""

RULE = Rule(
    id="NKI1235",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.MANUAL,
    title="`nl.expand_dims`",
    page="""\
Old: `nl.expand_dims(x, 1)`

New: `.reshape`

Not translated yet.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
