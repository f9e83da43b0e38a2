"""Constructs of 0.1 that remain in the output after the last version step.

Rewriting reports what it could not convert. This check of the output is independent of it: a 0.1
construct in a kernel makes the kernel incomplete, and one without a finding gets a finding.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from neuroncore.findings import Finding, Safety, Severity
from nki_migrate.comments.todos import todo_above
from nki_migrate.engine.file_state import FileState
from nki_migrate.facts.dialects import DEVICE_FUNCTIONS, ONLY_01, returns_its_result
from nki_migrate.index import FileIndex, walk
from nki_migrate.index.file import FunctionNode
from nki_migrate.rewriting.context.reasons import Cause, Reason
from nki_migrate.rewriting.operations.calls import STAYING
from nki_migrate.rules import rewriting_rules
from nki_migrate.settings.request import Request

# Index tensors stay where a statement that has a finding of its own reads them.
_KEPT_FOR_OTHERS = (Reason.INDEX_TENSOR, Reason.INDEX_GRID)


_LEFT = "is left of 0.1"
_LEFT_BY_CHOICE = "is left of 0.1: a rule that `--select` leaves out may convert it"


@dataclass(frozen=True, slots=True)
class RemainingConstruct:
    """A 0.1 construct: its node, what it is, and the reason or rule that it belongs to."""

    node: ast.AST
    cause: Cause
    text: str


def report_remaining(state: FileState) -> None:
    """Report 0.1 constructs that have no finding; kernels that contain any are incomplete."""
    index, origin = state.index(), state.origin()
    left: dict[tuple[ast.stmt, str], tuple[Finding, ast.AST]] = {}
    earlier = tuple(f for f in state.findings if not f.applied)
    functions = (f for f in index.outermost_functions() if state.starts.get(f.name) == "0.1")
    found = ((f, c) for f in functions for c in remaining_constructs(f.node, index, state.request))
    for function, construct in found:
        statement = index.statement_of(construct.node)
        assert statement is not None
        around = (a for a in index.ancestors(construct.node) if a is not index.source.tree)
        state.unfinished |= {n for a in around if (n := getattr(a, "name", None))}
        finding = Finding(
            rewriting_rules().id_of(construct.cause),
            place=index.source.region(construct.node),
            severity=Severity.ERROR,
            safety=Safety.MANUAL,
            message=f"{construct.text} {_LEFT_BY_CHOICE if state.request.select else _LEFT}",
            kernel=function.name,
        )
        if _is_known(state, earlier, statement, finding) or _is_old_name(index, statement):
            continue
        if todo_above(index.source.lines, header_lines(statement)[0]) is not None:
            state.findings.append(origin.moved(finding))  # its TODO is there
        else:
            left.setdefault((statement, finding.rule), (finding, construct.node))
    state.report_manual(left.values())


def _is_old_name(index: FileIndex, statement: ast.stmt) -> bool:
    """Whether a later step's TODO above already reports that the old namespace is left."""
    rule = rewriting_rules().id_of(Reason.LATE_OLD_NAMESPACE)
    return todo_above(index.source.lines, header_lines(statement)[0], rule) is not None


def _is_known(
    state: FileState, earlier: Sequence[Finding], statement: ast.stmt, finding: Finding
) -> bool:
    """Whether an earlier finding reports the statement, or its rule is not selected."""
    origin = state.origin()
    first, last = header_lines(statement)
    lines = {origin.line(n) for n in range(first, last + 1)}
    mine = [f for f in earlier if f.kernel == finding.kernel]
    is_deferred = state.request.all_or_nothing or finding.rule in map(
        rewriting_rules().id_of, _KEPT_FOR_OTHERS
    )
    return (
        not state.request.selects(finding.rule)
        or any(f.region.line in lines for f in mine)
        or (bool(mine) and is_deferred)
        or state.silenced(finding.rule, origin.line(finding.region.line))
    )


