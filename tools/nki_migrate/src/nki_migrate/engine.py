"""One file through the steps: text in, findings and text out. Nothing is read or written here.

The step 0.1 → 0.2 lowers device functions first, then runs its span rules (imports, decorators,
launches) on the result; every later step is span rules only. Findings are reported in
coordinates of the original text.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from dataclasses import replace

from nki_migrate.audit import header_lines, leftovers
from nki_migrate.dialects import detect
from nki_migrate.findings import (
    Edit,
    FileResult,
    Finding,
    Safety,
    Severity,
)
from nki_migrate.handed_over import callers_first, gets_a_tile
from nki_migrate.hazards import hazards
from nki_migrate.index import FileIndex, Function, Launch, Project, Source, apply_edits
from nki_migrate.lines import LineMap
from nki_migrate.lower import Lowered, apply_plan, lower_function, plan_loops
from nki_migrate.lower.context import Cannot
from nki_migrate.lower.grid import Launches, is_core_count
from nki_migrate.request import VERSIONS, Request, steps_between
from nki_migrate.rules import Rule, Site, all_rules, rules_by_node
from nki_migrate.run import Run, result_of
from nki_migrate.todos import MARK, mark_above, with_todos, without_stale_todos
from nki_migrate.untouched import kept_kernels, mixed_imports, only_kept, report

__all__ = ["Suppressions", "migrate_source"]

from typing import Protocol


class Suppressions(Protocol):
    """What comments in the file ask to leave alone."""

    def silences(self, rule_id: str, line: int) -> bool:
        """Whether a finding of the rule on that line is suppressed (and note that it was used)."""
        ...

    def covers(self, first: int, last: int) -> bool:
        """Whether one comment keeps every rule off all these lines (and note that it was used)."""
        ...


def migrate_source(
    text: str,
    path: str,
    request: Request,
    project: Project | None = None,
    suppressions: Suppressions | None = None,
) -> FileResult:
    """Run all selected steps on one file's text. Raises SyntaxError if the text does not parse."""
    silenced = suppressions.silences if suppressions else lambda rule, line: False
    run = Run(path, request, project, silenced, text, text)
    index = run.index()
    found = {f.name: detect(f, index) for f in index.functions.values()}
    forced = None if request.source_version == "auto" else request.source_version
    run.starts = {n: forced or d.start or VERSIONS[-1] for n, d in found.items()}
    run.starts |= dict.fromkeys(_with_open_todos(index), "0.1")
    run.silent = {n: d.start is None and forced is None for n, d in found.items()}
    if "0.1" in run.starts.values() and (unclear := hazards(index)):
        unclear = [f for f in unclear if not silenced(f.rule, f.line)]
        run.findings += unclear
        run.unfinished |= run.starts.keys()
        return result_of(run, index, {n: d.name for n, d in found.items()})
    _leave_alone(run, index, suppressions)
    for step in (steps := _steps(run, index, forced)):
        if step == ("0.1", "0.2"):
            _lower(run)
        _apply_span_rules(run, step)
    if steps and steps[0][0] == "0.1":
        _audit(run)
    if run.kept:
        _say_mixed(run, {i.local for i in index.imports if i.is_beta1})
    run.text = without_stale_todos(run.text, run.before, run.findings)
    return result_of(run, index, {n: d.name for n, d in found.items()})


def _leave_alone(run: Run, index: FileIndex, suppressions: Suppressions | None) -> None:
    held = set(run.request.leave)
    lines = {index.functions[n].node.end_lineno: n for n in held & index.functions.keys()}

    def covers(first: int, last: int) -> bool:
        return last in lines or (suppressions is not None and suppressions.covers(first, last))

    run.kept = kept_kernels(index, run.starts, covers)
    for function in index.functions.values():
        if run.is_kept(function.node.lineno):
            run.starts[function.name] = VERSIONS[-1]
            run.unfinished.add(function.name)
    run.findings += report(index, run.kept, held)


def _with_open_todos(index: FileIndex) -> list[str]:
    """Kernels that an earlier run left something of step 0.1 in."""
    marks = [n for n, line in enumerate(index.source.lines, 1) if f"{MARK}NKI1" in line]
    return [
        f.name
        for f in index.functions.values()
        if any(_first_line(f) - 3 <= m <= (f.node.end_lineno or 0) for m in marks)
    ]


def _first_line(function: Function) -> int:
    return min([function.node.lineno, *(d.lineno for d in function.node.decorator_list)])


def _steps(run: Run, index: FileIndex, forced: str | None) -> tuple[tuple[str, str], ...]:
    starts = set(run.starts.values())
    todo = f"{MARK}NKI1"
    if any(i.is_beta1 for i in index.imports) or any(todo in x for x in index.source.lines):
        starts.add("0.1")
    if run.project is not None and any(_loops(run, x) for x in index.foreign_launches):
        starts.add("0.1")
    start = forced or min(starts, default=VERSIONS[-1])
    target = VERSIONS[-1] if run.request.target == "auto" else run.request.target
    if VERSIONS.index(start) >= VERSIONS.index(target):
        return ()
    steps = steps_between(start, target)
    return steps[:1] if run.request.step else steps


