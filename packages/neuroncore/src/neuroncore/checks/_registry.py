"""The checks by name, and a block or a call under some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from neuroncore.checks._check import Check
from neuroncore.checks.report import Report
from neuroncore.errors import LaunchError
from neuroncore.machine.observe import watched_by


def _find() -> dict[str, Check]:
    """The `CHECK` of every module of this folder that has one, by name, in alphabetical order."""
    names = (m.name for m in iter_modules([str(Path(__file__).parent)]))
    modules = [import_module(f"{__package__}.{n}") for n in names if not n.startswith("_")]
    found: list[Check] = [module.CHECK for module in modules if hasattr(module, "CHECK")]
    return {check.name: check for check in sorted(found, key=lambda check: check.name)}


CHECKS: dict[str, Check] = _find()


ALL = "all"


def resolve_checks(names: Sequence[str]) -> list[Check]:
    """The checks called `names`, each once, in order; "all" names every one.

    Raises LaunchError for an unknown name.
    """
    if ALL in names:
        return list(CHECKS.values())
    for name in names:
        if name not in CHECKS:
            near = get_close_matches(name, CHECKS, 1)
            raise LaunchError(
                f"unknown check {name!r}",
                expected=", ".join((*CHECKS, ALL)),
                got=repr(name),
                hint=f"did you mean {near[0]}?" if near else None,
            )
    return [CHECKS[name] for name in dict.fromkeys(names)]


@contextmanager
def watching(*names: str) -> Iterator[Report]:
    """Let the checks called `names` (all that watch runs, if none is given, or "all") watch every
    kernel that runs inside the block; gives the report that they fill.

    Raises LaunchError for an unknown name, and for a check of sources.
    """
    is_every = not names or ALL in names
    chosen = [c for c in CHECKS.values() if c.watcher] if is_every else resolve_checks(names)
    for check in chosen:
        if check.watcher is None:
            raise LaunchError(
                f"{check.name} reads a script and does not watch runs",
                expected=", ".join(c.name for c in CHECKS.values() if c.watcher),
                hint=f"nki-run --check {check.name} SCRIPT",
            )
    report = Report()
    with watched_by(*(check.watcher(report) for check in chosen if check.watcher)):
        yield report


def check(run: Callable[[], Any], *names: str) -> Report:
    """Call `run`, which runs kernels, under `watching(*names)`; gives the report."""
    with watching(*names) as report:
        run()
    return report
