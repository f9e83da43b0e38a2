"""The public functions of one NKI version: names, parameters in order, defaults.

Read from the JSON form `nki-api/1` that `draft-rules` writes, from a table of several versions as
`tests/coverage/nki_names.json`, from Python stubs (a file or a folder of packages), or from the
pages that Sphinx generates (a file or a folder of `.html`).
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuroncore.documents import parse_json
from nki_migrate.settings.request import ConfigError

SCHEMA = "nki-api/1"


class ApiError(ConfigError):
    """A description that cannot be read, or that contradicts itself; the text says where."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter. `kind`: "" plain, "*" and "**" for open ends."""

    name: str
    default: str | None = None
    keyword_only: bool = False
    kind: str = ""

    def __str__(self) -> str:
        return self.kind + self.name + (f"={self.default}" if self.default is not None else "")


@dataclass(frozen=True, slots=True)
class Entry:
    """One public name: "function", "method", "class", …; `parameters` belong to a function."""

    name: str
    kind: str
    parameters: tuple[Parameter, ...] = ()

    @property
    def is_function(self) -> bool:
        return self.kind in ("function", "method")

    @property
    def plain(self) -> dict[str, Parameter]:
        """The parameters that have names for callers, in order."""
        return {p.name: p for p in self.parameters if not p.kind}

    @property
    def text(self) -> str:
        """The parameters as a signature has them."""
        return written(self.parameters)


@dataclass(frozen=True, slots=True)
class Api:
    """All entries of a version by their dotted names ("nki.isa.topk")."""

    version: str
    entries: Mapping[str, Entry]
    source: str = ""

    @property
    def functions(self) -> dict[str, Entry]:
        """Functions and methods."""
        return {name: entry for name, entry in self.entries.items() if entry.is_function}


def written(parameters: Iterable[Parameter]) -> str:
    """Parameters as a signature has them, with the separator of keyword-only ones."""
    shown: list[str] = []
    for parameter in parameters:
        is_first = parameter.keyword_only and not any(s.startswith("*") for s in shown)
        shown += ["*"] * is_first + [str(parameter)]
    return ", ".join(shown)


def parse_parameters(text: str, where: str) -> tuple[Parameter, ...]:
    """The parameters of "dst, src, *, name=None".

    Raises ApiError for text that is not a list of parameters, and for a parameter that is there
    twice.
    """
    try:
        (function,) = ast.parse(f"def f({text}): ...").body
    except (SyntaxError, ValueError) as error:
        raise ApiError(
            f"{where}: cannot read the parameters ({text}): {getattr(error, 'msg', error)}"
        ) from None
    if not isinstance(function, ast.FunctionDef) or ast.unparse(function.body[-1]) != "...":
        raise ApiError(f"{where}: cannot read the parameters ({text})")
    found = parameters_of(function.args)
    names = [p.name for p in found]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise ApiError(f"{where}: parameter {twice[0]} is there twice")
    return found


def parameters_of(given: ast.arguments) -> tuple[Parameter, ...]:
    """The parameters of a definition."""
    plain = [*given.posonlyargs, *given.args]
    without = len(plain) - len(given.defaults)
    defaults = [None] * without + [ast.unparse(d) for d in given.defaults]
    found = [Parameter(a.arg, d) for a, d in zip(plain, defaults, strict=True)]
    found += [Parameter(given.vararg.arg, kind="*")] if given.vararg else []
    for argument, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        text = None if default is None else ast.unparse(default)
        found.append(Parameter(argument.arg, text, keyword_only=True))
    found += [Parameter(given.kwarg.arg, kind="**")] if given.kwarg else []
    return tuple(found)


def collected(version: str, entries: Iterable[Entry], source: str) -> Api:
    """The entries of a source as one description.

    Raises ApiError for a name that has two meanings in it.
    """
    found: dict[str, Entry] = {}
    for entry in entries:
        other = found.setdefault(entry.name, entry)
        if other != entry:
            said = f"({other.text}) and ({entry.text})" if entry.is_function else "two kinds"
            raise ApiError(f"{source}: {entry.name} is there twice, as {said}")
    api = Api(version, found, source)
    if not api.functions:
        raise ApiError(f"{source}: it describes no function")
    return api


