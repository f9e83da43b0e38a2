"""Rejections in the code of an instruction, read from its source instead of kept as a list.

A record's limits show what they reject by a call that breaks them. What depends on values, on how
an attribute is written or on one more condition of a limit has no such call, and is found here: in
the functions that a record names, and in what they call.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from itertools import product
from types import CodeType, FunctionType
from typing import Any

from neuroncore.instructions._execute import plan
from neuroncore.instructions._limits import check
from neuroncore.instructions._record import Attr, Instruction, Limit
from neuroncore.instructions._rules import Rejection, Text, reference
from neuroncore.memory import View

UNKNOWN = "{…}"
"""Placeholder of values that are known when a kernel runs."""

_PARTS = ("run", "engine_of", "covers", "chooses", "moves_bits", "rows")
_MOVES = ("at_offset", "_stays_in_partition", "ready")
"""The methods that move a view to where a dynamic offset points, which no name leads to."""

_SCALARS = (str, int, float)


@cache
def code_rejections(record: Instruction) -> tuple[str, ...]:
    """The rejections behind a record's limits, attributes and execution, sorted."""
    starts = [getattr(record, part) for part in _PARTS]
    starts += [limit.check for limit in record.limits]
    starts += [attr.convert for attr in record.attrs.values()]
    return _rejections_behind(starts, record.name)


@cache
def common_rejections() -> tuple[str, ...]:
    """Rejections before the limits of any instruction, and when its operands are found."""
    of_views = [getattr(View, name) for name in _MOVES]
    return _rejections_behind([check, plan, Instruction.attributes, *of_views], UNKNOWN)


def is_told(rejection: str, texts: Iterable[str]) -> bool:
    """Whether one of the texts is this rejection, with what came in place of `{…}`."""
    pattern = re.compile(".*".join(map(re.escape, rejection.split(UNKNOWN))), re.DOTALL)
    return any(pattern.fullmatch(text) for text in texts)


def _rejections_behind(starts: Iterable[Any], name: str) -> tuple[str, ...]:
    found = {text for f in reached(starts) for text in function_rejections(f, name)}
    return tuple(sorted(found))


# -- which functions ------------------------------------------------------------------------------


def reached(starts: Iterable[Any]) -> list[FunctionType]:
    """The functions of the machine behind some values, each once."""
    found: dict[int, FunctionType] = {}
    seen: set[int] = set()
    waiting = list(starts)
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, FunctionType):
            if str(value.__module__).startswith("neuroncore."):
                found[id(value)] = value
                waiting += _named_in(value)
        else:
            waiting += _held_by(value)
    return list(found.values())


def _named_in(function: FunctionType) -> Iterator[Any]:
    yield from (cell.cell_contents for cell in function.__closure__ or ())
    yield from function.__defaults__ or ()
    names = {n for code in codes(function.__code__) for n in code.co_names}
    yield from (function.__globals__[n] for n in sorted(names & function.__globals__.keys()))


def _held_by(value: Any) -> Iterator[Any]:
    """Contents of tables and plain objects; nothing of other records, which list their own."""
    if isinstance(value, Mapping):
        yield from value.values()
    elif isinstance(value, (tuple, list)):
        yield from value
    elif is_dataclass(value) and not isinstance(value, (type, Instruction, Limit, Attr)):
        yield from (getattr(value, f.name) for f in fields(value) if hasattr(value, f.name))


def codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code and that of the functions made in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


# -- rejections of a function ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Scope:
    """The values of names in a function's text, as far as they are known."""

    values: Mapping[str, Any]
    assigned: Mapping[str, ast.expr]
    record: str


def function_rejections(function: FunctionType, record: str = UNKNOWN) -> tuple[str, ...]:
    """Texts of a function's errors and violations, as its source writes them."""
    found: list[str] = []
    for node, scope in _scopes(function, record):
        calls = (n for n in ast.walk(node) if isinstance(n, ast.Call))
        found += (text for call in calls for text in _of_call(call, scope))
    for cell in map(_content, function.__closure__ or ()):
        if isinstance(cell, Rejection):
            rule = _template(reference(cell.section, record), record)
            found += _joined(_given(cell.what, record), _given(cell.expected, record), [rule])
    return tuple(dict.fromkeys(found))


