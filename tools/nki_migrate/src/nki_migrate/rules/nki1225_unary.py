"""NKI1225: `nl` functions of one tile are `nisa.activation`."""

from collections.abc import Callable

from nki_migrate.facts.values import Const, Tensor
from nki_migrate.findings import Safety
from nki_migrate.lower.access import as_tensor
from nki_migrate.lower.context import Cannot, Context
from nki_migrate.lower.destination import Target, mask_region
from nki_migrate.lower.evaluate import as_dtype, value_of
from nki_migrate.lower.operators import binary, unary
from nki_migrate.lower.promotion import refuse_truths
from nki_migrate.lower.signatures import CallSite
from nki_migrate.lower.views import own_dtype
from nki_migrate.rules.rule import Example, Rule

__all__ = ["RULE", "activation_of"]

_FUNCTIONS = (
    "exp", "log", "sin", "cos", "tan", "arctan", "tanh", "sqrt", "sigmoid",
    "relu", "gelu", "gelu_dx", "gelu_apprx_tanh", "silu", "silu_dx", "softplus", "mish",
    "erf", "erf_dx", "sign", "abs", "reciprocal", "negative",
)  # fmt: skip
_MISSING = {"cos", "tan"}  # no activation function of that name


def activation_of(
    name: str, rule: str = "NKI1225"
) -> Callable[[Context, CallSite, Target | None], Tensor]:
    """The lowering of `nl.<name>(x)`, reported under a rule."""

    def lower(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
        x = site.get("x")
        data = as_tensor(ctx, value_of(ctx, x)) if x is not None else None
        if data is None or name in _MISSING:
            why = (
                "has no activation function"
                if data is not None
                else "of a value that is not known to be a tile"
            )
            raise Cannot(rule, f"`nl.{name}` {why}", site.node)
        ctx.report(rule, site.node, f"`nl.{name}` is an activation")
        region = mask_region(ctx, site, data.shape)
        dtype = as_dtype(ctx, site.get("dtype"))
        if name == "negative":
            refuse_truths(own_dtype(ctx, data), dtype, "the negative", site.node, "NKI1225")
            minus_one = Const(-1.0, "-1.0")
            return binary(
                ctx, site.node, "multiply", data, minus_one, dtype or data.dtype, region, target
            )
        return unary(ctx, site.node, name, data, dtype, region, target)

    return lower


_BAD = """
tile = nl.load(x[0:128, 0:512])
tile = nl.exp(tile)
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
nisa.dma_copy(dst=tile, src=x[0:128, 0:512])
nisa.activation(dst=tile, op=nl.exp, data=tile)
"""

RULE = Rule(
    id="NKI1225",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="`nl` functions of one tile are `nisa.activation`",
    page="""\
Old: `y = nl.exp(x)`

New: `nisa.activation(dst=y, op=nl.exp, data=x)`

The names stay valid as `op=`, they are no longer callable in 0.2.
""",
    calls={f"nl.{name}": activation_of(name) for name in _FUNCTIONS},
    examples=(Example.kernel(_BAD, _GOOD),),
)
