"""NKI1138: the buffer of an allocation is written out."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
tile = nl.ndarray((128, 512), dtype=x.dtype)
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
"""

RULE = Rule(
    id="NKI1138",
    step=("0.1", "0.2"),
    klass="a",
    safety=Safety.SAFE,
    title="the buffer of an allocation is written out",
    page="""\
Old: `nl.ndarray(shape, dtype=…)`

New: `nl.ndarray(shape, dtype=…, buffer=nl.sbuf)`

0.1 meant SBUF; 0.2 documents no default.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
