"""`cases.toml` (schema `nki-cases/1`): the shapes, fills and reference that a kernel is run with.

An unknown key is an error: a misspelt `rtol` must not become a silent default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any, Literal

from neuroncore.commands.parser import MOST_ELEMENTS
from neuroncore.commands.suggestions import did_you_mean
from neuroncore.documents import parse_toml, read_utf8

SCHEMA = "nki-cases/1"
FILLS = (
    *("normal", "uniform", "integers", "zeros", "ones", "iota", "empty"),
    *("ties", "extremes", "nan", "large_integers"),
)
ROLES = ("input", "output", "inout")

Role = Literal["input", "output", "inout"]


class CasesError(Exception):
    """A cases file that cannot be used; the text says where and why."""


@dataclass(frozen=True, slots=True)
class Arg:
    """One argument of a kernel: an array described by dtype, shape and fill, or a plain value."""

    name: str
    role: Role = "input"
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    fill: str | None = None
    low: float | None = None
    high: float | None = None
    scale: float = 1.0
    value: Any = None

    @property
    def is_array(self) -> bool:
        """Whether the argument is an array and not a plain value."""
        return self.shape is not None


@dataclass(frozen=True, slots=True)
class Case:
    """One kernel, one reference, one list of arguments, and the other shapes to try.

    `grid` is the launch of a 0.1 kernel, `lnc` that of a later one. `options` are fields of
    `neuroncore.options.Options` for the kernel's runs. Tolerances are None when the file names none
    (see `nki_migrate.verify.compare`).
    """

    folder: Path
    file: str
    kernel: str
    args: tuple[Arg, ...]
    reference: tuple[Path, str] | None = None
    grid: tuple[int, ...] | None = None
    lnc: int | None = None
    seed: int = 0
    rtol: float | None = None
    atol: float | None = None
    ulps: float | None = None
    more: tuple[Mapping[str, Any], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """The kernel's file, as the cases file names it."""
        return self.folder / self.file

    def variants(self) -> tuple[tuple[Arg, ...], ...]:
        """The argument lists to run: the case itself, then every `[[case.more]]`."""
        return (self.args, *(tuple(_changed(a, other) for a in self.args) for other in self.more))


def _changed(arg: Arg, other: Mapping[str, Any]) -> Arg:
    if arg.name not in other:
        return arg
    value = other[arg.name]
    return replace(arg, shape=tuple(value)) if arg.is_array else replace(arg, value=value)


def read_cases(path: Path) -> tuple[Case, ...]:
    """All cases of a file.

    Raises CasesError when it cannot be read, is of another schema, or holds an unknown key.
    """
    try:
        document = parse_toml(read_utf8(path))
    except OSError as error:
        raise CasesError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # also numbers of too many digits
        raise CasesError(f"{path}: not TOML: {error}") from None
    return cases_of(document, path)


