"""NKI1190: `nisa.memset` fills a destination."""

from nki_migrate.facts.values import Value
from nki_migrate.findings import Safety
from nki_migrate.lower.context import Context
from nki_migrate.lower.creation import create_filled
from nki_migrate.lower.destination import Target
from nki_migrate.lower.signatures import CallSite
from nki_migrate.lower.source_text import text_of
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]


def _memset(ctx: Context, site: CallSite, target: Target | None) -> Value:
    ctx.report("NKI1190", site.node, "`nisa.memset` fills a destination")
    fill = site.arguments.pop("value")
    return create_filled(ctx, site, text_of(ctx, fill), target)


_BAD = """
ones = nisa.memset((128, 512), 1.0, nl.float32)
"""
_GOOD = """
ones = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
nisa.memset(dst=ones, value=1.0)
"""

RULE = Rule(
    id="NKI1190",
    step=("0.1", "0.2"),
    klass="a",
    safety=Safety.SAFE,
    title="`nisa.memset` fills a destination",
    page="""\
Old: `t = nisa.memset((128, 512), 0.0, nl.float32)`

New: an allocation and `nisa.memset(dst=t, value=0.0)`

Parameters changed from (shape, value, dtype) to (dst, value).
""",
    calls={"nisa.memset": _memset},
    examples=(Example.kernel(_BAD, _GOOD),),
)
