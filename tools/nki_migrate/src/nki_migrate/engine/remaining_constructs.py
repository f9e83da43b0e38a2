"""What of 0.1 is still there after the last step, found in the output itself.

Rewriting reports what it could not convert. This check of the output is independent of it: a 0.1
construct in a kernel makes the kernel incomplete, and one without a finding gets a finding.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from nki_migrate.facts.dialects import DEVICE_FUNCTIONS, ONLY_01, returns_its_result
from nki_migrate.index import FileIndex, walk
from nki_migrate.index.file import FunctionNode
from nki_migrate.rewriting.operations.calls import STAYING
from nki_migrate.rules import rewriting_rules
from nki_migrate.settings.request import Request

_OPERATORS = "NKI1223"
_MASK = "NKI1172"
_RETURNED = "NKI1180"
_NAMESPACE = "NKI1107"


@dataclass(frozen=True, slots=True)
class RemainingConstruct:
    """A 0.1 construct: where it stands, the rule that should have met it, and what it is."""

    node: ast.AST
    rule: str
    text: str


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
                yield RemainingConstruct(node, _OPERATORS, "an operator on a tile")
        elif isinstance(node, ast.Name | ast.Attribute):
            yield from _name(node, index)


def _in_call(node: ast.Call, index: FileIndex, request: Request) -> Iterator[RemainingConstruct]:
    name = index.canonical(node.func) or ""
    module = name.partition(".")[0]
    keywords = {k.arg for k in node.keywords}
    if module not in {"nl", "nisa"}:
        return
    if "mask" in keywords:
        yield RemainingConstruct(node, _MASK, f"`{name}(mask=…)`")
    elif module == "nisa" and returns_its_result(node, name, index):
        yield RemainingConstruct(node, _RETURNED, f"the value of `{name}`")
    elif module == "nl" and name not in DEVICE_FUNCTIONS and name not in ONLY_01:
        stays = request.nl == "keep" and request.target >= "0.3" and name in STAYING
        if not stays:
            yield RemainingConstruct(node, rewriting_rules().rule_of(name), f"a call of `{name}`")


def _name(node: ast.Name | ast.Attribute, index: FileIndex) -> Iterator[RemainingConstruct]:
    name = index.canonical(node) or ""
    if name in ONLY_01:
        yield RemainingConstruct(node, rewriting_rules().rule_of(name), f"`{name}`")
    elif (index.path(node) or "").startswith("neuronxcc."):
        yield RemainingConstruct(node, _NAMESPACE, f"a name of `{index.path(node)}`")


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
