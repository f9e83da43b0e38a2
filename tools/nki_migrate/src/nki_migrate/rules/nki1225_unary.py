"""NKI1225: `nl` functions of one tile are `nisa.activation`."""

from collections.abc import Callable

from nki_migrate.facts.values import Const, Tensor
from nki_migrate.rewriting.context.call_site import CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot
from nki_migrate.rewriting.context.source_text import as_dtype
from nki_migrate.rewriting.destinations.destination import mask_region
from nki_migrate.rewriting.inference.promotion import reject_truth_values
from nki_migrate.rewriting.operations.operators import binary, unary
from nki_migrate.rewriting.views.tensors import as_tensor
from nki_migrate.rewriting.views.view_text import own_dtype
from nki_migrate.rules.rule import Hooks

_FUNCTIONS = (
    "exp", "log", "sin", "cos", "tan", "arctan", "tanh", "sqrt", "sigmoid",
    "relu", "gelu", "gelu_dx", "gelu_apprx_tanh", "silu", "silu_dx", "softplus", "mish",
    "erf", "erf_dx", "sign", "abs", "reciprocal", "negative",
)  # fmt: skip
_MISSING = {"cos", "tan"}  # no activation function of that name


def activation_of(
    name: str, rule: str = "NKI1225"
) -> Callable[[Context, CallSite, Target | None], Tensor]:
    """The rewriting of `nl.<name>(x)`, reported under a rule."""

    def rewrite(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
        x = site.get("x")
        data = as_tensor(ctx, ctx.value_of(x)) if x is not None else None
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
            reject_truth_values(own_dtype(ctx, data), dtype, "the negative", site.node, "NKI1225")
            minus_one = Const(-1.0, "-1.0")
            return binary(
                ctx, site.node, "multiply", data, minus_one, dtype or data.dtype, region, target
            )
        return unary(ctx, site.node, name, data, dtype, region, target)

    return rewrite


HOOKS = Hooks(calls={f"nl.{name}": activation_of(name) for name in _FUNCTIONS})
