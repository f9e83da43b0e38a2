"""NKI1148: `nl.fp32.min` is a literal."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
lowest = nl.full((128, 1), nl.fp32.min, dtype=nl.float32, buffer=nl.sbuf)
"""
_GOOD = """
lowest = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
nisa.memset(dst=lowest, value=-3.4028235e38)
"""

RULE = Rule(
    id="NKI1148",
    step=("0.1", "0.2"),
    klass="a",
    safety=Safety.SAFE,
    title="`nl.fp32.min` is a literal",
    page="""\
Old: `nl.fp32.min`

New: `-3.4028235e38`

The helper objects are gone.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