# -- step 0.1 → 0.2


def _lower(run: Run) -> None:
    index = run.index()
    lowered = _lowered_functions(run, index)
    changes = {s: c for r in lowered for s, c in r.changes.items()}
    loops = [x for r in lowered for x in r.loops]
    run.findings += [f for r in lowered for f in r.findings]
    relaunch = [x for r in lowered for x in r.relaunch if x in index.launches]
    relaunch += _foreign_relaunches(run, index)
    for launch in relaunch:
        edit, finding = _without_grid(index, launch)
        run.findings.append(replace(finding, edits=(edit,), applied=True))
    if not (loops or relaunch or any(c.touches for c in changes.values())):
        return
    text = apply_plan(run.text, index.source.tree, changes, loops)
    run.text = _apply_relaunch(index, text, relaunch)


def _launches(run: Run, index: FileIndex, function: Function) -> Launches:
    own = tuple((index, x) for x in index.launches if x.kernel == function.name)
    return own + (run.project.launches(index, function.name) if run.project is not None else ())


def _foreign_relaunches(run: Run, index: FileIndex) -> list[Launch]:
    """Launches of imported kernels whose grid becomes loops over there; others are reported."""
    found = []
    if not run.request.selects("NKI1118"):
        return []
    for launch in index.foreign_launches:
        if not launch.grid or (is_core_count(launch) and not _loops(run, launch)):
            continue
        kernel = run.project.kernel(launch.kernel) if run.project is not None else None
        if kernel is not None and _agrees(run, index, launch, *kernel):
            found.append(launch)
        elif not run.silenced("NKI1118", launch.call.lineno):
            run.findings.append(_foreign_grid(index, launch))
    return found


def _loops(run: Run, launch: Launch) -> bool:
    """Whether the kernel of a launch, in its own file, turns its grid into loops."""
    found = run.project.kernel(launch.kernel) if run.project is not None else None
    if found is None:
        return False
    try:
        return plan_loops(*found, _launches(run, *found)) is not None
    except Cannot:
        return False


def _agrees(
    run: Run, index: FileIndex, launch: Launch, where: FileIndex, function: Function
) -> bool:
    """Whether the kernel, in its own file, takes over exactly the grid of this launch."""
    others = tuple(
        x for x in _launches(run, where, function) if x[0].source.path != index.source.path
    )
    try:
        plan = plan_loops(where, function, (*others, (index, launch)))
    except Cannot:
        return False
    return plan is not None and launch in plan.launches


def _foreign_grid(index: FileIndex, launch: Launch) -> Finding:
    return Finding(
        "NKI1118",
        index.source.path,
        *index.source.span(launch.call),
        severity=Severity.ERROR,
        safety=Safety.MANUAL,
        message=f"the bracket is a number of cores now; `{launch.kernel.rpartition('.')[2]}`"
        " has to loop over this grid itself",
    )


def _lowered_functions(run: Run, index: FileIndex) -> list[Lowered]:
    """Callers before the helpers they call, so that helpers know what they are called with."""
    functions = [
        f for f in index.functions.values() if index.device_function_of(_outside(index, f)) is None
    ]  # a function inside a kernel is lowered with it
    results, calls = [], dict[str, list]()
    observed = run.request.observed.of_file(run.path, index.source)
    for function in callers_first(index, functions):
        if run.silent.get(function.name) and gets_a_tile(index, function, calls, observed):
            run.starts[function.name] = "0.1"  # arithmetic on tiles needs no name of the language
        if run.starts.get(function.name) != "0.1":
            continue
        launches = _launches(run, index, function)
        here = lower_function(
            index, function, run.request, launches, calls.get(function.name), run.silenced, observed
        )
        for name, values in here.arguments.items():
            calls.setdefault(name, []).extend(values)
        if run.request.all_or_nothing and any(not f.applied for f in here.findings):
            here = Lowered({}, [f for f in here.findings if not f.applied])
        results.append(here)
    return results


def _outside(index: FileIndex, function: Function) -> ast.AST:
    return index.parent(function.node) or index.source.tree


