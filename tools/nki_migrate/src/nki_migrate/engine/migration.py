"""One file through the steps: text in, findings and text out. Nothing is read or written here.

The step 0.1 → 0.2 lowers device functions first, then runs its span rules (imports, decorators,
launches) on the result; every later step is span rules only. Findings are reported in
coordinates of the original text.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace

from neuroncore.findings import Edit, Finding, Region, Safety, Severity
from nki_migrate.comments.suppressions import SuppressionLog
from nki_migrate.comments.todos import has_open_mark, with_todos, without_stale_todos
from nki_migrate.engine.excluded_kernels import (
    imports_of_both_dialects,
    kept_kernels,
    only_kept,
    report,
)
from nki_migrate.engine.file_state import FileState, result_of
from nki_migrate.engine.linked_files import launches_of, note_versions, rewritten_functions
from nki_migrate.engine.remaining_constructs import report_remaining
from nki_migrate.engine.results import FileResult
from nki_migrate.engine.unclear_names import unclear_names
from nki_migrate.engine.unresolved_names import report_unresolved
from nki_migrate.facts.dialects import oldest_possible
from nki_migrate.index import FileIndex, Function, Launch, Project, Source, apply_edits
from nki_migrate.index.launchers import ANY_MODULE
from nki_migrate.index.project import module_of
from nki_migrate.rewriting import plan_loops
from nki_migrate.rewriting.context.reasons import Cannot, Reason
from nki_migrate.rewriting.functions.launch_grid import is_core_count
from nki_migrate.rewriting.plan.changes import Change, Loops, apply_to_lines
from nki_migrate.rules import Site, all_rules, rewriting_rules, rules_by_node
from nki_migrate.rules.run_rules import RunRule
from nki_migrate.settings.request import VERSIONS, Request, VersionStep, steps_between

REWRITING_STEP = VersionStep("0.1", "0.2")
"""The step that rewrites functions before its span rules."""


def migrate_source(
    text: str,
    path: str,
    request: Request,
    project: Project | None = None,
    suppressions: SuppressionLog | None = None,
) -> FileResult:
    """Run all selected steps on one file's text. Raises SyntaxError if the text does not parse."""
    silenced = suppressions.silences if suppressions else lambda rule, line: False
    state = FileState(path, request, project, silenced, text, text)
    index = state.index()
    forced = None if request.source_version == "auto" else request.source_version
    dialects = note_versions(state, index)
    unclear = unclear_names(index) if "0.1" in state.starts.values() else []
    if unclear:
        state.findings += [f for f in unclear if not silenced(f.rule, f.region.line)]
        state.unfinished |= state.starts.keys()
    else:
        _exclude_kernels(state, index, suppressions)
        _take_steps(state, index, forced)
    return result_of(state, index, dialects)


def _take_steps(state: FileState, index: FileIndex, forced: str | None) -> None:
    _report_newer(state, index)
    steps = _steps(state, index, forced)
    for step in steps:
        if step == REWRITING_STEP:
            _rewrite(state)
        _apply_span_rules(state, step)
    if REWRITING_STEP in steps:
        report_remaining(state)
        report_unresolved(state)
    if state.kept:
        moved = {i.local for i in index.imports if i.is_beta1}
        state.report_manual(list(imports_of_both_dialects(state.index(), state.kept, moved)))
    state.text = without_stale_todos(state.text, state.before, state.findings)


def _report_newer(state: FileState, index: FileIndex) -> None:
    """Kernels that use what the target does not have."""
    target = state.request.target
    for function in index.functions.values():
        needed, feature = oldest_possible(function.node, index)
        line = function.node.lineno
        if target != "auto" and needed > target and not state.silenced(RunRule.NEWER, line):
            state.findings.append(
                Finding(
                    RunRule.NEWER,
                    place=index.source.region(function.node),
                    severity=Severity.ERROR,
                    safety=Safety.MANUAL,
                    message=f"`{function.name}` uses {feature}, which NKI {target} does not have: "
                    f"migrate to {needed} or later",
                    kernel=function.name,
                )
            )


