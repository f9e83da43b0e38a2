"""One function through the lowering: two passes, dead index lines removed, a plan of changes."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from nki_migrate.facts.observed import FileFacts
from nki_migrate.facts.values import Unknown, Value
from nki_migrate.findings import Finding, Safety, Severity
from nki_migrate.index import FileIndex, Function, Launch, shadowed_call
from nki_migrate.lower.context import Cannot, Context, Seen
from nki_migrate.lower.dead_lines import remove_address_lines, remove_dead_lines
from nki_migrate.lower.grid import GridPlan, Launches, bind_grid, plan_grid
from nki_migrate.lower.passed import parameter_value
from nki_migrate.lower.plan import Change, Loops
from nki_migrate.lower.regions import note_what_is_left
from nki_migrate.lower.statements import walk_body
from nki_migrate.request import Request

__all__ = ["Lowered", "lower_function", "plan_loops"]


@dataclass(slots=True)
class Lowered:
    """What the lowering of one function wants to change, and what it says."""

    changes: dict[ast.stmt, Change]
    findings: list[Finding]
    loops: list[Loops] = field(default_factory=list)
    relaunch: tuple[Launch, ...] = ()
    arguments: dict[str, list[tuple[Value, ...]]] = field(default_factory=dict)


def lower_function(
    index: FileIndex,
    function: Function,
    request: Request,
    launches: Launches = (),
    calls: list[tuple[Value, ...]] | None = None,
    silenced: Callable[[str, int], bool] = lambda rule, line: False,
    observed: FileFacts | None = None,
) -> Lowered:
    """Lower one device function from 0.1 to 0.2.

    `launches` are launches of it, each with its file; `calls` the argument values at calls from
    other kernels; `observed` what runs of the file showed.
    """
    grid, refusal = _grid(index, function, request, launches)

    def make_pass(seen: Seen, *, final: bool) -> Context:
        ctx = Context(index, function, request, seen, final)
        ctx.silenced, ctx.observed = silenced, observed
        return _pass(ctx, grid, calls)

    seen = Seen()
    before, seen = seen, make_pass(seen, final=False).seen
    while True:  # what the last pass rests on has to know which tiles were given something
        before, seen = seen, make_pass(seen, final=False).seen
        if not seen.learned_of_given(before):
            break
    while True:  # until it is known what loops bind to several kinds, and what has to be a list
        ctx = make_pass(seen, final=True)
        if ctx.seen.unlike <= seen.unlike and ctx.seen.listed <= seen.listed:
            break
        seen.unlike |= ctx.seen.unlike
        seen.listed |= ctx.seen.listed
    remove_dead_lines(ctx)
    remove_address_lines(ctx)
    result = Lowered(ctx.changes, ctx.findings, arguments=ctx.seen.arguments)
    if refusal is not None:
        result.findings.append(refusal)
    if grid is not None:
        result.loops = [grid.loops]
        result.relaunch = grid.launches
        _drop_renamed_ids(ctx, grid)
    return result


def _grid(
    index: FileIndex, function: Function, request: Request, launches: Launches
) -> tuple[GridPlan | None, Finding | None]:
    if not request.selects("NKI1118"):
        return None, None
    try:
        return plan_loops(index, function, launches), None
    except Cannot as problem:
        node = problem.node or function.node
        return None, Finding(
            problem.rule,
            index.source.path,
            *index.source.span(node),
            severity=Severity.ERROR,
            safety=Safety.MANUAL,
            message=problem.message,
            kernel=function.name,
        )


def plan_loops(index: FileIndex, function: Function, launches: Launches) -> GridPlan | None:
    """The loops that the launches ask for. Raises Cannot where `range` is not Python's."""
    plan = plan_grid(index, function, launches)
    if plan is not None:
        name = shadowed_call(index, function.node.body[0], (), plan.loops.headers)
        if name is not None:
            text = f"loops over the grid call the builtin `{name}`, which is something else here"
            raise Cannot("NKI1118", f"{text}: rename it", function.node)
    return plan


def _pass(ctx: Context, grid: GridPlan | None, calls: list[tuple[Value, ...]] | None) -> Context:
    function = ctx.function
    if grid is not None:
        bind_grid(ctx, grid)
    for position, name in enumerate(function.parameters):
        ctx.scope.bind(name, Unknown(name))
        ctx.scope.values[name] = parameter_value(ctx, name, position, calls)
    walk_body(ctx, function.node.body)
    for name, count in ctx.before.ranks.items():
        ctx.seen.ranks[name] = max(count, ctx.seen.ranks.get(name, 0))
    ctx.seen.folds |= ctx.before.folds
    note_what_is_left(ctx)
    return ctx


def _drop_renamed_ids(ctx: Context, grid: GridPlan) -> None:
    """`i = nl.program_id(0)` goes when `i` is the loop variable now."""
    for statement in ctx.function.node.body:
        change = ctx.changes.get(statement)
        line = change.lines[0].replace(" ", "") if change and change.lines else ""
        if line in {f"{v}={v}" for v in grid.variables}:
            ctx.changes[statement] = Change(lines=[])
