"""What is checked of every function of NKI: the limits of its record, or of what it is made of.

Nothing here is a list: records give their limits (and in which versions a call that breaks one is
rejected), functions of the languages are followed to the records that they name and to the errors
that they raise.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

from members import ROOT

from neuroncore.checks import CHECKS
from neuroncore.instructions import INSTRUCTIONS, Instruction, Limit
from neuroncore.isa.examples import example_call
from neuroncore.isa.unsupported import (
    code_rejections,
    codes,
    common_rejections,
    function_rejections,
    is_told,
)
from neuroncore.machine.core import NeuronCore
from neuroncore.options import Options
from neuroncore.surface import VERSIONS, signature, span, version_tuple
from nki_beta2.nl import arithmetic

OURS = (
    "nki_beta2",
    "neuroncore.isa.handles",
    "neuroncore.machine.core",
    "neuroncore.memory",
    "neuroncore.machine.registers",
    "neuroncore.machine.trigonometry",
    "neuroncore.machine.launch",
)
"""Where a function is followed to; behind that, records say what is rejected."""

NAMES = ROOT / "tests" / "coverage" / "nki_names.json"
"""Every public name of NKI that is documented, with its versions."""

LOOSE = Options(start_partition="ignore")


@dataclass(frozen=True, slots=True)
class Found:
    """What a function leads to: records, what it rejects by itself, what a device does not run."""

    records: set[str] = field(default_factory=set)
    rejections: set[str] = field(default_factory=set)
    issues: set[str] = field(default_factory=set)


# -- limits of records ----------------------------------------------------------------------------


def limit_text(record: Instruction, limit: Limit, version: str | None = None) -> str:
    """A limit as the call that breaks it is told of it in a version; "" where it is legal there."""
    given = {"options": LOOSE} | dict(limit.breaks)
    if version is not None:
        given["version"] = version_tuple(version)
    call = example_call(record, record.examples[0], **given).call
    broken = next(iter(limit.check(call)), None)
    if broken is None:
        return ""
    rule = f" [{broken.rule}]" if broken.rule else ""
    return f"{broken.what} (expected: {broken.expected}){rule}"


def limit_versions(record: Instruction, limit: Limit) -> list[str]:
    """The versions with the instruction in which the call that breaks a limit is rejected."""
    return [v for v in having(record.name) if limit_text(record, limit, v)]


@cache
def having(name: str) -> tuple[str, ...]:
    """The versions that document an instruction; 0.1's last compiler has some before that."""
    table = json.loads(NAMES.read_text(encoding="utf-8"))["names"]["nki.isa"]
    if name not in table:
        raise LookupError(
            f"nki.isa.{name} has no row; add its signatures to {NAMES.relative_to(ROOT)}"
        )
    since = min((VERSIONS.index(s[:3]) for s, _ in table[name]["versions"]), default=0)
    return tuple(v for v in VERSIONS[since:] if signature(name, v) is not None)


@cache
def record_limits(name: str) -> dict[str, list[str]]:
    """Limit → versions, for the limits of a record."""
    record = INSTRUCTIONS[name]
    found: dict[str, list[str]] = {}
    for limit in record.limits:
        told = {v: limit_text(record, limit, v) for v in limit_versions(record, limit)}
        for version, text in told.items():
            versions = found.setdefault(text, [])
            versions += [version] if version not in versions else []
    return {text: sorted(versions, key=VERSIONS.index) for text, versions in found.items()}


@cache
def limit_targets(name: str) -> dict[str, str]:
    """Limit → ", on" its target, for limits of one target whose text does not name it."""
    record = INSTRUCTIONS[name]
    found: dict[str, str] = {}
    for limit in record.limits:
        for version in limit_versions(record, limit):
            text = limit_text(record, limit, version)
            found.setdefault(text, f", on {at}" if (at := limit.target(text)) else "")
    return found


@cache
def record_rejections(name: str) -> tuple[str, ...]:
    """What the code of a record rejects besides, as its text writes it."""
    told = record_limits(name)
    return tuple(t for t in code_rejections(INSTRUCTIONS[name]) if not is_told(t, told))


def number_checked(name: str) -> int:
    """How many lines the section of a record has."""
    return len(record_limits(name)) + len(record_rejections(name))


