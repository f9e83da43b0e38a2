"""NKI1190: `nisa.memset` fills a destination."""

from nki_migrate.facts.values import Value
from nki_migrate.rewriting.context.call_site import CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.source_text import text_of
from nki_migrate.rewriting.destinations.creation import create_filled
from nki_migrate.rules.rule import Hooks


def _memset(ctx: Context, site: CallSite, target: Target | None) -> Value:
    ctx.report("NKI1190", site.node, "`nisa.memset` fills a destination")
    fill = site.arguments.pop("value")
    return create_filled(ctx, site, text_of(ctx, fill), target)


HOOKS = Hooks(calls={"nisa.memset": _memset})