def cases_of(document: Mapping[str, Any], path: Path) -> tuple[Case, ...]:
    """All cases of a document that was read already; `path` is where it lies or is said to lie.

    Raises CasesError when it is of another schema or holds an unknown key.
    """
    if document.get("schema") != SCHEMA:
        raise CasesError(f'{path}: expected schema = "{SCHEMA}", got {document.get("schema")!r}')
    _known(document, ("schema", "case"), str(path))
    tables = document.get("case", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise CasesError(f"{path}: case is not a list of tables: write [[case]] before each")
    return tuple(_case(path, number, table) for number, table in enumerate(tables, 1))


_CASE_KEYS = (
    *("file", "kernel", "reference", "grid", "lnc", "seed", "rtol", "atol", "ulps"),
    *("arg", "more", "options"),
)
_ARG_KEYS = ("name", "role", "dtype", "shape", "fill", "low", "high", "scale", "value")


def _known(table: Mapping[str, Any], keys: Sequence[str], where: str) -> None:
    for key in table:
        if key not in keys:
            raise CasesError(f"{where}: unknown key {key!r}{did_you_mean(key, list(keys))}")


def _need(table: Mapping[str, Any], key: str, kind: type, where: str) -> Any:
    value = table.get(key)
    if not isinstance(value, kind):
        raise CasesError(f"{where}: {key} must be a {_WORDS[kind]}, got {value!r}")
    return value


_WORDS = {str: "string", list: "list", int: "whole number", float: "number"}


def _case(path: Path, number: int, table: Mapping[str, Any]) -> Case:
    where = f"{path}: case {number}"
    _known(table, _CASE_KEYS, where)
    kernel = _need(table, "kernel", str, where)
    where = f"{where} ({kernel})"
    args = tuple(_arg(where, entry) for entry in table.get("arg", []))
    if len({arg.name for arg in args}) != len(args):
        raise CasesError(f"{where}: two arguments share a name")
    return Case(
        folder=path.parent,
        file=_need(table, "file", str, where),
        kernel=kernel,
        args=args,
        reference=_reference(path, table.get("reference"), where),
        grid=_sizes(table.get("grid"), f"{where}: grid"),
        lnc=_optional(table, "lnc", (int,), where),
        seed=_seed(table, where),
        rtol=_optional(table, "rtol", (int, float), where),
        atol=_optional(table, "atol", (int, float), where),
        ulps=_optional(table, "ulps", (int, float), where),
        more=tuple(_more(where, args, entry) for entry in table.get("more", [])),
        options=_options(where, table.get("options", {})),
    )


def _options(where: str, table: Any) -> Mapping[str, Any]:
    """`[case.options]`, each a field of Options with a value that it takes."""
    if not isinstance(table, dict):
        raise CasesError(f"{where}: options must be a table, got {table!r}")
    if table:  # NumPy: only what names options needs it
        from neuroncore.errors import LaunchError
        from neuroncore.options import Options, make_options

        try:
            make_options(Options(), table)
        except LaunchError as wrong:
            raise CasesError(f"{where}: {wrong}") from None
    return table


def _optional(table: Mapping[str, Any], key: str, kinds: tuple[type, ...], where: str) -> Any:
    value = table.get(key)
    if value is None or (isinstance(value, kinds) and not isinstance(value, bool)):
        return value
    raise CasesError(f"{where}: {key} must be a {_WORDS[kinds[-1]]}, got {value!r}")


def _seed(table: Mapping[str, Any], where: str) -> int:
    seed = _optional(table, "seed", (int,), where) or 0
    if seed < 0:
        raise CasesError(f"{where}: seed must be 0 or more, got {seed}")
    return seed


def _sizes(value: Any, where: str) -> tuple[int, ...] | None:
    if value is None:
        return None
    if isinstance(value, list) and all(type(size) is int and size >= 0 for size in value):
        if prod(value) > MOST_ELEMENTS:
            raise CasesError(f"{where}: nothing is that large, got {value!r}")
        return tuple(value)
    raise CasesError(f"{where} must be a list of whole numbers, got {value!r}")


def _reference(path: Path, value: Any, where: str) -> tuple[Path, str] | None:
    if value is None:
        return None
    file, colon, name = str(value).rpartition(":")
    if not (colon and file and name.isidentifier()):
        raise CasesError(f'{where}: reference must be "FILE.py:function", got {value!r}')
    return path.parent / file, name


def _arg(where: str, table: Mapping[str, Any]) -> Arg:
    name = _need(table, "name", str, where)
    where = f"{where}: argument {name}"
    _known(table, _ARG_KEYS, where)
    if "value" in table:
        if len(table) > 2:
            raise CasesError(f"{where}: value stands alone; dtype, shape, fill belong to arrays")
        return Arg(name, value=table["value"])
    shape = _sizes(table.get("shape"), f"{where}: shape")
    if shape is None:
        raise CasesError(f"{where}: give dtype and shape, or value")
    return Arg(
        name,
        _choice(table, "role", ROLES, where) or "input",
        _need(table, "dtype", str, where),
        shape,
        _choice(table, "fill", FILLS, where),
        _optional(table, "low", (int, float), where),
        _optional(table, "high", (int, float), where),
        1.0 if table.get("scale") is None else _optional(table, "scale", (int, float), where),
    )


def _choice(table: Mapping[str, Any], key: str, choices: Sequence[str], where: str) -> Any:
    value = table.get(key)
    if value is None or value in choices:
        return value
    raise CasesError(f"{where}: {key} must be one of {', '.join(choices)}, got {value!r}")


def _more(where: str, args: Iterable[Arg], table: Mapping[str, Any]) -> Mapping[str, Any]:
    arrays = {arg.name: arg.is_array for arg in args}
    _known(table, list(arrays), f"{where}: more")
    for name, value in table.items():
        if arrays[name]:
            _sizes(value, f"{where}: more: {name}")
    return dict(table)


def cases_for(cases: Iterable[Case], file: Path) -> tuple[Case, ...]:
    """The cases that speak about a file: by its path, else (cases from elsewhere) by its name."""
    cases = tuple(cases)
    resolved = file.resolve()
    exact = tuple(case for case in cases if case.path.resolve() == resolved)
    return exact or tuple(case for case in cases if Path(case.file).name == file.name)