# -- JSON ------------------------------------------------------------------------------------------


def read_json(path: Path, text: str, version: str | None) -> Api:
    """A description in JSON: of one version, or a table of several of which one is named."""
    try:
        document = parse_json(text, lambda pairs: _unique(path, pairs))
    except ValueError as error:
        raise ApiError(f"{path}: not JSON: {error}") from None
    names = document.get("names") if isinstance(document, dict) else None
    if not isinstance(names, dict):
        raise ApiError(f'{path}: the table "names" is missing')
    if document.get("schema") == SCHEMA:
        own = document.get("version")
        if version not in (None, own):
            raise ApiError(f"{path}: it describes NKI {own}, not {version}")
        return collected(str(own), _one_version(path, names), str(path))
    if version is None:
        raise ApiError(f"{path}: it describes several versions; name one: {path}@0.6")
    return collected(version, _of_table(path, names, version), str(path))


def _unique(path: Path, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise ApiError(f"{path}: {twice[0]} is there twice")
    return dict(pairs)


def _one_version(path: Path, names: Mapping[str, Any]) -> Iterable[Entry]:
    for name, entry in _rows(path, names):
        yield _entry(path, name, entry.get("kind"), entry.get("parameters", ""))


def _of_table(path: Path, names: Mapping[str, Any], version: str) -> Iterable[Entry]:
    for name, entry in _rows(path, names):
        for span, text in _spans(path, name, entry.get("versions")):
            first, _, last = span.partition("-")
            if _number(path, first) <= _number(path, version) <= _number(path, last or first):
                yield _entry(path, name, entry.get("kind"), text)


def _rows(path: Path, names: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Dotted names with their tables."""
    for module, entries in names.items():
        for name, entry in _table(path, module, entries).items():
            yield f"{module}.{name}", _table(path, f"{module}.{name}", entry)


def _table(path: Path, name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ApiError(f"{path}: {name} must be a table, got {value!r}"[:200])
    return value


def _spans(path: Path, name: str, value: Any) -> list[tuple[str, str]]:
    pairs = value if isinstance(value, list) else [value]
    for pair in pairs:
        is_pair = isinstance(pair, list) and [type(text) for text in pair] == [str, str]
        if not is_pair:
            raise ApiError(f"{path}: {name}: versions are pairs of a span and a text, got {pair!r}")
    return [(span, text) for span, text in pairs]


def _entry(path: Path, name: str, kind: Any, text: Any) -> Entry:
    if not isinstance(kind, str) or not isinstance(text, str):
        raise ApiError(f"{path}: {name}: kind and parameters are strings")
    is_function = kind in ("function", "method")
    return Entry(name, kind, parse_parameters(text, f"{path}: {name}") if is_function else ())


def _number(path: Path | str, version: str) -> tuple[int, ...]:
    try:
        major, minor = version.split(".")
        return int(major), int(minor)
    except ValueError:
        raise ApiError(f"{path}: {version!r} is not a version such as 0.7") from None


def version_number(version: str) -> tuple[int, ...]:
    """ "0.7" → (0, 7). Raises ApiError for other text."""
    return _number("draft-rules", version)


def as_json(api: Api) -> str:
    """The description of one version, to be read again."""
    names: dict[str, dict[str, Any]] = {}
    for entry in api.entries.values():
        module, name = split_name(entry)
        described: dict[str, Any] = {"kind": entry.kind}
        if entry.is_function:
            described["parameters"] = entry.text
        names.setdefault(module, {})[name] = described
    document = {"schema": SCHEMA, "version": api.version, "source": api.source, "names": names}
    return json.dumps(document, indent=1) + "\n"


def split_name(entry: Entry) -> tuple[str, str]:
    """The module and the name of an entry; a method's name has its class before it."""
    owner, _, name = entry.name.rpartition(".")
    if entry.kind == "method":
        owner, _, cls = owner.rpartition(".")
        return owner, f"{cls}.{name}"
    return owner, name
