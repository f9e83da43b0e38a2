"""Mechanical changes between two API descriptions, one record per change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

from nki_migrate.drafting.api import Api, Entry, Parameter


class Kind(StrEnum):
    """The kind of change of a function or of a parameter."""

    FUNCTION_ADDED = "function added"
    FUNCTION_REMOVED = "function removed"
    FUNCTION_RENAMED = "function renamed"
    INSERTED = "inserted"
    APPENDED = "appended"  # behind all that were there: no call changes
    REMOVED = "removed"
    RENAMED = "renamed"
    REORDERED = "reordered"
    KEYWORD_ONLY = "made keyword-only"
    POSITIONAL = "made positional"
    DEFAULT = "default changed"
    OPTIONAL = "made optional"
    REQUIRED = "made required"


BREAKING = {
    Kind.FUNCTION_REMOVED, Kind.FUNCTION_RENAMED, Kind.INSERTED, Kind.REMOVED, Kind.RENAMED,
    Kind.REORDERED, Kind.KEYWORD_ONLY, Kind.DEFAULT, Kind.REQUIRED,
}  # fmt: skip
"""Changes that a call of the older version can meet."""


@dataclass(frozen=True, slots=True)
class ApiChange:
    """One change of the function `name` (as the older version calls it, if it has it)."""

    kind: Kind
    name: str
    parameter: str = ""
    old: str = ""
    new: str = ""

    def __str__(self) -> str:
        about = f"{self.name}({self.parameter})" if self.parameter else self.name
        values = f": {self.old or '-'} → {self.new or '-'}" if self.old or self.new else ""
        return f"{about} {self.kind.value}{values}"


SIMILAR = 0.6
"""Names of functions with equal parameters that count as one renamed function."""


def changes_between(old: Api, new: Api) -> list[ApiChange]:
    """All changes, function by function in the order of the newer description."""
    before, after = old.functions, new.functions
    renamed = _renamed_functions(before, after)
    found = [ApiChange(Kind.FUNCTION_RENAMED, a, old=a, new=b) for a, b in renamed.items()]
    for name, entry in after.items():
        if name in before:
            found += _of_function(before[name], entry)
        elif name not in renamed.values():
            found.append(ApiChange(Kind.FUNCTION_ADDED, name, new=entry.text))
    gone = before.keys() - after.keys() - renamed.keys()
    found += (ApiChange(Kind.FUNCTION_REMOVED, n, old=before[n].text) for n in sorted(gone))
    return found


def _renamed_functions(before: Mapping[str, Entry], after: Mapping[str, Entry]) -> dict[str, str]:
    """Functions that are gone → functions that are new, with equal parameters and a like name."""
    come = [entry for name, entry in after.items() if name not in before]
    found = {}
    for name, entry in before.items():
        likeness = {e.name: _likeness(e.name, name) for e in come if e.text == entry.text}
        best = max(likeness, key=lambda n: likeness[n], default=None)
        if name not in after and best and likeness[best] >= SIMILAR and len(entry.plain) > 1:
            found[name] = best
    return found


def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one.rpartition(".")[2], other.rpartition(".")[2]).ratio()


# -- parameters ------------------------------------------------------------------------------------


def _of_function(old: Entry, new: Entry) -> Iterator[ApiChange]:
    before, after = old.plain, new.plain
    renamed = renamed_parameters(old, new)
    stays = {name: renamed.get(name, name) for name in before if name in after or name in renamed}
    for name, other in renamed.items():
        yield ApiChange(Kind.RENAMED, old.name, name, name, other)
    for name in (n for n in before if n not in stays):
        yield ApiChange(Kind.REMOVED, old.name, name, old=str(before[name]))
    kept = list(stays.values())
    yield from _added(old.name, kept, after)
    for name in moved([n for n in after if n in kept], kept):
        yield ApiChange(Kind.REORDERED, old.name, name, _places(kept), _places(after))
    for name, other in stays.items():
        yield from _of_parameter(old.name, before[name], after[other])


def _places(names: Iterable[str]) -> str:
    return " ".join(names)


def renamed_parameters(before: Entry, after: Entry) -> dict[str, str]:
    """Parameters between equal neighbours that have other names and the same default."""
    old, new = list(before.plain.values()), list(after.plain.values())
    names, others = [p.name for p in old], [p.name for p in new]
    found = {}
    for tag, i, j, k, m in SequenceMatcher(None, names, others, autojunk=False).get_opcodes():
        if tag == "replace" and j - i == m - k:
            for one, other in zip(old[i:j], new[k:m], strict=True):
                is_new = one.name not in others and other.name not in names
                if is_new and one.default == other.default:
                    found[one.name] = other.name
    return found


def _added(name: str, kept: Sequence[str], after: Mapping[str, Parameter]) -> Iterator[ApiChange]:
    places = list(after)
    last = max((places.index(n) for n in kept), default=-1)
    for place, (parameter, described) in enumerate(after.items()):
        if parameter not in kept:
            kind = Kind.INSERTED if place < last and not described.keyword_only else Kind.APPENDED
            following = next((n for n in places[place:] if n in kept), "")
            yield ApiChange(kind, name, parameter, following, str(described))


def moved(new: Sequence[str], old: Sequence[str]) -> list[str]:
    """The fewest names to move so that `old` becomes the order `new` of the same names."""
    best: dict[int, list[str]] = {}
    for i, name in enumerate(old):
        before = [best[j] for j in range(i) if new.index(old[j]) < new.index(name)]
        best[i] = [*max(before, key=len, default=[]), name]
    stays = max(best.values(), key=len, default=[])
    return [name for name in old if name not in stays]


def _of_parameter(name: str, old: Parameter, new: Parameter) -> Iterator[ApiChange]:
    if old.keyword_only is not new.keyword_only:
        kind = Kind.KEYWORD_ONLY if new.keyword_only else Kind.POSITIONAL
        yield ApiChange(kind, name, new.name)
    if old.default is None and new.default is not None:
        yield ApiChange(Kind.OPTIONAL, name, new.name, new=new.default)
    elif old.default is not None and new.default is None:
        yield ApiChange(Kind.REQUIRED, name, new.name, old=old.default)
    elif not same_default(old.default, new.default):
        yield ApiChange(Kind.DEFAULT, name, new.name, old.default or "", new.default or "")


def same_default(one: str | None, other: str | None) -> bool:
    """Whether two printed defaults mean the same: `nl.add` and `add`, 0 and 0.0, all and `...`."""
    if one == other or "..." in (one, other) or one is None or other is None:
        return True
    return _bare(one) == _bare(other)


_NAMESPACES = re.compile(r"^(?:(?:nki\.)?(?:isa|language)|nisa|nl|MemoryRegion)\.")


def _bare(text: str) -> str | float:
    bare = _NAMESPACES.sub("", text.strip("'\""))
    try:
        return float(bare)
    except ValueError:
        return bare
