"""The reference of an instruction, made from its record: help() and the reference page."""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cache
from typing import Any

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.errors import Violation
from neuroncore.instructions._limits import check
from neuroncore.instructions._record import Example, Instruction, Limit, Operand
from neuroncore.isa.examples import example_call
from neuroncore.isa.unsupported import code_rejections, common_rejections, is_told
from neuroncore.options import Options
from neuroncore.surface import VERSIONS, signature, span
from nki_dtypes import ALL

_WIDTH = 88
_SHOWN = 8  # elements of an array that an example prints


@cache
def describe(record: Instruction) -> str:
    """The record in words: meaning, operands, attributes, engines, limits, examples, source."""
    return _joined(_sections(record, _rejections(record)))


@cache
def docstring(record: Instruction) -> str:
    """`describe` without the rejections: finding them executes examples and parses source code."""
    return _joined(_sections(record, [[f"Rejections: python -m neuroncore {record.name}"]]))


def _joined(sections: Iterable[list[str]]) -> str:
    return "\n\n".join(text for text in map("\n".join, sections) if text)


def reference_page(records: Iterable[Instruction]) -> str:
    """All records as one Markdown document."""
    parts = [
        "# Instructions\n",
        "What the machine executes, one section per record: how each NKI version spells it, what "
        "it means,\nand what it rejects. Letters: P partitions, F free elements, K contraction, "
        "M and N output. In\nexamples `'float32[4, 8] sbuf'` is a tile of undefined content. "
        "`help(nisa.…)` prints the\nsame text without the rejections.\n",
        "This page is written from the records by `python workspace/pages.py`.\n",
    ]
    parts += ["Before its own limits every instruction rejects, {…} is the value passed:\n"]
    parts += ["```text", *_items(common_rejections()), "```\n"]
    for record in records:
        parts += [f"## {record.name}\n", "```text", *_signatures(record), "```\n"]
        parts += ["```text", describe(record), "```\n"]
    return "\n".join(parts).rstrip() + "\n"


def _sections(record: Instruction, rejections: Iterable[list[str]]) -> Iterator[list[str]]:
    yield _wrapped(inspect.getdoc(record.run) or "")
    yield _notes(record)
    yield ["Operands", *(_operand(n, o) for n, o in record.operands.items())]
    if record.attrs:
        yield ["Attributes", *(f"  {n} = {_value(a.default)}" for n, a in record.attrs.items())]
    yield [f"Engines: {', '.join(e.name for e in record.engines)}"]
    yield from rejections
    yield ["Examples", *(line for e in record.examples for line in _example(record, e))]
    yield [f"Source: {record.source}", f"0.1's mask=: {record.mask.value}"]


def _rejections(record: Instruction) -> Iterator[list[str]]:
    yield ["Rejected, for example", *_items(_limits(record))]
    if also := _also_rejected(record):
        yield ["Rejected too, {…} is the value passed", *_items(also)]


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent=indent)


def _notes(record: Instruction) -> list[str]:
    """Notes of the record's module about all its instructions, after its title."""
    _, _, rest = (inspect.getdoc(sys.modules[record.run.__module__]) or "").partition("\n\n")
    return rest.splitlines()


def _operand(name: str, operand: Operand) -> str:
    role = "written" if operand.writes else "read"
    kinds = [f"({operand.letters.replace(' ', ', ')}) in {_spaces(operand)}"] * operand.tile
    kinds += ["a number"] * operand.number + ["None"] * operand.optional
    text = f"{name}: {role}; {' or '.join(kinds)}{_dtypes(operand)}"
    return "\n".join(textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="      "))


def _spaces(operand: Operand) -> str:
    order = (MemorySpace.hbm, MemorySpace.sbuf, MemorySpace.psum)
    return " or ".join(s.name.upper() for s in order if s in operand.spaces)


def _dtypes(operand: Operand) -> str:
    if operand.dtypes is None or not operand.tile:
        return ""
    legal = [str(d) for d in ALL if d in operand.dtypes]
    other = [str(d) for d in ALL if d not in operand.dtypes]
    if len(other) < len(legal):
        return f"; every dtype but {', '.join(other)}" if other else ""
    return f"; {', '.join(legal)}"


def _limits(record: Instruction, settings: bool = True) -> list[str]:
    """Each limit as the call that breaks it is told, and in which setting that call was made."""
    found: dict[str, str] = {}
    for limit in record.limits:
        for broken in _violations(record, limit):
            expected = f" (expected: {broken.expected})" if broken.expected else ""
            rule = f" [{broken.rule}]" if broken.rule else ""
            text = f"{broken.what}{expected}{rule}"
            found.setdefault(broken.what, text + _setting(limit, text) * settings)
    return list(found.values())


def _setting(limit: Limit, told: str) -> str:
    """Where a limit holds that is another one in other versions or generations."""
    version = ".".join(map(str, limit.breaks.get("version", ())))
    parts = [f"in NKI {version}"] * bool(version) + [f"on {t}" for t in (limit.target(told),) if t]
    return f" ({' '.join(parts)})" if parts else ""


def _also_rejected(record: Instruction) -> list[str]:
    told = _limits(record, settings=False)
    return [text for text in code_rejections(record) if not is_told(text, told)]


def _items(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from textwrap.wrap(text, _WIDTH, initial_indent="  - ", subsequent_indent="    ")


def _violations(record: Instruction, limit: Limit) -> list[Violation]:
    settings = {"options": Options(start_partition="ignore")} | dict(limit.breaks)
    return check(example_call(record, record.examples[0], **settings).call)[:1]


def _example(record: Instruction, example: Example) -> Iterator[str]:
    given = ", ".join(f"{name}={_value(v)}" for name, v in example.given.items())
    yield from _wrapped(f"{record.name}({given})", "  ")
    expect = example.expect if isinstance(example.expect, dict) else {}
    for name, value in expect.items():
        yield from _wrapped(f"{name} becomes {_value(value)}", "    ")
    if example.note:
        yield from _wrapped(f"({example.note})", "    ")


def _value(value: Any) -> str:
    """A value as an example or a default shows it."""
    if isinstance(value, np.ndarray):
        first = ", ".join(f"{x:g}" for x in value.astype(np.float64).ravel()[:_SHOWN])
        return f"<{first}{', …' * (value.size > _SHOWN)}; shape {value.shape}>"
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], np.ndarray):
        return f"{_value(value[1])} in {value[0].upper()}"
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if callable(value):
        return inspect.getdoc(value) or "<a view>"
    return repr(value)


def _signatures(record: Instruction) -> Iterator[str]:
    """Each way in which versions spell the call, oldest first."""
    spelt: dict[str, list[str]] = {}
    for version in VERSIONS:
        found = signature(record.name, version)
        if found is not None:
            params = (p.name if p.required else f"{p.name}={p.text}" for p in found.params)
            spelt.setdefault(f"{found.name}({', '.join(params)})", []).append(version)
    for text, versions in spelt.items():
        lines = textwrap.wrap(text, _WIDTH - 12, subsequent_indent="    ")
        yield f"{span(versions):<12}{lines[0]}"
        yield from (" " * 12 + line for line in lines[1:])