# -- what a function of a language leads to -------------------------------------------------------


def followed(value: Any) -> Found:
    """The records and rejections that a function of a language leads to."""
    found, seen = Found(), set()
    waiting = list(_functions_in(value))
    while waiting:
        function = waiting.pop()
        if function.__code__ in seen:
            continue
        seen.add(function.__code__)
        strings = _strings(function.__code__)
        found.records.update(strings & INSTRUCTIONS.keys())
        found.rejections.update(function_rejections(function))
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


def _strings(code: CodeType) -> set[str]:
    """The constants of a function that calls an instruction by its name."""
    found = set()
    for part in codes(code):
        if {"isa", "_with", "_simulated"} & set(part.co_names):
            found |= {c for c in part.co_consts if isinstance(c, str)}
    return found


def _named(function: FunctionType) -> Iterator[Any]:
    """What a function names: globals, what modules among them hold, methods of the machine."""
    names = {n for part in codes(function.__code__) for n in part.co_names}
    scope = function.__globals__
    owners: list[Any] = [scope[n] for n in names if isinstance(scope.get(n), (ModuleType, type))]
    if "trigonometry" in scope["__name__"]:
        owners.append(arithmetic)
    if "core" in names or scope["__name__"] == NeuronCore.__module__:
        owners.append(NeuronCore)
    own = scope.get(function.__qualname__.partition(".")[0])
    if isinstance(own, type):  # methods that a method calls
        owners.append(own)
    for name in sorted(names):
        if isinstance(scope.get(name), FunctionType):
            yield scope[name]
        for owner in owners:
            if isinstance(owner, ModuleType) or owner.__module__.startswith(OURS):
                held = inspect.getattr_static(owner, name, None)
                yield held if isinstance(held, (FunctionType, staticmethod)) else None
    for cell in function.__closure__ or ():
        yield cell.cell_contents


# -- the page -------------------------------------------------------------------------------------


def led_to(name: str, module: str, version: str, value: Any) -> Found:
    """What a function of a module of a version leads to; an instruction has a record."""
    if module == "nki.isa" and name in INSTRUCTIONS and signature(name, version) is not None:
        return Found({name}, set())
    return replace(followed(value), issues={i.text for i in getattr(value, "issues", ())})


def limits_section(numbers: Mapping[str, int], issues: Mapping[str, int]) -> Iterator[str]:
    """The limits of records; the rejections and the known issues that cells name by number."""
    yield from ("## Limits of instructions", "", LIMITS, "", "### Every instruction", "")
    yield from (f"- {text}" for text in common_rejections())
    yield ""
    for name in INSTRUCTIONS:
        yield from (f"### {name}", "")
        yield f"- operands, engines: [{name}](instructions.md#{name})"
        targets = limit_targets(name)
        for text, versions in record_limits(name).items():
            yield f"- {span(versions)}{targets.get(text, '')}: {text}"
        yield from (f"- also: {text}" for text in record_rejections(name))
        yield ""
    yield from ("## Rejections", "", REJECTIONS, "")
    yield from (f"- R{number}: {text}" for text, number in numbers.items())
    yield from ("", "## Known issues of devices", "", ISSUES, "")
    yield from (f"- D{number}: {text}" for text, number in issues.items())
    yield from ("", "## Checks on request", "", "| check | proves |", "|---|---|")
    yield from (f"| `{check.name}` | {check.proves} |" for check in CHECKS.values())


LIMITS = """\
Each with the versions in which it holds, as a call that breaks it is told: the numbers are that
call's. A limit that is another one in other versions or on other targets has a line for each; *on*
names the target of that call. Below them, after *also*, what the instruction's code rejects where
no such call is kept: values that it finds when it is executed, attributes that are written wrongly,
a limit's further reasons; `{…}` is the value passed. All are enforced always, when the call is
made; what is a warning there by an [option](options.md) is an error under `--check device`."""

REJECTIONS = """\
What functions reject besides the limits of the instructions that they are made of, always, when
they are called; `{…}` is the value passed."""

ISSUES = """\
What functions do here and, as documents say, not on a device, or perhaps not: they give values, and
`--check device` reports each call with such a function, at the kernel's line."""
