"""Drafts of migration rules: one file for the functions that changed in one way, with examples."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from nki_migrate.drafting.api import Api, Entry
from nki_migrate.drafting.changes import BREAKING, ApiChange, Kind
from nki_migrate.rules import all_rules

_PLACES = {Kind.INSERTED, Kind.REORDERED, Kind.REMOVED}
"""Changes after which an argument that is given by position means something else."""
_ALIASES = {"nki.isa": "nisa", "nki.language": "nl", "nki.collectives": "ncc", "nki": "nki"}


def draft_rules(old: Api, new: Api, changes: Iterable[ApiChange]) -> dict[str, str]:
    """File name → text of each drafted rule."""
    numbers = _free_numbers(old.version)
    groups = _grouped(c for c in changes if c.kind in BREAKING)
    return {f"nki{next(numbers)}.toml": _Draft(old, new, group).text() for group in groups.values()}


def _free_numbers(version: str) -> Iterator[int]:
    """Numbers of the step that starts at `version` and that no rule has."""
    step = 1000 * int(version.partition(".")[2])
    taken = [int(id.removeprefix("NKI")) for id in all_rules()]
    number = max((n for n in taken if step <= n < step + 1000), default=step)
    while True:
        number += 1
        yield number


def _grouped(changes: Iterable[ApiChange]) -> Mapping[object, list[ApiChange]]:
    """Changes that one rule covers: the places of a function, or what many functions have alike."""
    of_function: dict[tuple[str, bool], list[ApiChange]] = {}
    for change in changes:
        of_function.setdefault((change.name, change.kind in _PLACES), []).append(change)
    groups: dict[object, list[ApiChange]] = {}
    for group in of_function.values():
        alike = tuple((c.kind, c.parameter, c.new) for c in group)
        whole = any(c.kind in (Kind.REORDERED, Kind.FUNCTION_REMOVED) for c in group)
        key = (group[0].name, alike) if whole else alike
        groups.setdefault(key, []).extend(group)
    return groups


@dataclass(frozen=True, slots=True)
class _Draft:
    """One rule: changes of one or more functions."""

    old: Api
    new: Api
    changes: Sequence[ApiChange]

    def text(self) -> str:
        old, new = self.old, self.new
        klass = "a" if all(c.kind in _SYNTACTIC for c in self.changes) else "c"
        source = (
            f"API descriptions of NKI {old.version} ({old.source}) and {new.version} ({new.source})"
        )
        lines = [
            f"# DRAFT by nki-migrate draft-rules, {old.version} to {new.version}.",
            "# Check every line against the documents, then remove `draft` and [[mechanical]].",
            f"title = {json.dumps(self.title(), ensure_ascii=False)}",
            f'class = "{klass}"',
            "draft = true",
            f"source = {json.dumps(source, ensure_ascii=False)}",
            "page = '''",
            *self.page(),
            "'''",
        ]
        for change in self.changes:
            lines += ["", "[[mechanical]]", *_fields(change)]
        for name in dict.fromkeys(c.name for c in self.changes):
            lines += self.example(name)
        return "\n".join(lines) + "\n"

    def title(self) -> str:
        names = list(dict.fromkeys(short(c.name) for c in self.changes))
        functions = (
            " and ".join(f"`{n}`" for n in names) if len(names) < 3 else f"{len(names)} functions"
        )
        said = dict.fromkeys(_said(c) for c in self.changes)
        return f"{functions}: {'; '.join(said)}"

    def page(self) -> Iterator[str]:
        for name in dict.fromkeys(c.name for c in self.changes):
            before, after = self.old.entries.get(name), self._after(name)
            yield f"`{name}`"
            yield ""
            yield f"Old: `({before.text if before else '-'})`"
            yield ""
            yield f"New: `({after.text})`" if after else "New: gone"
            yield ""
        yield "**Trap.** TODO: does a call that both versions accept mean something else?"

    def _after(self, name: str) -> Entry | None:
        renamed = [
            c.new for c in self.changes if c.kind is Kind.FUNCTION_RENAMED and c.name == name
        ]
        return self.new.entries.get(renamed[0] if renamed else name)

    def example(self, name: str) -> list[str]:
        """A kernel before and after; without `new` where the rule can only report."""
        before, after = self.old.entries[name], self._after(name)
        own = [c for c in self.changes if c.name == name]
        old, new = _calls(before, after, own)
        parameters = ", ".join(p.name for p in before.plain.values())
        lines = [
            "",
            "[[functions]]",
            "old = '''",
            f"def kernel({parameters}):",
            f"    {old}",
            "'''",
        ]
        if new is not None:
            lines += ["new = '''", f"def kernel({parameters}):", f"    {new}", "'''"]
        return lines


_SYNTACTIC = {
    Kind.INSERTED, Kind.REORDERED, Kind.RENAMED, Kind.KEYWORD_ONLY, Kind.FUNCTION_RENAMED,
}  # fmt: skip
"""Changes that a rewriting of the call alone can follow."""


def _fields(change: ApiChange) -> Iterator[str]:
    yield f'kind = "{change.kind.value}"'
    for field in ("name", "parameter", "old", "new"):
        if value := getattr(change, field):
            yield f"{field} = {json.dumps(value, ensure_ascii=False)}"


def short(name: str) -> str:
    """A dotted name as kernels write it: `nisa.topk`."""
    module, _, function = name.rpartition(".")
    cls = module.rpartition(".")[2]
    if cls[:1].isupper():
        return f"{cls}.{function}"
    return f"{_ALIASES.get(module, module)}.{function}"


_SAID = {
    Kind.INSERTED: "`{parameter}` is inserted before `{old}`",
    Kind.REMOVED: "`{parameter}` is removed",
    Kind.RENAMED: "`{old}` is called `{new}`",
    Kind.REORDERED: "`{parameter}` changed its place",
    Kind.KEYWORD_ONLY: "`{parameter}` is keyword-only",
    Kind.DEFAULT: "`{parameter}` is `{new}` by default, and was `{old}`",
    Kind.REQUIRED: "`{parameter}` has no default any more",
    Kind.FUNCTION_REMOVED: "removed",
    Kind.FUNCTION_RENAMED: "called `{new}`",
}


def _said(change: ApiChange) -> str:
    return _SAID[change.kind].format(parameter=change.parameter, old=change.old, new=change.new)


# -- examples --------------------------------------------------------------------------------------


def _calls(
    before: Entry, after: Entry | None, changes: Sequence[ApiChange]
) -> tuple[str, str | None]:
    """A call of the older version, and the same for the newer one, if syntax alone gives it."""
    kinds = {c.kind for c in changes}
    if after is not None and kinds & _PLACES:
        return _by_place(before, after, lost=Kind.REMOVED in kinds)
    if after is not None and kinds <= _SYNTACTIC:
        return _by_name(before, after, changes)
    required = sum(p.default is None for p in before.plain.values())
    return _call(before, before, len(before.plain) if after is None else required), None


def _by_place(before: Entry, after: Entry, lost: bool) -> tuple[str, str | None]:
    """A call whose last argument has another place, and the same with its name."""
    first = _first_place(before, after)
    count = min(first + 1, len(before.plain))
    new = None if lost else _call(before, before, count, first)
    return _call(before, before, count), new


def _by_name(before: Entry, after: Entry, changes: Sequence[ApiChange]) -> tuple[str, str | None]:
    """A call with all arguments, and the same with the new names."""
    count = len(before.plain)
    renamed = {c.old: c.new for c in changes if c.kind is Kind.RENAMED}
    named = next((i for i, n in enumerate(before.plain) if _is_named(n, changes)), count)
    old = _call(before, before, count, named if renamed else count)
    return old, _call(before, after, count, named, renamed)


def _is_named(name: str, changes: Sequence[ApiChange]) -> bool:
    return any(name in (c.parameter, c.old) for c in changes)


def _first_place(before: Entry, after: Entry) -> int:
    """The first argument that means something else when it is given by position."""
    pairs = zip(before.plain, after.plain, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), len(after.plain))


def _call(
    before: Entry, called: Entry, count: int, named: int | None = None,
    renamed: Mapping[str, str] | None = None,
) -> str:  # fmt: skip
    """A call with the first `count` arguments of `before`; from `named` on by keyword."""
    shown = []
    for place, parameter in enumerate(list(before.plain.values())[:count]):
        name = (renamed or {}).get(parameter.name, parameter.name)
        by_name = parameter.keyword_only or (named is not None and place >= named)
        shown.append(f"{name}={parameter.name}" if by_name else parameter.name)
    return f"{short(called.name)}({', '.join(shown)})"
