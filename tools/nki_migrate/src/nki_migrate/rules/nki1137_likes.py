"""NKI1137: `nl.zeros_like`, `nl.empty_like` write out shape and dtype."""

from nki_migrate.facts.values import Value
from nki_migrate.findings import Safety
from nki_migrate.lower.context import Context
from nki_migrate.lower.creation import create_like
from nki_migrate.lower.destination import Target
from nki_migrate.lower.signatures import CallSite
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]


def _zeros(ctx: Context, site: CallSite, target: Target | None) -> Value:
    return create_like(ctx, site, "0", target)


def _empty(ctx: Context, site: CallSite, target: Target | None) -> Value:
    return create_like(ctx, site, None, target)


_BAD = """
tile = nl.load(x[0:128, 0:512])
total = nl.zeros_like(tile)
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
total = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.memset(dst=total, value=0)
"""

RULE = Rule(
    id="NKI1137",
    step=("0.1", "0.2"),
    klass="a",
    safety=Safety.SAFE,
    title="`nl.zeros_like`, `nl.empty_like` write out shape and dtype",
    page="""\
Old: `t = nl.zeros_like(x)`

New: `t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)` and a memset

0.2 has neither function; 0.3 brings them back with another parameter name.
""",
    calls={"nl.zeros_like": _zeros, "nl.empty_like": _empty},
    examples=(Example.kernel(_BAD, _GOOD),),
)
