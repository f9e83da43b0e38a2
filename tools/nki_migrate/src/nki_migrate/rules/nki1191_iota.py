"""NKI1191: `nisa.iota` takes a pattern."""

from nki_migrate.findings import Safety
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
numbers = nisa.iota(nl.arange(512)[None, :], dtype=nl.int32)
"""
_GOOD = """
# TODO(nki-migrate NKI1191): `nisa.iota` has no counterpart that this tool writes yet
numbers = nisa.iota(nl.arange(512)[None, :], dtype=nl.int32)
"""

RULE = Rule(
    id="NKI1191",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.MANUAL,
    title="`nisa.iota` takes a pattern",
    page="""\
Old: `nisa.iota(expr, dtype)`

New: `nisa.iota(dst, pattern=[[step, count], …], offset, channel_multiplier)`

Not translated yet.
""",
    examples=(Example.kernel(_BAD, _GOOD),),
)
