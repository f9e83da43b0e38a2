"""One function through the rewriting: two passes, dead index lines removed, a plan of changes."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from neuroncore.findings import Finding, Safety, Severity
from nki_migrate.facts.values import Unknown, Value
from nki_migrate.index import FileIndex, Function, Launch, children, shadowed_call, walk
from nki_migrate.rewriting.blocks.regions import note_what_is_left
from nki_migrate.rewriting.context.call_site import Handlers
from nki_migrate.rewriting.context.context import Context, Inputs
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.context.scope import Passed, Seen, identifiers, names_read
from nki_migrate.rewriting.expressions.evaluation import evaluate
from nki_migrate.rewriting.functions.covering_grid import covering_extents
from nki_migrate.rewriting.functions.launch_grid import (
    GridPlan,
    Launches,
    bind_grid,
    plan_grid,
    plan_of,
)
from nki_migrate.rewriting.inference.helper_calls import (
    Calls,
    note_equal_sizes,
    parameter_value,
    summary,
)
from nki_migrate.rewriting.operations.operators import to_index
from nki_migrate.rewriting.plan.changes import Change, Loops, statements_in_order
from nki_migrate.rewriting.statements.statements import walk_body


def remove_dead_lines(ctx: Context) -> None:
    """Assignments of index tensors and masks go when nothing mentions them any more."""
    mentions = {s: _mentioned(ctx, s) for s in statements_in_order(ctx.function.node.body)}
    alive = dict(ctx.removable)
    while True:
        count = Counter(name for names in mentions.values() for name in names)
        gone = [
            s for s, names in alive.items() if all(count[n] == (n in mentions[s]) for n in names)
        ]
        if not gone:
            return
        for statement in gone:
            del alive[statement], mentions[statement]
            ctx.changes[statement] = Change(lines=[])


def _needed_loads(ctx: Context) -> list[int]:
    """Sites of loads that were left out although a statement still reads their tile."""
    if not ctx.reread:
        return []
    read: set[str] = set()
    for statement in statements_in_order(ctx.function.node.body):
        read |= names_read("\n".join(_new_text(ctx.changes.get(statement))))
        read |= _kept_names(ctx, statement)
    return [site for site, storage in ctx.reread.items() if storage.name in read]


def _kept_names(ctx: Context, statement: ast.stmt) -> set[str]:
    """Names that a statement reads in the part of it that stays as it is."""
    change = ctx.changes.get(statement) or Change()
    is_kept = change.lines is None and change.header is None
    return _own_names(statement) if is_kept else set()


def _new_text(change: Change | None) -> list[str]:
    return [*change.before, *(change.lines or ()), change.header or ""] if change else []


def _mentioned(ctx: Context, statement: ast.stmt) -> set[str]:
    """Names that a statement reads in its new form."""
    names = identifiers("\n".join(_new_text(ctx.changes.get(statement))))
    if "_" not in _own_names(statement):  # the counter of a loop that makes tiles
        names -= {"_"}
    return names | _kept_names(ctx, statement)


def _own_names(statement: ast.stmt) -> set[str]:
    """Names read by a statement itself, not by statements inside it."""
    found, queue = set[str](), list[ast.AST](children(statement))
    while queue:
        node = queue.pop()
        if isinstance(node, ast.stmt | ast.ExceptHandler):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.add(node.id)
        queue += children(node)
    return found


# -- addresses


def remove_address_lines(ctx: Context) -> None:
    """Variables that were read for `base_addr=` only go with all that computes them."""
    statements = list(statements_in_order(ctx.function.node.body))
    gone = ctx.addresses - set(ctx.function.parameters)
    while gone and (needed := _needed(ctx, statements, gone)):
        gone -= needed
    for statement in (s for s in statements if gone and _target(s) in gone):
        ctx.changes[statement] = Change(lines=[])
        message = f"`{_target(statement)}` counts addresses, which are not used"
        gone_here = ctx.finding(Reason.DIRECT_ALLOCATION, statement, message, Safety.SAFE)
        lines = gone_here.region.line, gone_here.region.end_line
        ctx.findings = [f for f in ctx.findings if (f.region.line, f.region.end_line) != lines]
        ctx.findings.append(replace(gone_here, applied=True))


def _needed(ctx: Context, statements: list[ast.stmt], names: set[str]) -> set[str]:
    """Names that other statements than their host assignments bind or read."""
    found: set[str] = set()
    for statement in statements:
        if _target(statement) not in names or _is_device_code(ctx, statement):
            found |= names & (_bound(statement) | _mentioned(ctx, statement))
    return found


def _target(statement: ast.stmt) -> str | None:
    """The one name that a statement assigns a number to."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target: ast.expr = statement.targets[0]
    elif isinstance(statement, ast.AugAssign):
        target = statement.target
    else:
        return None
    return target.id if isinstance(target, ast.Name) else None


def _bound(statement: ast.stmt) -> set[str]:
    nodes = [statement.target] if isinstance(statement, ast.For) else []
    if isinstance(statement, ast.Assign):
        nodes = statement.targets
    return {n.id for node in nodes for n in walk(node) if isinstance(n, ast.Name)}


