"""What is checked of every function of NKI: the limits of its record, or of what it is made of.

Nothing here is a list: records give their limits (and in which versions a call that breaks one is
refused), functions of the languages are followed to the records that they name and to the errors
that they raise.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

from neuroncore.checks import CHECKS
from neuroncore.core import NeuronCore
from neuroncore.instructions import INSTRUCTIONS, Instruction, Limit
from neuroncore.instructions._example import example_call
from neuroncore.options import Options
from neuroncore.surface import VERSIONS, signature, span, version_tuple
from nki_beta2 import _arithmetic

OURS = ("nki_beta2", "neuroncore.core", "neuroncore.memory", "neuroncore.registers",
        "neuroncore.trigonometry", "neuroncore.launch")  # fmt: skip
"""Where a function is followed to; behind that, records say what is refused."""

LOOSE = Options(start_partition="ignore")


@dataclass(frozen=True, slots=True)
class Found:
    """What a function leads to: records, and what it refuses by itself."""

    records: set[str] = field(default_factory=set)
    refusals: set[str] = field(default_factory=set)


# -- limits of records ----------------------------------------------------------------------------


def limit_text(record: Instruction, limit: Limit) -> str:
    """A limit as the call that breaks it is told of it."""
    call = example_call(record, record.examples[0], **{"options": LOOSE} | dict(limit.breaks)).call
    broken = next(iter(limit.check(call)))
    rule = f" [{broken.rule}]" if broken.rule else ""
    return f"{broken.what} (expected: {broken.expected}){rule}"


def limit_versions(record: Instruction, limit: Limit) -> list[str]:
    """The versions with the instruction in which the call that breaks a limit is refused."""
    having = [v for v in VERSIONS if signature(record.name, v) is not None]
    return [v for v in having if _breaks(record, limit, v)]


def _breaks(record: Instruction, limit: Limit, version: str) -> bool:
    given = {"options": LOOSE} | dict(limit.breaks) | {"version": version_tuple(version)}
    return any(limit.check(example_call(record, record.examples[0], **given).call))


@cache
def record_limits(name: str) -> dict[str, list[str]]:
    """Limit → versions, for the limits of a record."""
    record = INSTRUCTIONS[name]
    found: dict[str, list[str]] = {}
    for limit in record.limits:
        versions = found.setdefault(limit_text(record, limit), [])
        versions += [v for v in limit_versions(record, limit) if v not in versions]
    return found


# -- what a function of a language leads to -------------------------------------------------------


def followed(value: Any) -> Found:
    """The records and refusals that a function of a language leads to."""
    found, seen = Found(), set()
    waiting = list(_functions_in(value))
    while waiting:
        function = waiting.pop()
        if function.__code__ in seen:
            continue
        seen.add(function.__code__)
        strings = _strings(function.__code__)
        found.records.update(strings & INSTRUCTIONS.keys())
        found.refusals.update(_refusals(function.__code__))
        waiting += [f for n in _named(function) for f in _functions_in(n)]
    return found


def _functions_in(value: Any) -> Iterator[FunctionType]:
    """The functions of ours behind a value: itself, what wraps it, the methods of a class."""
    wrapped = getattr(value, "__wrapped__", None)
    if isinstance(wrapped, FunctionType):
        yield from _functions_in(wrapped)
    if isinstance(value, FunctionType) and _is_ours(value):
        yield value
    elif isinstance(value, (staticmethod, classmethod)):
        yield from _functions_in(value.__func__)
    elif isinstance(value, type) and value.__module__.startswith(OURS):
        yield from (f for m in vars(value).values() for f in _functions_in(m))
    elif type(value).__module__.startswith(OURS):  # an object that is called like a function
        yield from _functions_in(inspect.getattr_static(type(value), "__call__", None))
        slots = [getattr(value, n, None) for n in getattr(type(value), "__slots__", ())]
        yield from (f for part in (*slots, *_fields(value)) for f in _functions_in(part))


def _fields(value: object) -> list[Any]:
    return list(vars(value).values()) if hasattr(value, "__dict__") else []


def _is_ours(function: FunctionType) -> bool:
    return str(function.__globals__.get("__name__", "")).startswith(OURS)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _strings(code: CodeType) -> set[str]:
    """The constants of a function that calls an instruction by its name."""
    found = set()
    for part in _codes(code):
        if {"isa", "_with", "_simulated"} & set(part.co_names):
            found |= {c for c in part.co_consts if isinstance(c, str)}
    return found


def _named(function: FunctionType) -> Iterator[Any]:
    """What a function names: globals, what modules among them hold, methods of the machine."""
    names = {n for part in _codes(function.__code__) for n in part.co_names}
    scope = function.__globals__
    owners: list[Any] = [scope[n] for n in names if isinstance(scope.get(n), (ModuleType, type))]
    if "trigonometry" in scope["__name__"]:
        owners.append(_arithmetic)
    if "core" in names or scope["__name__"] == NeuronCore.__module__:
        owners.append(NeuronCore)
    for name in sorted(names):
        if isinstance(scope.get(name), FunctionType):
            yield scope[name]
        for owner in owners:
            if isinstance(owner, ModuleType) or owner.__module__.startswith(OURS):
                held = inspect.getattr_static(owner, name, None)
                yield held if isinstance(held, (FunctionType, staticmethod)) else None
    for cell in function.__closure__ or ():
        yield cell.cell_contents


@cache
def _refusals(code: CodeType) -> tuple[str, ...]:
    """What a function raises, as its text writes it: `{…}` stands for what came."""
    try:
        tree = ast.parse(textwrap.dedent("".join(inspect.getsourcelines(code)[0])))
    except (OSError, SyntaxError):  # made without a source, or a lambda inside a call
        return ()
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and n.args]
    named = [c for c in calls if isinstance(c.func, ast.Name) and c.func.id.endswith("Error")]
    return tuple(text for call in named for text in _refusal(call))


def _refusal(call: ast.Call) -> Iterator[str]:
    what = _words(call.args[0])
    if what:
        given = {k.arg: _words(k.value) for k in call.keywords}
        expected = f" (expected: {given['expected']})" if given.get("expected") else ""
        rule = f" [{given['rule']}]" if given.get("rule") else ""
        yield f"{what}{expected}{rule}"


def _words(node: ast.expr) -> str:
    """A string constant, also one with values in it; of other expressions nothing."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Subscript):
        return _words(node.value)
    if isinstance(node, ast.JoinedStr):
        parts = (_words(v) if isinstance(v, ast.Constant) else "{…}" for v in node.values)
        return "".join(parts)
    return ""


