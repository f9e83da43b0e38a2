"""NKI1191: `nisa.iota` takes a pattern."""

from nki_migrate.findings import Safety
from nki_migrate.lower.patterned import lower_iota
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_BAD = """
ip = nl.arange(128)[:, None]
jf = nl.arange(512)[None, :]
numbers = nisa.iota(512 * ip + jf + 7, dtype=nl.int32)
"""
_GOOD = """
numbers = nl.ndarray((128, 512), dtype=nl.int32, buffer=nl.sbuf)
nisa.iota(dst=numbers, pattern=[[1, 512]], offset=7, channel_multiplier=512)
"""

RULE = Rule(
    id="NKI1191",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="`nisa.iota` takes a pattern",
    page="""\
Old: `nisa.iota(expr, dtype)`

New: `nisa.iota(dst, pattern=[[step, count], …], offset, channel_multiplier)`

The expression is taken apart into offset + channel_multiplier · partition + Σ step · index; one
that is not of that form stays, with a TODO.
""",
    calls={"nisa.iota": lower_iota},
    examples=(Example.kernel(_BAD, _GOOD),),
)
