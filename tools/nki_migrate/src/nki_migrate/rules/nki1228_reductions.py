"""NKI1228: `nl` reductions are `nisa.tensor_reduce`."""

from collections.abc import Callable

from nki_migrate.facts.values import Tensor
from nki_migrate.findings import Safety
from nki_migrate.lower.context import Context
from nki_migrate.lower.destination import Target
from nki_migrate.lower.reductions import reduce_tile
from nki_migrate.lower.signatures import CallSite
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_OPERATORS = {"sum": "add", "max": "maximum", "min": "minimum", "prod": "multiply"}


def _lower(op: str) -> Callable[[Context, CallSite, Target | None], Tensor]:
    def lower(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
        ctx.report("NKI1228", site.node, f"`{site.name}` is tensor_reduce with `nl.{op}`")
        return reduce_tile(ctx, site, op, target)

    return lower


_BAD = """
tile = nl.load(x[0:128, 0:512])
total = nl.sum(tile, axis=1, dtype=nl.float32)
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
nisa.tensor_reduce(dst=total, op=nl.add, data=tile, axis=1)
"""

RULE = Rule(
    id="NKI1228",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="`nl` reductions are `nisa.tensor_reduce`",
    page="""\
Old: `s = nl.sum(x, axis=1)`

New: a `(P, 1)` tile and `nisa.tensor_reduce(dst=s, op=nl.add, data=x, axis=1)`

Only free axes.
""",
    calls={f"nl.{name}": _lower(op) for name, op in _OPERATORS.items()},
    examples=(Example.kernel(_BAD, _GOOD),),
)