def _exclude_kernels(
    state: FileState, index: FileIndex, suppressions: SuppressionLog | None
) -> None:
    held = set(state.request.leave)
    lines = {index.functions[n].node.end_lineno: n for n in held & index.functions.keys()}

    def covers(first: int, last: int) -> bool:
        return last in lines or (suppressions is not None and suppressions.covers(first, last))

    state.kept = kept_kernels(index, state.starts, covers)
    for function in index.functions.values():
        if state.is_kept(function.node.lineno):
            state.starts[function.name] = VERSIONS[-1]
            state.unfinished.add(function.name)
    partial = state.request.all_or_nothing
    state.findings += report(index, state.kept, held, is_partial=partial)


def _steps(state: FileState, index: FileIndex, forced: str | None) -> tuple[VersionStep, ...]:
    starts = set(state.starts.values())
    lines = index.source.lines
    if any(i.is_beta1 for i in index.imports) or has_open_mark(lines, 1, len(lines)):
        starts.add("0.1")
    if state.project is not None and any(_loops(state, x) for x in index.foreign_launches):
        starts.add("0.1")
    start = forced or min(starts, default=VERSIONS[-1])
    target = VERSIONS[-1] if state.request.target == "auto" else state.request.target
    if VERSIONS.index(start) >= VERSIONS.index(target):
        return ()
    steps = steps_between(start, target)
    return steps[:1] if state.request.step else steps


# -- step 0.1 → 0.2


def _rewrite(state: FileState) -> None:
    index = state.index()
    changes: dict[ast.stmt, Change] = {}
    loops: list[Loops] = []
    relaunch: list[Launch] = []
    for rewritten in rewritten_functions(state, index):
        changes |= rewritten.changes
        loops += rewritten.loops
        relaunch += [x for x in rewritten.relaunch if x in index.launches]
        state.findings += rewritten.findings
    relaunch += _foreign_relaunches(state, index)
    for launch in relaunch:
        edit, finding = _without_grid(index, launch)
        state.findings.append(replace(finding, edits=(edit,), applied=True))
    if not (loops or relaunch or any(c.touches for c in changes.values())):
        return
    tree = index.source.tree
    text = None if loops else apply_to_lines(state.text, tree, changes)
    if text is None:
        from nki_migrate.rewriting.plan.application import apply_plan  # libcst: 0.2 s of CPU time

        text = apply_plan(state.text, tree, changes, loops)
    state.text = _apply_relaunch(index, text, relaunch)


def _foreign_relaunches(state: FileState, index: FileIndex) -> list[Launch]:
    """Launches of imported kernels whose grid becomes loops over there; others are reported."""
    found = []
    if not state.request.selects(rewriting_rules().id_of(Reason.LAUNCH_GRID)):
        return []
    for launch in filter(lambda x: _has_grid(state, x), index.foreign_launches):
        kernel = state.project.kernel(launch.kernel) if state.project is not None else None
        if kernel is not None and _agrees(state, index, launch, *kernel):
            found.append(launch)
        elif not state.silenced(rewriting_rules().id_of(Reason.LAUNCH_GRID), launch.call.lineno):
            state.findings.append(_foreign_grid(index, launch))
    return found


def _has_grid(state: FileState, launch: Launch) -> bool:
    """Whether the bracket of a call of something imported is a grid, and not of cores alone."""
    kernel = state.project.kernel(launch.kernel) if state.project is not None else None
    if not launch.grid or (kernel is None and module_of(launch.kernel) == ANY_MODULE):
        return False
    return not is_core_count(launch) or _loops(state, launch)


def _loops(state: FileState, launch: Launch) -> bool:
    """Whether the kernel of a launch, in its own file, turns its grid into loops."""
    found = state.project.kernel(launch.kernel) if state.project is not None else None
    if found is None:
        return False
    try:
        return plan_loops(*found, launches_of(state, *found)) is not None
    except Cannot:
        return False


def _agrees(
    state: FileState, index: FileIndex, launch: Launch, where: FileIndex, function: Function
) -> bool:
    """Whether the kernel, in its own file, takes over exactly the grid of this launch."""
    others = tuple(
        x for x in launches_of(state, where, function) if x[0].source.path != index.source.path
    )
    try:
        plan = plan_loops(where, function, (*others, (index, launch)))
    except Cannot:
        return False
    return plan is not None and launch in plan.launches


