"""`[tool.nki-migrate]` of a `pyproject.toml`: the nearest one wins, unknown keys are errors."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neuroncore.commands.suggestions import did_you_mean
from neuroncore.documents import parse_toml, read_utf8
from nki_migrate.rules import all_rules
from nki_migrate.rules.run_rules import RUN_RULES
from nki_migrate.settings.request import VERSIONS, ConfigError

NEWEST = VERSIONS[-1]


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of one configuration file; `values` holds only keys that were written.

    `root` is the folder that globs are relative to.
    """

    root: Path
    values: Mapping[str, Any] = field(default_factory=dict)
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    source: Path | None = None

    def get(self, key: str, default: Any) -> Any:
        """The value of a key, or `default` when the file does not mention it."""
        return self.values.get(key, default)


def _is_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _one_of(*choices: str) -> tuple[str, Any]:
    return "one of " + ", ".join(choices), lambda value: value in choices


_STRINGS = ("a list of strings", _is_strings)
_BOOLEAN = ("true or false", lambda value: isinstance(value, bool))

# key → (what is expected, whether a value is that)
_KEYS: dict[str, tuple[str, Any]] = {
    "from": _one_of("auto", *VERSIONS),
    "to": _one_of("auto", *VERSIONS[1:]),
    "select": _STRINGS,
    "extend-select": _STRINGS,
    "ignore": _STRINGS,
    "unsafe-fixes": _BOOLEAN,
    "nl": _one_of("keep", "lower"),
    "block-dims": _one_of("auto", "list", "fold"),
    "todo": _one_of("comment", "none"),
    "all-or-nothing": _BOOLEAN,
    "exclude": _STRINGS,
    "extend-exclude": _STRINGS,
    "gitignore": _BOOLEAN,
    "assume": _STRINGS,
}
_TABLE = "per-file-ignores"


def read_config(path: Path) -> Config:
    """The settings of a file named with `--config`: a `pyproject.toml`, or the bare keys.

    Raises ConfigError when it cannot be read, is not TOML, or holds something unknown.
    """
    document = _load(path)
    bare = path.name != "pyproject.toml" and "tool" not in document
    table = document if bare else _table_of(path, document)
    return _checked(path, table if table is not None else {})


def find_config(folder: Path) -> Config:
    """The settings of the nearest `pyproject.toml` above that has a `[tool.nki-migrate]`."""
    folder = folder.resolve()
    for parent in (folder, *folder.parents):
        path = parent / "pyproject.toml"
        if path.is_file() and (table := _table_of(path, _load(path))) is not None:
            return _checked(path, table)
    return Config(folder)


def _load(path: Path) -> dict[str, Any]:
    try:
        return parse_toml(read_utf8(path))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # also numbers of too many digits
        raise ConfigError(f"{path}: not TOML: {error}") from None


def _table_of(path: Path, document: Mapping[str, Any]) -> dict[str, Any] | None:
    found: Any = document
    for name in ("tool", "nki-migrate"):
        if name not in found:
            return None
        found = found[name]
        if not isinstance(found, dict):
            raise ConfigError(f"{path}: {name} is a table, got {found!r:.40}")
    return found


def _checked(path: Path, table: Mapping[str, Any]) -> Config:
    values = {key: value for key, value in table.items() if key != _TABLE}
    for key, value in values.items():
        _check_value(path, key, value)
    ignores = table.get(_TABLE, {})
    if not isinstance(ignores, dict) or not all(_is_strings(ids) for ids in ignores.values()):
        raise ConfigError(f'{path}: {_TABLE} is a table of lists: "tests/**" = ["NKI1116"]')
    for ids in (*ignores.values(), *(values.get(k, []) for k in ("select", "ignore"))):
        check_rule_ids(ids, f"{path}: ")
    frozen = {glob: tuple(ids) for glob, ids in ignores.items()}
    return Config(path.resolve().parent, values, frozen, path)


def _check_value(path: Path, key: str, value: object) -> None:
    if key not in _KEYS:
        near = did_you_mean(key, [*_KEYS, _TABLE])
        raise ConfigError(f"{path}: unknown key {key!r} in [tool.nki-migrate]{near}")
    expected, holds = _KEYS[key]
    if not holds(value):
        raise ConfigError(f"{path}: {key} = {value!r}: expected {expected}")


def check_rule_ids(ids: list[str] | tuple[str, ...], where: str = "") -> None:
    """Raises ConfigError for something that is neither a rule id nor the prefix of one."""
    known: list[str] = []
    for text in ids:
        if not re.fullmatch(r"NKI\d{0,4}", text):
            raise ConfigError(
                f"{where}{text!r} is not a rule id or a prefix of one (NKI1133, NKI11, NKI)"
            )
        known = known or _known_ids()
        if not any(name.startswith(text) for name in known):
            near = ", ".join(difflib.get_close_matches(text, known, n=3, cutoff=0.5))
            raise ConfigError(
                f"{where}{text!r} is neither a rule nor the beginning of one"
                f"{f'; near it: {near}' if near else ''}; `nki-migrate rules` lists them"
            )


def _known_ids() -> list[str]:
    return [*RUN_RULES, *all_rules()]


_PIN = re.compile(r"nki\s*(?:\[[^\]]*\])?\s*(?P<bounds>[=~><!,.*\s\w]*?)\s*(?:;.*)?$")
_BOUND = re.compile(r"(==|~=|>=|>)\s*(0\.[1-9])(?:\.\S*)?$")


def pinned_version(folder: Path) -> str:
    """The NKI version that the nearest `pyproject.toml` pins: the target of `--to auto`.

    `nki==0.4.*`, `nki~=0.4`, `nki>=0.4,<0.6` all mean 0.4, the oldest that has to work.
    Raises ConfigError without such a dependency, or with an unknown lower bound.
    """
    folder = folder.resolve()
    for parent in (folder, *folder.parents):
        path = parent / "pyproject.toml"
        if path.is_file():
            return _pin_in(path)
    raise ConfigError(
        f"--to auto: no pyproject.toml here or above; name a version, e.g. --to {NEWEST}"
    )


def _pin_in(path: Path) -> str:
    found = [match for text in _dependencies(_load(path)) if (match := _PIN.fullmatch(text))]
    bounds = [bound.strip() for match in found for bound in match["bounds"].split(",")]
    lower = {match[2] for bound in bounds if (match := _BOUND.fullmatch(bound))}
    if len(lower) != 1 or not lower <= set(VERSIONS[1:]):
        stated = ", ".join(match[0] for match in found) or "no dependency on nki"
        raise ConfigError(
            f"--to auto: {path}: expected one dependency like nki==0.4.* or nki>=0.4, "
            f"found {stated}; name a version, e.g. --to {NEWEST}"
        )
    return lower.pop()


def _dependencies(document: Mapping[str, Any]) -> list[str]:
    project = document.get("project", {})
    lists = [project.get("dependencies", [])]
    lists += project.get("optional-dependencies", {}).values()
    lists += document.get("dependency-groups", {}).values()
    return [text for entries in lists for text in entries if isinstance(text, str)]