def _scopes(function: FunctionType, record: str) -> Iterator[tuple[ast.AST, _Scope]]:
    """The syntax of a function (of each lambda of its line), and what its names are."""
    cells = [_content(cell) for cell in function.__closure__ or ()]
    closure = dict(zip(function.__code__.co_freevars, cells, strict=True))
    for node in _nodes(function.__code__):
        inside = list(ast.walk(node))
        local = {a.arg for a in inside if isinstance(a, ast.arg)}
        assigned = {
            a.targets[0].id: a.value
            for a in inside
            if isinstance(a, ast.Assign) and isinstance(a.targets[0], ast.Name)
        }
        known = {n: v for n, v in function.__globals__.items() if n not in local} | closure
        yield node, _Scope(known, assigned, record)


def _given(text: Text, record: str) -> list[str]:
    """The texts of a rejection: a template, or the results of a function."""
    if not isinstance(text, FunctionType):
        return [] if text is None else [_template(str(text), record)]
    found: list[str] = []
    for node, scope in _scopes(text, record):
        results = (n.value for n in ast.walk(node) if isinstance(n, ast.Return) and n.value)
        found += _texts(node.body, scope) if isinstance(node, ast.Lambda) else ()
        found += (t for result in results for t in _texts(result, scope))
    return found


def _template(text: str, record: str) -> str:
    return re.sub(r"\{[^{}]*\}", UNKNOWN, text.replace("{c.record.name}", record))


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _nodes(code: CodeType) -> list[ast.AST]:
    """The definition or the lambdas that begin in the first line of some code."""
    return list(_definitions(code.co_filename).get((code.co_firstlineno, code.co_name), ()))


@cache
def _definitions(file: str) -> dict[tuple[int, str], list[ast.AST]]:
    """The functions of a file by first line and name; none of a file that cannot be read."""
    module = next((m for m in sys.modules.values() if getattr(m, "__file__", None) == file), None)
    try:
        tree = ast.parse(inspect.getsource(module) if module else "")
    except (OSError, SyntaxError):
        return {}
    found: dict[tuple[int, str], list[ast.AST]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            found.setdefault((first, node.name), []).append(node)
        elif isinstance(node, ast.Lambda):
            found.setdefault((node.lineno, "<lambda>"), []).append(node)
    return found


def _of_call(call: ast.Call, scope: _Scope) -> Iterator[str]:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    place = 1 if name == "Violation" else 0
    is_rejection = name == "Violation" or name.endswith("Error")
    if not is_rejection or len(call.args) <= place:
        return
    given = {k.arg: _texts(k.value, scope) for k in call.keywords}
    what = _texts(call.args[place], scope)
    yield from _joined(what, given.get("expected", []), given.get("rule", []))


def _joined(what: list[str], expected: list[str], rule: list[str]) -> Iterator[str]:
    """Each rejection with what is expected; two of both come from one condition."""
    ends = [f" (expected: {text})" for text in expected] or [""]
    last = f" [{rule[0]}]" if rule else ""
    pairs = zip(what, ends, strict=True) if len(what) == len(ends) else product(what, ends)
    yield from (f"{a}{b}{last}" for a, b in pairs if a.replace(UNKNOWN, ""))


def _texts(node: ast.expr, scope: _Scope) -> list[str]:
    """The possible values of an expression of strings; two where a condition decides."""
    match node:
        case ast.IfExp():
            return list(dict.fromkeys([*_texts(node.body, scope), *_texts(node.orelse, scope)]))
        case ast.BinOp(op=ast.Add()):
            return list(map("".join, product(_texts(node.left, scope), _texts(node.right, scope))))
        case ast.BinOp(op=ast.Mult()):  # text * condition
            return ["", *(t for t in _texts(node.left, scope) if t != UNKNOWN)]
        case ast.JoinedStr():
            return ["".join(_part(value, scope) for value in node.values)]
        case ast.Subscript(value=ast.Constant() | ast.JoinedStr()):
            return _texts(node.value, scope)
        case ast.Name() if node.id in scope.assigned:
            fewer = {n: v for n, v in scope.assigned.items() if n != node.id}
            return _texts(scope.assigned[node.id], _Scope(scope.values, fewer, scope.record))
    return [_scalar(node, scope)]


def _part(node: ast.expr, scope: _Scope) -> str:
    if isinstance(node, ast.FormattedValue):
        return UNKNOWN if node.format_spec else _scalar(node.value, scope)
    return _scalar(node, scope)


def _scalar(node: ast.expr, scope: _Scope) -> str:
    """A constant, or a name of one outside the function."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Attribute) and ast.unparse(node).endswith("record.name"):
        return scope.record
    value = scope.values.get(node.id) if isinstance(node, ast.Name) else None
    return str(value) if isinstance(value, _SCALARS) else UNKNOWN