def _foreign_grid(index: FileIndex, launch: Launch) -> Finding:
    return Finding(
        rewriting_rules().id_of(Reason.LAUNCH_GRID),
        place=index.source.region(launch.call),
        severity=Severity.ERROR,
        safety=Safety.MANUAL,
        message=f"the bracket is a number of cores now; `{launch.kernel.rpartition('.')[2]}`"
        " has to loop over this grid itself",
    )


def _without_grid(index: FileIndex, launch: Launch) -> tuple[Edit, Finding]:
    assert launch.bracket is not None
    span = index.source.span(launch.bracket)
    edit = Edit(*span, index.source.segment(launch.bracket.value))
    finding = Finding(
        rewriting_rules().id_of(Reason.LAUNCH_GRID),
        place=Region(index.source.path, *span),
        severity=Severity.ERROR,
        safety=Safety.SAFE,
        message="the launch grid moves into the kernel as loops",
        kernel=launch.kernel,
    )
    return edit, finding


def _apply_relaunch(index: FileIndex, text: str, launches: list[Launch]) -> str:
    """Remove the brackets of the same launches in the lowered text, found by their source."""
    if not launches:
        return text
    source = Source(text, index.source.path)
    wanted = {index.source.segment(x.bracket) for x in launches if x.bracket is not None}
    edits = [
        Edit(*source.span(n), source.segment(n.value))
        for n in ast.walk(source.tree)
        if isinstance(n, ast.Subscript) and source.segment(n) in wanted
    ]
    return apply_edits(source, edits)


# -- span rules


def _apply_span_rules(state: FileState, step: VersionStep) -> None:
    index, origin = state.index(), state.origin()
    edits: list[Edit] = []
    left: list[tuple[Finding, ast.AST]] = []
    for finding, node in _span_findings(state, index, step):
        if _is_excluded(state, index, finding, node):
            continue
        applied = _has_edits(finding, state.request) and not _overlaps(edits, finding.edits)
        if applied:
            edits += [e for e in finding.edits if e not in edits]
        elif finding.severity is Severity.ERROR:
            left.append((finding, node))
        state.findings.append(origin.moved(replace(finding, applied=applied)))
    todos = with_todos(index, left) if state.request.todo == "comment" else []
    state.text = apply_edits(index.source, [*edits, *todos])


def _is_excluded(state: FileState, index: FileIndex, finding: Finding, node: ast.AST) -> bool:
    """Whether the place belongs to a kernel that stays, or a comment suppresses the finding."""
    line = state.origin().line(finding.region.line)
    if state.is_kept(line) or state.silenced(finding.rule, line):
        return True
    return isinstance(node, ast.Import | ast.ImportFrom) and only_kept(index, state.kept, node)


def _has_edits(finding: Finding, request: Request) -> bool:
    """Whether the finding has edits that this run may apply."""
    is_unsafe = finding.safety is Safety.UNSAFE and request.unsafe_fixes
    return bool(finding.edits) and (is_unsafe or finding.safety is Safety.SAFE)


def _overlaps(taken: Iterable[Edit], new: Iterable[Edit]) -> bool:
    return any(
        a != b
        and (a.line, a.column) < (b.end_line, b.end_column)
        and (b.line, b.column) < (a.end_line, a.end_column)
        for a in taken
        for b in new
    )


def _span_findings(
    state: FileState, index: FileIndex, step: VersionStep
) -> Iterable[tuple[Finding, ast.AST]]:
    site = Site(index, state.request)
    chosen = [r for r in all_rules().values() if r.step == step and r.is_chosen(state.request)]
    wanted = rules_by_node([r for r in chosen if r.hooks.check is not None])
    nodes = [n for n in index.nodes if type(n) in wanted]
    nodes.sort(key=lambda n: (getattr(n, "lineno", 0), getattr(n, "col_offset", 0)))
    for node in nodes:
        for rule in wanted[type(node)]:
            assert rule.hooks.check is not None
            for finding in rule.hooks.check(node, site):
                start = state.starts.get(finding.kernel or "", step[0])
                if start == step[0] or (start < step[0] and not rule.native):
                    yield finding, node