def _is_device_code(ctx: Context, statement: ast.AST) -> bool:
    """Whether it calls what may run on the device, itself or by way of functions of the file."""
    queue, reached = walk(statement), set[str]()
    for node in queue:
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            canonical = ctx.index.canonical(node.func) or ""
            if canonical.startswith(("nl.", "nisa.")):
                return True
            callee = ctx.index.functions.get(name)
            if callee is not None and name not in reached:
                reached.add(name)
                queue += walk(callee.node)
    return False


@dataclass(slots=True)
class RewrittenFunction:
    """The changes and findings of one function."""

    changes: dict[ast.stmt, Change]
    findings: list[Finding]
    loops: list[Loops] = field(default_factory=list)
    relaunch: tuple[Launch, ...] = ()
    arguments: dict[str, list[Passed]] = field(default_factory=dict)
    returned: Value | None = None


def rewrite_function(
    inputs: Inputs, launches: Launches = (), calls: Calls = ()
) -> RewrittenFunction:
    """Rewrite one device function from 0.1 to 0.2.

    `launches` are launches of it, each with its file; `calls` the argument values at calls from
    other kernels.
    """
    grid, rejection = _grid(inputs, launches)

    def make_pass(seen: Seen, *, final: bool) -> Context:
        return _pass(Context(inputs, _HANDLERS, seen, final), grid, calls)

    seen = _learned(make_pass)
    if grid is None and (found := _covering(inputs, launches, seen)) is not None:
        grid, rejection = found
        seen = _learned(make_pass)
    # until it is known what loops bind to several kinds, what has to be a list, which loads stay
    while True:
        ctx = make_pass(seen, final=True)
        needed = _needed_loads(ctx)
        if not needed and ctx.seen.unlike <= seen.unlike and ctx.seen.listed <= seen.listed:
            break
        for site in needed:
            seen.uses[site] = seen.uses[site] | {"op"}
        seen.unlike |= ctx.seen.unlike
        seen.listed |= ctx.seen.listed
    remove_dead_lines(ctx)
    remove_address_lines(ctx)
    result = RewrittenFunction(ctx.changes, ctx.findings, arguments=ctx.seen.arguments)
    result.returned = summary(ctx)
    if rejection is not None:
        result.findings.append(rejection)
    if grid is not None:
        result.loops = [grid.loops]
        result.relaunch = grid.launches
        _drop_renamed_ids(ctx, grid)
    return result


def _learned(make_pass: Callable[..., Context]) -> Seen:
    """Knowledge of earlier passes over the function for the last one."""
    seen = make_pass(Seen(), final=False).seen
    while True:  # what the last pass rests on has to know which tiles were given something
        before, seen = seen, make_pass(seen, final=False).seen
        if not seen.learned_of_given(before):
            return seen


_HANDLERS = Handlers(evaluate, walk_body, to_index)


def _grid(inputs: Inputs, launches: Launches) -> tuple[GridPlan | None, Finding | None]:
    index, function = inputs.index, inputs.function
    if not inputs.request.selects(inputs.rules.id_of(Reason.LAUNCH_GRID)):
        return None, None
    try:
        return plan_loops(index, function, launches), None
    except Cannot as problem:
        node = problem.node or function.node
        return None, Finding(
            inputs.rules.id_of(problem.cause),
            place=index.source.region(node),
            severity=Severity.ERROR,
            safety=Safety.MANUAL,
            message=problem.message,
            kernel=function.name,
        )


def _covering(inputs: Inputs, launches: Launches, seen: Seen) -> tuple[GridPlan, Finding] | None:
    """A grid of as many programs as cover what is stored; None where that is not known."""
    known = covering_extents(seen.covers)
    cause = inputs.rules.id_of(Reason.LAUNCH_GRID)
    if known is None or not inputs.request.selects(cause):
        return None
    extents, is_seen = known
    if not (is_seen or inputs.request.unsafe_fixes):
        return None
    try:
        plan = plan_of(inputs.index, inputs.function, extents, launches)
    except Cannot:
        return None
    text = f"a grid of {' × '.join(f'`{e}`' for e in extents)} programs, which cover the result"
    return plan, Finding(
        cause,
        place=inputs.index.source.region(inputs.function.node),
        severity=Severity.ERROR,
        safety=Safety.SAFE if is_seen else Safety.UNSAFE,
        message=f"{text}, becomes loops",
        kernel=inputs.function.name,
        assumption=None if is_seen else f"every launch has {text}",
        basis=("observed: the grid had as many programs",) if is_seen else (),
        applied=True,
    )


def plan_loops(index: FileIndex, function: Function, launches: Launches) -> GridPlan | None:
    """The loops that the launches ask for. Raises Cannot where `range` is not Python's."""
    plan = plan_grid(index, function, launches)
    if plan is not None:
        name = shadowed_call(index, function.node.body[0], (), plan.loops.headers)
        if name is not None:
            text = f"loops over the grid call the builtin `{name}`, which is something else here"
            raise Cannot(Reason.LAUNCH_GRID, f"{text}: rename it", function.node)
    return plan


def _pass(ctx: Context, grid: GridPlan | None, calls: Calls) -> Context:
    function = ctx.function
    if grid is not None:
        bind_grid(ctx, grid)
    for position, name in enumerate(function.parameters):
        ctx.scope.bind(name, Unknown(name))
        ctx.scope.values[name] = parameter_value(ctx, name, position, calls)
    note_equal_sizes(ctx, calls)
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
        target, _, value = line.partition("=")
        if target == value and set(target.split(",")) <= set(grid.variables):
            ctx.changes[statement] = Change(lines=[])
