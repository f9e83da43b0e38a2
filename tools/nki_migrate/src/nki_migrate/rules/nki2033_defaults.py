"""Defaults that changed: what a call leaves out means something else."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from neuroncore.findings import Finding, Safety, Severity
from nki_migrate.rules.arguments import has_unknown_arguments, is_device_call
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site
from nki_migrate.rules.tiles import argument

_LOWEST = -3.4028235e38  # of float32, as the stubs of SDK 2.28 have it


@dataclass(frozen=True, slots=True)
class _Default:
    """A function, the parameter that has another default now, its place, and what to say."""

    function: str
    parameter: str
    place: int
    said: str
    matters: Callable[[ast.Call, Site], bool] = lambda call, site: True


def _left_out(rule: str, defaults: tuple[_Default, ...]) -> Callable[..., Iterator[Finding]]:
    """A check for calls that leave a parameter out."""
    known = {d.function: d for d in defaults}

    def check(call: ast.Call, site: Site) -> Iterator[Finding]:
        if not is_device_call(call, site, *known) or has_unknown_arguments(call):
            return
        default = known[str(site.canonical(call.func))]
        given = argument(call, default.parameter, default.place)
        if given is None and default.matters(call, site):
            yield _warned(rule, call, site, default.said)

    return check


def _warned(rule: str, call: ast.Call, site: Site, said: str) -> Finding:
    return site.finding(rule, call, said, severity=Severity.WARNING, safety=Safety.MANUAL)


def _has_a_wide_grid(call: ast.Call, site: Site) -> bool:
    """Whether the kernel may be launched over several axes."""
    function = site.function_of(call)
    grids = [x.grid for x in site.index.launches if function and x.kernel == function.name]
    return not grids or any(len(g) > 1 for g in grids)


def _range_select(call: ast.Call, site: Site) -> Iterator[Finding]:
    if not is_device_call(call, site, "nisa.range_select"):
        return
    other = argument(call, "on_false_value", 10)
    command = argument(call, "reduce_cmd", 6)
    ignored = []
    if other is not None and not _is_lowest(other):
        ignored.append("on_false_value")
    if command is not None and site.canonical(command) != "nisa.reduce_cmd.reset_reduce":
        ignored.append("reduce_cmd")
    if ignored:
        said = f"range_select: 0.2 ignored {' and '.join(ignored)}, from 0.3 on they count"
        yield _warned("NKI2033", call, site, said)


def _is_lowest(node: ast.expr) -> bool:
    negated = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    inner = node.operand if isinstance(node, ast.UnaryOp) and negated else None
    value = inner.value if isinstance(inner, ast.Constant) else None
    return isinstance(value, float) and abs(value + _LOWEST) <= 1e31


_PROGRAMS = _Default(
    "nl.num_programs", "axes", 0,
    "num_programs() counts axis 0 from 0.3 on, not all axes: give axes=", _has_a_wide_grid,
)  # fmt: skip
_BARRIER = _Default(
    "nisa.core_barrier", "engine", 2,
    "core_barrier waits on gpsimd from 0.3 on: give engine= if another is meant",
)  # fmt: skip
_RANDOM = tuple(
    _Default(
        f"nisa.{name}", "engine", 1,
        f"{name} runs on {engine} from 0.5 on, where the compiler chose: give engine=",
    )
    for name, engine in (
        ("rng", "vector"), ("rand_get_state", "gpsimd"), ("rand_set_state", "gpsimd")
    )
)  # fmt: skip


HOOKS = {
    "NKI2033": Hooks(nodes=(ast.Call,), check=_range_select),
    "NKI2034": Hooks(nodes=(ast.Call,), check=_left_out("NKI2034", (_PROGRAMS, _BARRIER))),
    "NKI4004": Hooks(nodes=(ast.Call,), check=_left_out("NKI4004", _RANDOM)),
}