# -- the page -------------------------------------------------------------------------------------


def led_to(name: str, module: str, version: str, value: Any) -> Found:
    """What a function of a module of a version leads to; an instruction has a record."""
    if module == "nki.isa" and name in INSTRUCTIONS and signature(name, version) is not None:
        return Found({name}, set())
    return followed(value)


def limits_section(numbers: Mapping[str, int]) -> Iterator[str]:
    """The limits of records, and the refusals that cells name by number."""
    yield from ("## Limits of instructions", "", LIMITS, "")
    for name in INSTRUCTIONS:
        yield from (f"### {name}", "")
        yield f"- operands, engines: [{name}](instructions.md#{name})"
        for text, versions in record_limits(name).items():
            yield f"- {span(versions) if versions else 'in no version'}: {text}"
        yield ""
    yield from ("## Refusals", "", REFUSALS, "")
    yield from (f"- R{number}: {text}" for text, number in numbers.items())
    yield from ("", "## Checks on request", "", "| check | proves |", "|---|---|")
    yield from (f"| `{check.name}` | {check.proves} |" for check in CHECKS.values())


LIMITS = """\
Each with the versions in which it holds, as a call that breaks it is told: the numbers are that
call's. All are enforced always, when the call is made; what is a warning there by an
[option](options.md) is an error under `--check device`. Before its own limits an instruction holds
its operands to their memories, dtypes, 128 partitions, start partitions and the engine's reach."""

REFUSALS = """\
What functions refuse besides the limits of the instructions that they are made of, always, when
they are called; `{…}` stands for what came."""
