"""The checks by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from neuroncore.checks.capacity import Capacity
from neuroncore.checks.device import Device
from neuroncore.checks.memory import Memory
from neuroncore.checks.overlap import Overlap
from neuroncore.checks.race import Race
from neuroncore.checks.report import Report
from neuroncore.checks.subset.check import check_script
from neuroncore.errors import LaunchError
from neuroncore.findings import Finding
from neuroncore.machine.observe import Watcher, watched_by
from neuroncore.options import Options


@dataclass(frozen=True, slots=True)
class Check:
    """One check: what it proves of a run that it finds nothing in, and how it is made.

    `watcher` makes the observer of a run that fills a report. `source` reads a script instead,
    under an NKI version and options, before anything runs.
    """

    name: str
    proves: str
    watcher: Callable[[Report], Watcher] | None = None
    source: Callable[[Path, str, Options], list[Finding]] | None = None


def _subset(script: Path, nki: str, options: Options) -> list[Finding]:
    return check_script(script, nki, options=options)


CHECKS: dict[str, Check] = {
    check.name: check
    for check in (
        Check(
            "memory",
            "no instruction reads an element that nothing has written, or uses a tensor of a "
            "device loop's body after it",
            Memory,
        ),
        Check("capacity", "what is alive at any moment fits SBUF and the banks of PSUM", Capacity),
        Check(
            "overlap", "no tensor at an address is read after another has written over it", Overlap
        ),
        Check("race", "no two accesses to the same HBM bytes conflict without an order", Race),
        Check("device", "every instruction keeps to what a device accepts and defines", Device),
        Check("subset", "a version's compiler takes the kernels' source", source=_subset),
    )
}


def resolve_checks(names: Sequence[str]) -> list[Check]:
    """The checks called `names`, each once, in order. Raises LaunchError for an unknown name."""
    for name in names:
        if name not in CHECKS:
            near = get_close_matches(name, CHECKS, 1)
            raise LaunchError(
                f"unknown check {name!r}",
                expected=", ".join(CHECKS),
                got=repr(name),
                hint=f"did you mean {near[0]}?" if near else None,
            )
    return [CHECKS[name] for name in dict.fromkeys(names)]


@contextmanager
def watching(*names: str) -> Iterator[Report]:
    """Let the checks called `names` (all that watch runs, if none is given) watch every kernel that
    runs inside the block; gives the report that they fill.

    Raises LaunchError for an unknown name, and for a check of sources.
    """
    chosen = resolve_checks(names or [c.name for c in CHECKS.values() if c.watcher])
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
