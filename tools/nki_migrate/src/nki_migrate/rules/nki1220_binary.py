"""NKI1220: `nl` arithmetic on tiles is `nisa.tensor_tensor`."""

import ast
from collections.abc import Callable

from nki_migrate.facts.values import Index, Tensor, Value
from nki_migrate.rewriting.context.call_site import CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot
from nki_migrate.rewriting.context.source_text import as_dtype
from nki_migrate.rewriting.destinations.destination import mask_region
from nki_migrate.rewriting.operations.operators import binary
from nki_migrate.rewriting.views.tensors import as_tensor
from nki_migrate.rules.nki1191_iota import tile_of_numbers
from nki_migrate.rules.rule import Hooks

_FUNCTIONS = (
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "bitwise_and",
    "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "logical_xor", "equal", "not_equal",
    "less", "less_equal", "greater", "greater_equal",
)  # fmt: skip


def _rewrite(name: str) -> Callable[[Context, CallSite, Target | None], Tensor]:
    def rewrite(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
        x, y = site.get("x"), site.get("y")
        if x is None or y is None:
            raise Cannot("NKI1220", f"`nl.{name}` without two operands", site.node)
        left, right = (_operand(ctx, n) for n in (x, y))
        ctx.report("NKI1220", site.node, f"`nl.{name}` on tiles is an instruction")
        tensors = [t for t in (as_tensor(ctx, left), as_tensor(ctx, right)) if t is not None]
        widest = max(tensors, key=_elements, default=None)
        region = mask_region(ctx, site, widest.shape if widest else None)
        dtype = as_dtype(ctx, site.get("dtype"))
        return binary(ctx, site.node, name, left, right, dtype, region, target)

    return rewrite


def _operand(ctx: Context, node: ast.expr) -> Value:
    value = ctx.value_of(node)
    return tile_of_numbers(ctx, node, value) if isinstance(value, Index) else value


def _elements(tensor: Tensor) -> int:
    """How many axes are longer than one: the operand that is not broadcast."""
    return sum(s.value != 1 for s in tensor.shape or ())


HOOKS = Hooks(calls={f"nl.{name}": _rewrite(name) for name in _FUNCTIONS})
