"""Options and configuration files together: what holds for one file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from nki_migrate.cli.config import (
    NEWEST,
    Config,
    ConfigError,
    check_rule_ids,
    find_config,
    pinned_version,
    read_config,
)
from nki_migrate.files.discovery import DEFAULT_EXCLUDES, Exclusion
from nki_migrate.files.ignore_patterns import IgnoreRules, is_ignored
from nki_migrate.settings.request import (
    VERSIONS,
    Assumption,
    Request,
    parse_assumptions,
    read_assumptions,
)


def split_ids(values: Sequence[str] | None) -> tuple[str, ...] | None:
    """Rule ids from a repeatable comma list; None when the option was not given."""
    if not values:
        return None
    ids = tuple(part.strip() for value in values for part in value.split(",") if part.strip())
    check_rule_ids(ids)
    return ids


@dataclass(frozen=True, slots=True)
class Chosen:
    """Options of the command line; None for absent ones, which a configuration file may set."""

    source: str | None = None
    target: str | None = None
    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    unsafe_fixes: bool | None = None
    nl: str | None = None
    block_dims: str | None = None
    todo: str | None = None
    all_or_nothing: bool | None = None
    step: bool = False
    assume: tuple[Assumption, ...] = ()
    exclude: tuple[str, ...] | None = None
    extend_exclude: tuple[str, ...] = ()
    gitignore: bool = True
    config: Config | None = None  # --config or --isolated: the only one

    def config_for(self, folder: Path) -> Config:
        """The configuration that holds in a folder."""
        return self.config if self.config is not None else _nearest(folder.resolve())

    def exclusion_for(self, folder: Path) -> Exclusion:
        """The exclusions of a search below a folder."""
        config = self.config_for(folder)
        globs = self.exclude or tuple(config.get("exclude", DEFAULT_EXCLUDES))
        extra = (*config.get("extend-exclude", ()), *self.extend_exclude)
        root = Path.cwd() if config.source is None or self.exclude else config.root
        return Exclusion(root, (*globs, *extra), self.gitignore and config.get("gitignore", True))

    def request_for(self, file: Path) -> Request:
        """The request for one file."""
        config = self.config_for(file.parent)
        ignored = (*(config.get("ignore", ())), *(self.ignore or ()))
        pick = _Picker(config)
        source = known_version("--from", pick(self.source, "from", "auto"))
        return Request(
            source_version=source,
            target=_not_older(self._target(config, file), source),
            select=self.select or tuple(config.get("select", ())),
            extend_select=(*config.get("extend-select", ()), *(self.extend_select or ())),
            ignore=(*ignored, *_ignored_for(file, config)),
            unsafe_fixes=pick(self.unsafe_fixes, "unsafe-fixes", False),
            nl=pick(self.nl, "nl", "lower"),
            block_dims=pick(self.block_dims, "block-dims", "auto"),
            assumptions=(*parse_assumptions(config.get("assume", ())), *self.assume),
            todo=pick(self.todo, "todo", "comment"),
            all_or_nothing=pick(self.all_or_nothing, "all-or-nothing", False),
            step=self.step,
        )

    def _target(self, config: Config, file: Path) -> str:
        target = self.target or config.get("to", NEWEST)
        if target == "auto":
            return pinned_version(file.parent)
        return known_version("--to", target, VERSIONS[1:])


@dataclass(frozen=True, slots=True)
class _Picker:
    config: Config

    def __call__(self, chosen: Any, key: str, default: Any) -> Any:
        return self.config.get(key, default) if chosen is None else chosen


@cache
def _nearest(folder: Path) -> Config:
    return find_config(folder)


def _not_older(target: str, source: str) -> str:
    """The target; raises ConfigError where it is older than the source."""
    if source != "auto" and VERSIONS.index(target) < VERSIONS.index(source):
        raise ConfigError(f"--to {target} is older than --from {source}: nothing migrates back")
    return target


def known_version(option: str, value: str, known: Iterable[str] = ("auto", *VERSIONS)) -> str:
    """The value; raises ConfigError for an unknown version."""
    known = tuple(known)
    if value not in known:
        raise ConfigError(f"{option} {value}: not a known version; expected {', '.join(known)}")
    return value


def only_config(path: Path | None, isolated: bool) -> Config | None:
    """The configuration that `--config` or `--isolated` puts in place of all others."""
    if path is not None and isolated:
        raise ConfigError("--config and --isolated exclude each other")
    if isolated:
        return Config(Path.cwd())
    return read_config(path) if path is not None else None


def assumptions_from(texts: Sequence[str] | None, file: Path | None) -> tuple[Assumption, ...]:
    """The assumptions of `--assume` and `--assume-file`."""
    return (*parse_assumptions(texts or ()), *(read_assumptions(file) if file else ()))


def _ignored_for(file: Path, config: Config) -> tuple[str, ...]:
    """The ids that `per-file-ignores` silences for a file."""
    path = file.resolve()
    return tuple(
        rule_id
        for glob, ids in config.per_file_ignores.items()
        if is_ignored(path, False, [IgnoreRules.of(config.root, [glob])])
        for rule_id in ids
    )
