"""Reads API descriptions from files: JSON, Python stubs, generated pages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path

from neuroncore.documents import read_utf8, unreadable
from nki_migrate.drafting.api import (
    Api,
    ApiError,
    Entry,
    collected,
    parameters_of,
    parse_parameters,
    read_json,
    version_number,
)

_ELIDED = re.compile(r"<(\w+(?:\.\w+)*)(?::[^<>]*)?>")


def read_api(given: str) -> Api:
    """The description that `PATH` or `PATH@VERSION` names; `draft-rules` describes the forms.

    Raises ApiError where it cannot be read or contradicts itself.
    """
    name, at, version = given.rpartition("@")
    path, named = (Path(name), version) if at else (Path(given), None)
    if named is not None:
        version_number(named)
    if not path.exists():
        raise ApiError(f"{path}: no such file or folder")
    if path.suffix == ".json":
        return read_json(path, _text(path), named)
    if named is None:
        raise ApiError(f"{path}: it names no version; write {path}@0.7")
    return collected(named, list(_entries(path)), str(path))


def _text(path: Path) -> str:
    try:
        return read_utf8(path)
    except (OSError, ValueError) as error:
        raise ApiError(f"{path}: cannot be read: {unreadable(error)}") from None


def _entries(path: Path) -> Iterable[Entry]:
    files = sorted(f for f in path.rglob("*") if f.is_file()) if path.is_dir() else [path]
    stubs = [f for f in files if f.suffix in (".py", ".pyi")]
    pages = [f for f in files if f.suffix in (".html", ".htm")]
    if not stubs and not pages:
        raise ApiError(f"{path}: neither JSON, Python stubs (.py, .pyi) nor pages (.html)")
    for file in stubs:
        yield from _of_stub(file, _module(path, file))
    for file in pages:
        yield from _of_page(file)


# -- Python stubs ----------------------------------------------------------------------------------


def _module(root: Path, file: Path) -> str:
    """The module that a stub describes: the path from the folder called nki on."""
    parts = [*file.resolve().parts[:-1], file.stem]
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    if "nki" not in parts:
        raise ApiError(f"{file}: no folder on its path is called nki: its module has no name")
    last = max(i for i, part in enumerate(parts) if part == "nki")
    return ".".join(parts[last:])


def _of_stub(file: Path, module: str) -> Iterable[Entry]:
    try:
        tree = ast.parse(_text(file))
    except SyntaxError as error:
        raise ApiError(f"{file}:{error.lineno or 1}: not Python: {error.msg}") from None
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and _is_public(node.name):
            yield _function(file, f"{module}.{node.name}", "function", node)
        elif isinstance(node, ast.ClassDef) and _is_public(node.name):
            yield from _of_class(file, f"{module}.{node.name}", node)


def _function(file: Path, name: str, kind: str, node: ast.FunctionDef) -> Entry:
    parameters = parameters_of(node.args)
    shown = ", ".join(str(p) for p in parameters)
    names = [p.name for p in parameters]
    if len(set(names)) < len(names):
        raise ApiError(f"{file}:{node.lineno}: {name}({shown}): a parameter is there twice")
    return Entry(name, kind, parameters)


def _of_class(file: Path, name: str, node: ast.ClassDef) -> Iterable[Entry]:
    bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
    yield Entry(name, "enum" if bases & {"Enum", "IntEnum"} else "class")
    for inner in node.body:
        if not isinstance(inner, ast.FunctionDef) or not _is_method(inner.name):
            continue
        decorators = {ast.unparse(d) for d in inner.decorator_list}
        if "property" in decorators:
            yield Entry(f"{name}.{inner.name}", "attribute")
            continue
        method = _function(file, f"{name}.{inner.name}", "method", inner)
        bound = method.parameters if "staticmethod" in decorators else method.parameters[1:]
        yield Entry(method.name, "method", bound)


def _is_method(name: str) -> bool:
    return _is_public(name) or (name.startswith("__") and name.endswith("__"))


def _is_public(name: str) -> bool:
    return not name.startswith("_")


# -- pages -----------------------------------------------------------------------------------------


class _Signatures(HTMLParser):
    """The text of each `<dt id="nki.isa.topk">` of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        name = dict(attrs).get("id") or ""
        if tag == "dt" and name.startswith("nki."):
            self.found.append((name, ""))
            self._inside = True

    def handle_endtag(self, tag: str) -> None:
        if tag == "dt":
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            name, text = self.found[-1]
            self.found[-1] = name, text + data


def _of_page(file: Path) -> Iterable[Entry]:
    parser = _Signatures()
    parser.feed(_text(file))
    for name, text in parser.found:
        compact = " ".join(text.split())
        if compact.startswith("class "):
            yield Entry(name, "class")
        elif "(" in compact:
            inside = _inside(file, name, compact)
            owner = name.rpartition(".")[0].rpartition(".")[2]
            kind = "method" if owner[:1].isupper() else "function"
            yield Entry(name, kind, parse_parameters(inside, f"{file}: {name}"))


def _inside(file: Path, name: str, text: str) -> str:
    """The text between the first bracket and its partner; enum members by their names."""
    depth, start = 0, text.index("(")
    for place in range(start, len(text)):
        depth += (text[place] in "([{") - (text[place] in ")]}")
        if depth == 0:
            return _ELIDED.sub(r"\1", text[start + 1 : place])
    raise ApiError(f"{file}: {name}: the signature has no end: {text[:60]}")
