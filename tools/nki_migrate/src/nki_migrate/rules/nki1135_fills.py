"""NKI1135: `nl.zeros`, `nl.ones`, `nl.full` are an allocation and a memset."""

from collections.abc import Callable

from nki_migrate.facts.values import Value
from nki_migrate.findings import Safety
from nki_migrate.lower.context import Cannot, Context
from nki_migrate.lower.creation import create_filled
from nki_migrate.lower.destination import Target
from nki_migrate.lower.evaluate import value_of
from nki_migrate.lower.signatures import CallSite
from nki_migrate.lower.source_text import text_of
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]


def _filled_with(value: str) -> Callable[[Context, CallSite, Target | None], Value]:
    def lower(ctx: Context, site: CallSite, target: Target | None) -> Value:
        dtype = site.get("dtype")
        is_float = dtype is None or not text_of(ctx, dtype).rpartition(".")[2].startswith(
            ("int", "uint")
        )
        return create_filled(ctx, site, f"{value}.0" if is_float else value, target)

    return lower


def _full(ctx: Context, site: CallSite, target: Target | None) -> Value:
    fill = site.get("fill_value")
    if fill is None:
        raise Cannot("NKI1135", "`nl.full` without a fill value", site.node)
    value_of(ctx, fill)
    return create_filled(ctx, site, text_of(ctx, fill), target)


_BAD = """
total = nl.zeros((128, 1), dtype=nl.float32, buffer=nl.sbuf)
"""
_GOOD = """
total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
nisa.memset(dst=total, value=0.0)
"""

RULE = Rule(
    id="NKI1135",
    step=("0.1", "0.2"),
    klass="a",
    safety=Safety.SAFE,
    title="`nl.zeros`, `nl.ones`, `nl.full` are an allocation and a memset",
    page="""\
Old: `t = nl.zeros(shape, dtype, buffer=nl.sbuf)`

New: `t = nl.ndarray(shape, dtype=…, buffer=nl.sbuf)` and `nisa.memset(dst=t, value=0)`

Fills of PSUM accumulators are another matter: NKI1136.
""",
    calls={
        "nl.zeros": _filled_with("0"),
        "nl.ones": _filled_with("1"),
        "nl.full": _full,
    },
    examples=(Example.kernel(_BAD, _GOOD),),
)