def remaining_constructs(
    function: FunctionNode, index: FileIndex, request: Request
) -> Iterator[RemainingConstruct]:
    """Every 0.1 construct in a function of a migrated file."""
    tiles = _tiles(function, index)
    for node in walk(function):
        if isinstance(node, ast.Call):
            yield from _in_call(node, index, request)
        elif isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.AugAssign):
            if any(_base(o) in tiles for o in _operands(node)):
                yield RemainingConstruct(node, Reason.TILE_OPERATOR, "an operator on a tile")
        elif isinstance(node, ast.Name | ast.Attribute):
            yield from _name(node, index)


def _in_call(node: ast.Call, index: FileIndex, request: Request) -> Iterator[RemainingConstruct]:
    name = index.canonical(node.func) or ""
    module = name.partition(".")[0]
    keywords = {k.arg for k in node.keywords}
    if not name and "mask" in keywords and _is_unknown(node.func, index):
        yield RemainingConstruct(node, Reason.OTHER_MASK, "`mask=` of a call of a variable")
    if module not in {"nl", "nisa"}:
        return
    if "mask" in keywords:
        yield RemainingConstruct(node, Reason.OTHER_MASK, f"`{name}(mask=…)`")
    elif module == "nisa" and returns_its_result(node, name, index):
        yield RemainingConstruct(node, Reason.RETURNED_VALUE, f"the value of `{name}`")
    elif module == "nl" and name not in DEVICE_FUNCTIONS and name not in ONLY_01:
        stays = request.nl == "keep" and request.target >= "0.3" and name in STAYING
        if not stays:
            yield RemainingConstruct(node, rewriting_rules().rule_of(name), f"a call of `{name}`")


def _is_unknown(function: ast.expr, index: FileIndex) -> bool:
    """Whether what is called is neither imported nor a function of the file."""
    return isinstance(function, ast.Name) and index.definition(function.id) is None


def _name(node: ast.Name | ast.Attribute, index: FileIndex) -> Iterator[RemainingConstruct]:
    name = index.canonical(node) or ""
    if name in ONLY_01:
        yield RemainingConstruct(node, rewriting_rules().rule_of(name), f"`{name}`")
    elif (index.path(node) or "").startswith("neuronxcc."):
        yield RemainingConstruct(node, Reason.OLD_NAMESPACE, f"a name of `{index.path(node)}`")


def _operands(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.BinOp():
            return [node.left, node.right]
        case ast.UnaryOp():
            return [node.operand]
        case ast.Compare():
            identity = all(isinstance(o, ast.Is | ast.IsNot) for o in node.ops)
            return [] if identity else [node.left, *node.comparators]
        case ast.AugAssign():
            return [node.target, node.value]
    return []


def _base(node: ast.expr) -> str | None:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _tiles(function: FunctionNode, index: FileIndex) -> set[str]:
    """Names that are only assigned tensors made by `nl.ndarray`."""
    made: dict[str, list[ast.expr | None]] = {}
    targets: set[ast.AST] = set()
    for node in walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            made.setdefault(node.targets[0].id, []).append(node.value)
            targets.add(node.targets[0])
    for node in walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in targets:
            made.setdefault(node.id, []).append(None)
    found: set[str] = set()
    while True:
        more = {n for n, values in made.items() if all(_is_tile(v, index, found) for v in values)}
        if more == found:
            return found
        found = more


def _is_tile(value: ast.expr | None, index: FileIndex, known: set[str]) -> bool:
    if isinstance(value, ast.Call):
        return index.canonical(value.func) == "nl.ndarray"
    return isinstance(value, ast.Name) and value.id in known


def header_lines(statement: ast.stmt) -> tuple[int, int]:
    """First and last line of a statement itself, without the statements inside it."""
    inner = getattr(statement, "body", None) or [
        s for case in getattr(statement, "cases", ()) for s in case.body
    ]
    last = inner[0].lineno - 1 if inner else statement.end_lineno or statement.lineno
    decorators = getattr(statement, "decorator_list", ())
    first = min([statement.lineno, *(d.lineno for d in decorators)])
    return first, max(statement.lineno, last)
