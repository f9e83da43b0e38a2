"""NKI1135: `nl.zeros`, `nl.ones`, `nl.full` are an allocation and a memset."""

from collections.abc import Callable

from nki_migrate.facts.values import Value
from nki_migrate.rewriting.context.call_site import CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot
from nki_migrate.rewriting.context.source_text import text_of
from nki_migrate.rewriting.destinations.creation import create_filled
from nki_migrate.rules.rule import Hooks


def _filled_with(value: str) -> Callable[[Context, CallSite, Target | None], Value]:
    def rewrite(ctx: Context, site: CallSite, target: Target | None) -> Value:
        dtype = site.get("dtype")
        is_float = dtype is None or not text_of(ctx, dtype).rpartition(".")[2].startswith(
            ("int", "uint")
        )
        return create_filled(ctx, site, f"{value}.0" if is_float else value, target)

    return rewrite


def _full(ctx: Context, site: CallSite, target: Target | None) -> Value:
    fill = site.get("fill_value")
    if fill is None:
        raise Cannot("NKI1135", "`nl.full` without a fill value", site.node)
    ctx.value_of(fill)
    return create_filled(ctx, site, text_of(ctx, fill), target)


HOOKS = Hooks(
    calls={
        "nl.zeros": _filled_with("0"),
        "nl.ones": _filled_with("1"),
        "nl.full": _full,
    }
)
