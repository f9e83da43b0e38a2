"""Calls that stay as they are and do something else."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from neuroncore.findings import Finding, Safety, Severity
from nki_migrate.index import bound_names, walk
from nki_migrate.rules.arguments import has_unknown_arguments, is_device_call
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site
from nki_migrate.rules.tiles import allocation_of, argument, base_of


def _check(node: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI1261: `print` of tiles."""
    if not isinstance(node.func, ast.Name) or node.func.id != "print":
        return
    values = [v.value for v in ast.walk(node) if isinstance(v, ast.FormattedValue)]
    tiles = [v for v in (*node.args, *values) if allocation_of(v, site) is not None]
    if tiles:
        name = base_of(tiles[0])
        assert name is not None
        said = f'`print` shows no data of the device: `nl.device_print("{name.id}", {name.id})`'
        yield site.warn("NKI1261", node, said)


_OLD = ("nisa.tensor_copy_dynamic_src", "nisa.tensor_copy_dynamic_dst")
_INSTEAD = "tensor_copy with `.ap(pattern, offset, scalar_offset=index, indirect_dim=d)`"


def _says(
    rule: str, what: str, severity: Severity
) -> Callable[[ast.Call, Site], Iterator[Finding]]:
    """NKI2030: `tensor_copy_dynamic_src` and `_dst`: deprecated in 0.3, gone in 0.4."""

    def check(call: ast.Call, site: Site) -> Iterator[Finding]:
        if is_device_call(call, site, *_OLD):
            name = site.canonical(call.func)
            said = f"`{name}` {what}: {_INSTEAD}"
            yield site.finding(rule, call, said, severity=severity, safety=Safety.MANUAL)

    return check


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
    return site.warn(rule, call, said)


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
_VARIABLE = "NKI_PRECISE_FP"


def _check_precise(node: ast.Constant, site: Site) -> Iterator[Finding]:
    """NKI3005: Simulation keeps the precision of the tiles unless it is told otherwise."""
    if node.value == _VARIABLE:
        said = f"{_VARIABLE} is 1 by default from 0.4 on: simulated results differ where it was 0"
        yield site.warn("NKI3005", node, said)


_HARMLESS = {"nisa.engine.tensor", "nisa.engine.unknown"}


def _check_transpose_engine(call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI3009: `nc_transpose(engine=…)` is honoured."""
    engine = argument(call, "engine", 2)
    if engine is None or not is_device_call(call, site, "nisa.nc_transpose"):
        return
    if site.canonical(engine) not in _HARMLESS:
        said = "nc_transpose heeds engine= from 0.4 on: the vector engine transposes 32x32 blocks"
        yield site.warn("NKI3009", call, said)


def _check_copy(call: ast.Call, site: Site) -> Iterator[Finding]:
    """NKI5005: `nl.copy` copies on the vector engine."""
    if is_device_call(call, site, "nl.copy"):
        said = "nl.copy is bit exact from 0.6 on, where it went through float32 before"
        yield site.warn("NKI5005", call, said)


_FRONTEND = "NKI_COMPILER_FRONTEND"


def _check_frontend(node: ast.Constant, site: Site) -> Iterator[Finding]:
    """NKI6022: the former frontend."""
    if isinstance(node.value, str) and _FRONTEND in node.value:
        said = f"{_FRONTEND} selects a frontend that the next release removes: leave it out"
        yield site.warn("NKI6022", node, said)


_RETURNS = "nki.collectives.all_to_all_v"


def _check_returned(node: ast.Compare, site: Site) -> Iterator[Finding]:
    """NKI6019: `all_to_all_v` returns an instruction."""
    sides = [node.left, *node.comparators]
    others = [s for s in sides if not (isinstance(s, ast.Constant) and s.value is None)]
    if len(sides) != 2 or len(others) != 1 or not _is_result(others[0], site):
        return
    is_equal = isinstance(node.ops[0], ast.Is | ast.Eq)
    said = "all_to_all_v returns an instruction, where it returned None"
    yield site.finding("NKI6019", node, said, edits=[site.replace(node, str(is_equal))])


def _is_result(node: ast.expr, site: Site) -> bool:
    function = site.function_of(node)
    if isinstance(node, ast.Call):
        return site.canonical(node.func) == _RETURNS and function is not None
    if not isinstance(node, ast.Name) or function is None:
        return False
    bound = [site.index.parent(n) for n in bound_names(walk(function.node)) if n.id == node.id]
    values = [b.value for b in bound if isinstance(b, ast.Assign)]
    calls = [v for v in values if isinstance(v, ast.Call) and site.canonical(v.func) == _RETURNS]
    return bool(bound) and len(calls) == len(bound)


HOOKS = {
    "NKI1261": Hooks(nodes=(ast.Call,), check=_check),
    "NKI2030": Hooks(nodes=(ast.Call,), check=_says("NKI2030", "is deprecated", Severity.WARNING)),
    "NKI2033": Hooks(nodes=(ast.Call,), check=_range_select),
    "NKI2034": Hooks(nodes=(ast.Call,), check=_left_out("NKI2034", (_PROGRAMS, _BARRIER))),
    "NKI3003": Hooks(nodes=(ast.Call,), check=_says("NKI3003", "is gone", Severity.ERROR)),
    "NKI3005": Hooks(nodes=(ast.Constant,), check=_check_precise),
    "NKI3009": Hooks(nodes=(ast.Call,), check=_check_transpose_engine),
    "NKI4004": Hooks(nodes=(ast.Call,), check=_left_out("NKI4004", _RANDOM)),
    "NKI5005": Hooks(nodes=(ast.Call,), check=_check_copy),
    "NKI6019": Hooks(nodes=(ast.Compare,), check=_check_returned),
    "NKI6022": Hooks(nodes=(ast.Constant,), check=_check_frontend),
}
