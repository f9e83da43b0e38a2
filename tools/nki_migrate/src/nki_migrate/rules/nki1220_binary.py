"""NKI1220: `nl` arithmetic on tiles is `nisa.tensor_tensor`."""

import ast
from collections.abc import Callable

from nki_migrate.facts.values import Index, Tensor, Value
from nki_migrate.findings import Safety
from nki_migrate.lower.access import as_tensor
from nki_migrate.lower.context import Cannot, Context
from nki_migrate.lower.destination import Target, mask_region
from nki_migrate.lower.evaluate import as_dtype, value_of
from nki_migrate.lower.operators import binary
from nki_migrate.lower.patterned import tile_of_numbers
from nki_migrate.lower.signatures import CallSite
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE"]

_FUNCTIONS = (
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "bitwise_and",
    "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "logical_xor", "equal", "not_equal",
    "less", "less_equal", "greater", "greater_equal",
)  # fmt: skip


def _lower(name: str) -> Callable[[Context, CallSite, Target | None], Tensor]:
    def lower(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
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

    return lower


def _operand(ctx: Context, node: ast.expr) -> Value:
    value = value_of(ctx, node)
    return tile_of_numbers(ctx, node, value) if isinstance(value, Index) else value


def _elements(tensor: Tensor) -> int:
    """How many axes are longer than one: the operand that is not broadcast."""
    return sum(s.value != 1 for s in tensor.shape or ())


_BAD = """
a, b = nl.load(x[0:128, 0:512]), nl.load(x[128:256, 0:512])
larger = nl.maximum(a, b)
"""
_GOOD = """
a = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=a, src=x[0:128, 0:512])
b = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=b, src=x[128:256, 0:512])
larger = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.tensor_tensor(dst=larger, data1=a, data2=b, op=nl.maximum)
"""

RULE = Rule(
    id="NKI1220",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="`nl` arithmetic on tiles is `nisa.tensor_tensor`",
    page="""\
Old: `c = nl.add(a, b)`

New: `nisa.tensor_tensor(dst=c, data1=a, data2=b, op=nl.add)`

With a number or a `(P, 1)` tile it is tensor_scalar (NKI1221). There is no divide: `a / b` is
`a * (1 / b)`, with the reciprocal in float32.

Without `dtype=` comparisons and logical operations give truth values in 0.1, `nl.bool_`, and so
does a sum or a difference of two of them, which is written as `nl.logical_or` or `nl.logical_xor`.
What 0.1 makes a truth value of something else (`nl.exp` of a comparison) is a TODO.
""",
    calls={f"nl.{name}": _lower(name) for name in _FUNCTIONS},
    examples=(Example.kernel(_BAD, _GOOD),),
)