def _without_grid(index: FileIndex, launch: Launch) -> tuple[Edit, Finding]:
    assert launch.bracket is not None
    span = index.source.span(launch.bracket)
    edit = Edit(*span, index.source.segment(launch.bracket.value))
    finding = Finding(
        "NKI1118",
        index.source.path,
        *span,
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


def _apply_span_rules(run: Run, step: tuple[str, str]) -> None:
    index, origin = run.index(), run.origin()
    rules = [r for r in all_rules().values() if r.step == step and r.check is not None]
    edits: list[Edit] = []
    left: list[tuple[Finding, ast.AST]] = []
    for finding, node in _span_findings(run, index, rules, step):
        line = origin.line(finding.line)
        if run.is_kept(line) or run.silenced(finding.rule, line):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom) and only_kept(index, run.kept, node):
            continue
        applied = bool(finding.edits) and (
            finding.safety is Safety.SAFE
            or (finding.safety is Safety.UNSAFE and run.request.unsafe_fixes)
        )
        applied = applied and not _overlaps(edits, finding.edits)
        if applied:
            edits += [e for e in finding.edits if e not in edits]
        elif finding.severity is Severity.ERROR:
            left.append((finding, node))
        run.findings.append(origin.moved(replace(finding, applied=applied)))
    todos = with_todos(index, left) if run.request.todo == "comment" else []
    run.text = apply_edits(index.source, [*edits, *todos])


def _overlaps(taken: Iterable[Edit], new: Iterable[Edit]) -> bool:
    return any(
        a != b
        and (a.line, a.column) < (b.end_line, b.end_column)
        and (b.line, b.column) < (a.end_line, a.end_column)
        for a in taken
        for b in new
    )


def _span_findings(
    run: Run, index: FileIndex, rules: list[Rule], step: tuple[str, str]
) -> Iterable[tuple[Finding, ast.AST]]:
    site = Site(index, run.request)
    chosen = [r for r in rules if run.request.selects(r.id)]
    wanted = rules_by_node(chosen)
    nodes = [n for n in index.nodes if type(n) in wanted]
    nodes.sort(key=lambda n: (getattr(n, "lineno", 0), getattr(n, "col_offset", 0)))
    for node in nodes:
        for rule in wanted[type(node)]:
            assert rule.check is not None
            for finding in rule.check(node, site):
                start = run.starts.get(finding.kernel or "", step[0])
                if start == step[0] or (start < step[0] and not rule.native):
                    yield finding, node


# -- what is left of 0.1


def _audit(run: Run) -> None:
    """Look for what nobody spoke of: it gets a finding, and its kernel is not complete."""
    index, origin = run.index(), run.origin()
    left: dict[tuple[ast.stmt, str], tuple[Finding, ast.AST]] = {}
    for function in index.functions.values():
        started = run.starts.get(function.name) == "0.1"
        if not started or index.device_function_of(_outside(index, function)) is not None:
            continue
        for found in leftovers(function.node, index, run.request):
            statement = index.statement_of(found.node)
            assert statement is not None
            around = (a for a in index.ancestors(found.node) if a is not index.source.tree)
            run.unfinished |= {n for a in around if (n := getattr(a, "name", None))}
            finding = Finding(
                found.rule,
                run.path,
                *index.source.span(found.node),
                severity=Severity.ERROR,
                safety=Safety.MANUAL,
                message=f"{found.text} is left of 0.1",
                kernel=function.name,
            )
            if _is_known(run, index, origin, statement, finding) or _is_old_name(index, statement):
                continue
            if mark_above(index.source.lines, header_lines(statement)[0]) is not None:
                run.findings.append(origin.moved(finding))  # its TODO is there
            else:
                left.setdefault((statement, found.rule), (finding, found.node))
    _leave_manual(run, index, left.values())


def _say_mixed(run: Run, moved: set[str]) -> None:
    index = run.index()
    _leave_manual(run, index, list(mixed_imports(index, run.kept, moved)))


def _leave_manual(run: Run, index: FileIndex, found: Collection[tuple[Finding, ast.AST]]) -> None:
    """Findings in the output, each with its TODO."""
    origin = run.origin()
    run.findings += [origin.moved(f) for f, _ in found]
    if run.request.todo == "comment":
        run.text = apply_edits(index.source, with_todos(index, found))


def _is_old_name(index: FileIndex, statement: ast.stmt) -> bool:
    """Whether a later step's TODO above says already that the old namespace is left (NKI3002)."""
    above = header_lines(statement)[0] - 2
    lines = index.source.lines
    while above >= 0 and lines[above].lstrip().startswith("#"):
        if f"{MARK}NKI3002" in lines[above]:
            return True
        above -= 1
    return False


# Index tensors stay where a statement that has a finding of its own reads them.
_KEPT_FOR_OTHERS = {"NKI1150", "NKI1154"}


def _is_known(
    run: Run, index: FileIndex, origin: LineMap, statement: ast.stmt, finding: Finding
) -> bool:
    """Whether the statement has a finding or a TODO already, or nobody wants to hear of it."""
    first, last = header_lines(statement)
    lines = {origin.line(n) for n in range(first, last + 1)}
    mine = [f for f in run.findings if f.kernel == finding.kernel and not f.applied]
    line = origin.line(finding.line)
    return (
        not run.request.selects(finding.rule)
        or any(f.line in lines for f in mine)
        or (bool(mine) and (run.request.all_or_nothing or finding.rule in _KEPT_FOR_OTHERS))
        or run.silenced(finding.rule, line)
    )
