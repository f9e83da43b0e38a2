"""The drafts of a release as files, all of them or none."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from neuroncore.commands.files import write_folder
from neuroncore.surface import VERSIONS, Signature, signature
from nki_migrate.drafting.api import (
    Api,
    ApiError,
    Entry,
    Parameter,
    as_json,
    split_name,
    version_number,
)
from nki_migrate.drafting.changes import ApiChange, changes_between, renamed_parameters
from nki_migrate.drafting.rules import draft_rules

_README = """\
# DRAFT: NKI {old} to {new}

Made by `nki-migrate draft-rules` from two API descriptions. Drafts are made of signatures and say
nothing of meanings: read the release notes for each line, and delete this folder when all of it has
been moved.

| file | belongs to |
|---|---|
| `isa.txt` | `packages/neuroncore/src/neuroncore/surface/isa.txt`: extend or add these lines |
| `nki_names.json` | `tests/coverage/nki_names.json`: extend or add these rows |
| `rules/` | `tools/nki_migrate/src/nki_migrate/rules/`: a file per rule; write its hooks |
| `nki_versions.toml` | `workspace/nki_versions.toml`: the support table of `docs/versions.md` |
| `api-{new}.json` | the description of {new}, for the release after it |
| `changes.json` | every change, for programs |

What no signature shows belongs into `surface/changes.toml`: another order, rounding or default.

{count} changes:

{listed}
"""


def drafts(old: Api, new: Api) -> tuple[Mapping[str, str], Sequence[ApiChange]]:
    """Relative path → text of each draft, and the changes that they are made of.

    Raises ApiError unless the second description is of a later version.
    """
    if old.version == new.version:
        raise ApiError(f"both descriptions are of NKI {old.version}")
    if version_number(old.version) > version_number(new.version):
        raise ApiError(f"NKI {old.version} is newer than {new.version}: give the older one first")
    changes = changes_between(old, new)
    mark = f"# DRAFT: signatures of NKI {old.version} and {new.version}\n"
    listed = "\n".join(f"- {change}" for change in changes)
    files = {
        "README.md": _README.format(
            old=old.version, new=new.version, count=len(changes), listed=listed
        ),
        "isa.txt": mark + "".join(f"{line}\n" for line in surface_lines(old, new)),
        "nki_names.json": conformance_rows(old, new),
        f"api-{new.version}.json": as_json(new),
        "changes.json": _changes_json(old, new, changes),
    }
    rules = draft_rules(old, new, changes)
    files["nki_versions.toml"] = f"{mark}\n{support_rows(new.version, rules.values())}"
    return files | {f"rules/{name}": text for name, text in rules.items()}, changes


def _changes_json(old: Api, new: Api, changes: Sequence[ApiChange]) -> str:
    rows = [
        {"kind": c.kind.value, "name": c.name, "parameter": c.parameter, "old": c.old, "new": c.new}
        for c in changes
    ]
    document = {"schema": "nki-api-changes/1", "from": old.version, "to": new.version}
    return json.dumps({**document, "draft": True, "changes": rows}, indent=1) + "\n"


def write_drafts(folder: Path, files: Mapping[str, str]) -> None:
    """Write the files into a new or empty folder; on an error nothing of it remains.

    Raises ApiError where the folder holds something or cannot be made.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ApiError(f"{folder}: it exists and is not an empty folder")
    try:
        write_folder(folder, files)
    except OSError as error:
        raise ApiError(f"{folder}: cannot be written: {error.strerror or error}") from None


def summary(changes: Sequence[ApiChange]) -> str:
    """How many changes there are of each kind."""
    counts = Counter(change.kind.value for change in changes)
    return "".join(f"{count:>4} {kind}\n" for kind, count in counts.most_common())


# -- tables ----------------------------------------------------------------------------------------

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
            renamed = renamed_parameters(before, after) if before else {}
            yield _line(after, new.version, old.version, renamed)


def _is_instruction(name: str, before: Entry | None, after: Entry | None, old: Api) -> bool:
    """Whether it is a function that the machine has, or a new one.

    What the older version documents and the machine's table lacks belongs to the language.
    """
    if not any(entry and entry.is_function and entry.kind != "method" for entry in (before, after)):
        return False
    return before is None or _signature_of(name, old.version) is not None


def _signature_of(name: str, version: str) -> Signature | None:
    return signature(name.removeprefix(_ISA), version) if version in VERSIONS else None


def _line(entry: Entry, span: str, known: str, renamed: Mapping[str, str] | None = None) -> str:
    found, new = _signature_of(entry.name, known), renamed or {}
    fields = {new.get(p.name, p.name): (p.field, p.more) for p in found.params} if found else {}
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


def support_rows(version: str, rules: Iterable[str]) -> str:
    """Rows of `workspace/nki_versions.toml`: the version, and what each drafted rule is about."""
    todo = "TODO: what the documents say"
    chips = "".join(f'{chip} = "{todo}"\n' for chip in ("trn1", "trn2", "trn3"))
    rows = [f'[[version]]\nname = "{version}"\nsdk = "{todo}"\nimports = "nki"\n{chips}']
    for rule in rules:
        what = json.dumps(tomllib.loads(rule)["title"], ensure_ascii=False)
        rows.append(
            f'[[change]]\nto = "{version}"\nwhat = {what}\nbreaks = "TODO: which kernels"\n'
        )
    return "\n".join(rows)
