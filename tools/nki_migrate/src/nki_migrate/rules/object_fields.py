"""Constructors of objects: the parser wrote them from a class's fields, Python needs a dataclass.

Up to 0.6 every class of `NKIObject` without `__init__` takes its fields: the annotated ones in
order, all by name, each of which may be left out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from neuroncore.findings import Edit, Finding
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_MUTABLE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a class: its statement, and its default."""

    name: str
    statement: ast.Assign | ast.AnnAssign
    default: ast.expr | None

    @property
    def is_annotated(self) -> bool:
        return isinstance(self.statement, ast.AnnAssign)


def _bases(node: ast.ClassDef, site: Site) -> Iterator[ast.ClassDef]:
    """The classes of this file that a class inherits from."""
    names = {base.id for base in node.bases if isinstance(base, ast.Name)}
    for other in site.index.nodes:
        if isinstance(other, ast.ClassDef) and other.name in names and other is not node:
            yield other
            yield from _bases(other, site)


def _is_constructed_from_fields(node: ast.ClassDef, site: Site) -> bool:
    """Whether the parser wrote the constructor."""
    classes = [node, *_bases(node, site)]
    paths = {site.canonical(base) for found in classes for base in found.bases}
    methods = {s.name for found in classes for s in found.body if isinstance(s, ast.FunctionDef)}
    return any((p or "").endswith(".NKIObject") for p in paths) and "__init__" not in methods


def _fields(node: ast.ClassDef) -> list[_Field]:
    found = []
    for s in node.body:
        target = s.targets[0] if isinstance(s, ast.Assign) else getattr(s, "target", None)
        if not isinstance(s, ast.Assign | ast.AnnAssign) or not isinstance(target, ast.Name):
            continue
        if "ClassVar" not in ast.unparse(getattr(s, "annotation", target)):
            found.append(_Field(target.id, s, s.value))
    return [f for f in found if not f.name.startswith("__")]


def _decorator(node: ast.ClassDef) -> ast.expr | None:
    named = {ast.unparse(getattr(d, "func", d)).rpartition(".")[2]: d for d in node.decorator_list}
    return named.get("dataclass")


def _check_class(node: ast.ClassDef, site: Site) -> Iterator[Finding]:
    """NKI6025: a class of `NKIObject` without `__init__` that Python cannot construct."""
    fields = _fields(node)
    if not fields or not _is_constructed_from_fields(node, site):
        return
    calls = _calls(node.name, site)
    edits = [
        *_annotated(fields, calls, site), *_defaults(node, fields, calls, site),
        *_decorated(node, site),
    ]  # fmt: skip
    if not edits:
        return
    said = (
        f"Python constructs `{node.name}` from 0.7 on: make it a dataclass, with annotated fields "
        "and a default where a call leaves one out"
    )
    edits += _imports(edits, site)
    yield site.finding("NKI6025", node, said, edits=edits)


def _calls(name: str, site: Site) -> list[ast.Call]:
    calls = [n for n in site.index.nodes if isinstance(n, ast.Call)]
    return [n for n in calls if isinstance(n.func, ast.Name) and n.func.id == name]


def becomes_dataclass(node: ast.ClassDef, site: Site) -> bool:
    """Whether NKI6025 makes a class a dataclass."""
    if _decorator(node) or not _fields(node) or not _is_constructed_from_fields(node, site):
        return False
    calls = _calls(node.name, site)
    return not calls or any(call.args or call.keywords for call in calls)


def _decorated(node: ast.ClassDef, site: Site) -> Iterator[Edit]:
    if becomes_dataclass(node, site):
        line, column, _, _ = site.index.source.span(node)
        pad = site.index.source.newline + site.index.source.indentation(line)
        yield Edit(line, column, line, column, f"@dataclass{pad}")


def _annotated(fields: list[_Field], calls: list[ast.Call], site: Site) -> Iterator[Edit]:
    """Annotations of fields that are given by name, or at places that this file does not show."""
    mixed = any(field.is_annotated for field in fields)
    for field in _plain_and_given(fields, calls, mixed):
        text = _default(field, site, ", kw_only=True" if mixed else "")
        yield site.replace(field.statement, f"{field.name}: object = {text}")


def _plain_and_given(fields: list[_Field], calls: list[ast.Call], mixed: bool) -> list[_Field]:
    plain = [field for field in fields if not field.is_annotated]
    if not calls or (not mixed and any(call.args for call in calls)):
        return plain
    keywords = {k.arg for call in calls for k in call.keywords}
    return [field for field in plain if field.name in keywords]


def _default(field: _Field, site: Site, option: str) -> str:
    assert field.default is not None
    text = site.source(field.default)
    if isinstance(field.default, _MUTABLE):
        return f"field(default_factory=lambda: {text}{option})"
    return f"field(default={text}{option})" if option else text


def _defaults(
    node: ast.ClassDef, fields: list[_Field], calls: list[ast.Call], site: Site
) -> Iterator[Edit]:
    """None for fields that a call leaves out, and for those behind a field with a default."""
    annotated = [field for field in fields if field.is_annotated]
    inherited = [field for base in _bases(node, site) for field in _fields(base)]
    is_behind = any(field.default is not None for field in inherited)
    for place, field in enumerate(annotated, len(inherited)):
        if field.default is not None:
            is_behind = True
        elif is_behind or _is_left_out(field.name, place, calls, _decorator(node) is None):
            is_behind = True
            yield site.insert_after(field.statement, " = None")


def _is_left_out(name: str, place: int, calls: list[ast.Call], without_calls: bool) -> bool:
    """Whether a call gives a field neither by place nor by name."""
    if not calls:
        return without_calls
    starred = [*(a for c in calls for a in c.args if isinstance(a, ast.Starred))]
    return not starred and any(
        len(call.args) <= place and not {name, None} & {k.arg for k in call.keywords}
        for call in calls
    )


def _imports(edits: list[Edit], site: Site) -> Iterator[Edit]:
    """An import of what the edits name, in front of the first import that may follow others."""
    bound = {n.asname or n.name for n in site.index.nodes if isinstance(n, ast.alias)}
    text = "".join(edit.text for edit in edits)
    wanted = [n for n, use in (("dataclass", "@dataclass"), ("field", "field(")) if use in text]
    missing = [name for name in wanted if name not in bound]
    body = site.index.source.tree.body
    imports = [s for s in body if isinstance(s, ast.Import | ast.ImportFrom)]
    first = next((s for s in imports if getattr(s, "module", "") != "__future__"), None)
    if missing and first is not None:
        new = f"from dataclasses import {', '.join(missing)}{site.index.source.newline}"
        yield site.insert_before(first, new)


HOOKS = {"NKI6025": Hooks(nodes=(ast.ClassDef,), check=_check_class)}
