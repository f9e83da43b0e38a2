"""Drafts of data: signatures of `nki.isa`, rows of the conformance and of the support table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from neuroncore.surface import VERSIONS, Signature, signature
from nki_migrate.drafting.api import Api, Entry, Parameter, split_name
from nki_migrate.drafting.changes import ApiChange, Kind

_ISA = "nki.isa."
_NAME = re.compile(r"[A-Za-z_]\w*$")
_VALUES = {"None", "True", "False"}


def surface_lines(old: Api, new: Api) -> Iterator[str]:
    """Lines of `isa.txt` for every instruction of both versions, in alphabetical order."""
    for name in sorted({*old.entries, *new.entries}):
        before, after = old.entries.get(name), new.entries.get(name)
        if not name.startswith(_ISA) or not _is_instruction(name, before, after, old):
            continue
        if before and after and before.text == after.text:
            yield _line(after, f"{old.version}-{new.version}", old.version)
            continue
        if before:
            yield _line(before, old.version, old.version)
        if after:
            yield _line(after, new.version, old.version)


def _is_instruction(name: str, before: Entry | None, after: Entry | None, old: Api) -> bool:
    """Whether it is a function that the machine has, or a new one.

    What the older version documents and the machine's table lacks belongs to the language.
    """
    if not any(entry and entry.is_function and entry.kind != "method" for entry in (before, after)):
        return False
    return before is None or _signature_of(name, old.version) is not None


def _signature_of(name: str, version: str) -> Signature | None:
    return signature(name.removeprefix(_ISA), version) if version in VERSIONS else None


def _line(entry: Entry, span: str, known: str) -> str:
    found = _signature_of(entry.name, known)
    fields = {p.name: (p.field, p.more) for p in found.params} if found else {}
    shown = [_parameter(p, *fields.get(p.name, (p.name, ()))) for p in entry.parameters]
    separated = _with_separator(entry.parameters, shown)
    return f"{entry.name.removeprefix(_ISA):<24} {span:<7} ({', '.join(separated)})"


def _with_separator(parameters: Sequence[Parameter], shown: list[str]) -> list[str]:
    place = next((i for i, p in enumerate(parameters) if p.keyword_only), None)
    return shown if place is None else [*shown[:place], "*", *shown[place:]]


def _parameter(parameter: Parameter, field: str, more: tuple[str, ...]) -> str:
    text = parameter.kind + parameter.name
    if more:
        text += f":{field}..{more[-1].lstrip('abcdefghijklmnopqrstuvwxyz_')}"
    elif field != parameter.name:
        text += f":{field}"
    return text if parameter.default is None else f"{text}={_default(parameter.default)}"


def _default(text: str) -> str:
    """A default as isa.txt writes it: operations with `nl.`, enums without their module."""
    text = re.sub(r"^(?:nki\.isa|nisa)\.", "", text)
    text = re.sub(r"^nki\.language\.", "nl.", text)
    return f"nl.{text}" if _NAME.match(text) and text not in _VALUES else text


def conformance_rows(old: Api, new: Api) -> str:
    """Names with their spans and parameters, in the form of `tests/coverage/nki_names.json`."""
    names: dict[str, dict[str, object]] = {}
    for name in sorted({*old.entries, *new.entries}):
        before, after = old.entries.get(name), new.entries.get(name)
        entry = after or before
        assert entry is not None
        module, own = split_name(entry)
        spans = list(_spans(before, after, old.version, new.version))
        names.setdefault(module, {})[own] = {"kind": entry.kind, "versions": spans}
    about = (
        f"DRAFT: names of NKI {old.version} and {new.version}. Source: {old.source}; {new.source}."
    )
    return json.dumps({"about": about, "names": names}, indent=1) + "\n"


def _spans(
    before: Entry | None, after: Entry | None, old: str, new: str
) -> Iterator[tuple[str, str]]:
    if before and after and (before.kind, before.text) == (after.kind, after.text):
        yield f"{old}-{new}", after.text
        return
    for version, entry in ((old, before), (new, after)):
        if entry:
            yield version, entry.text


BREAKING = {
    Kind.FUNCTION_REMOVED, Kind.FUNCTION_RENAMED, Kind.INSERTED, Kind.REMOVED, Kind.RENAMED,
    Kind.REORDERED, Kind.KEYWORD_ONLY, Kind.DEFAULT, Kind.REQUIRED,
}  # fmt: skip
"""Changes that a call of the older version can meet."""


def support_row(new: Api, changes: Sequence[ApiChange]) -> str:
    """The version's row of the support table: version, chips, frontend, what breaks."""
    broken = sorted({c.name.removeprefix("nki.") for c in changes if c.kind in BREAKING})
    shown = ", ".join(f"`{name}`" for name in broken) or "nothing in the signatures"
    return f"| {new.version} | TODO: chips | TODO: frontend | {shown} |"
