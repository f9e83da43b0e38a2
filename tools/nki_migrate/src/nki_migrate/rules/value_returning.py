"""Instructions that return their result in 0.1, and instructions with a destination."""

from __future__ import annotations

from neuroncore.surface import instruction_names
from nki_migrate.facts.values import Tensor
from nki_migrate.rewriting.context.call_site import CallSite, Target
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot
from nki_migrate.rewriting.destinations.destination import valid_limits
from nki_migrate.rewriting.operations.destination_arguments import into_given
from nki_migrate.rewriting.operations.instructions import INSTRUCTIONS, instruction
from nki_migrate.rewriting.views.tensors import as_tensor
from nki_migrate.rules.rule import Hooks

# rules of their own: NKI1194, NKI1197
_ELSEWHERE = {"tensor_reduce", "max8", "nc_find_index8", "nc_match_replace8"}
_SAID = "`{}` takes its destination first"


def _search(ctx: Context, site: CallSite, target: Target | None) -> Tensor:
    """NKI1197: predicated copies, the eight largest, and where they are."""
    ctx.report("NKI1197", site.node, _SAID.format(site.name))
    data = (
        as_tensor(ctx, ctx.value_of(site.arguments["data"])) if "data" in site.arguments else None
    )
    part = data is not None and any(axis > 0 for axis in valid_limits(ctx, data))
    if data is not None and (part or site.get("mask") is not None):
        why = "a search in part of a tile" if part else f"a mask on `{site.name}`"
        raise Cannot("NKI1197", why, site.node)
    return instruction(ctx, site, target)


OLDEST = "0.2"  # the first version whose instructions take their destination


def _message(canonical: str) -> str:
    """NKI1198: instructions whose result is left to the reader."""
    if canonical.partition(".")[2] in instruction_names(OLDEST):
        return f"`{canonical}` writes to `dst=` from 0.2 on: allocate the result"
    return f"`{canonical}` is gone: 0.2 and later have no such instruction"


HOOKS = {
    "NKI1180": Hooks(
        calls={f"nisa.{name}": instruction for name in INSTRUCTIONS if name not in _ELSEWHERE}
    ),
    "NKI1193": Hooks(
        calls={
            "nisa.nc_stream_shuffle": into_given(
                "NKI1193", "`nisa.nc_stream_shuffle` has its destination first"
            )
        }
    ),
    "NKI1194": Hooks(calls={"nisa.tensor_reduce": instruction}),
    "NKI1197": Hooks(
        calls={f"nisa.{name}": _search for name in ("max8", "nc_find_index8", "nc_match_replace8")}
        | {
            name: into_given("NKI1197", _SAID.format(name))
            for name in ("nisa.tensor_copy_predicated", "nisa.select_reduce")
        }
    ),
    "NKI1198": Hooks(message=_message),
}
