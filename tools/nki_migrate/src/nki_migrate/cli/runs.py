"""Runs of kernels by the commands: child processes, their number, reuse of results."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from neuroncore.commands.terminal import StatusLine
from nki_migrate.settings.request import ConfigError
from nki_migrate.verify.process import Children, Limits, Progress

if TYPE_CHECKING:
    from nki_migrate.verify.store import Store

_LANGUAGES = ("nki_runtime", "nki_beta1", "nki_beta2")


@dataclass(frozen=True, slots=True)
class Runs:
    """The children of one command, and the results of earlier ones."""

    children: Children
    jobs: int
    store: Store
    progress: Progress


def require_languages() -> None:
    """Raises ConfigError where what runs kernels is not installed."""
    if missing := [name for name in _LANGUAGES if find_spec(name) is None]:
        raise ConfigError(
            f"running kernels needs {', '.join(missing)}: pip install 'nki-migrate[verify]'"
        )


@contextmanager
def runs_of(given: argparse.Namespace) -> Iterator[Runs]:
    """The runs that the options request; children and the line of progress end with the block."""
    from nki_migrate.verify.store import Store, default_folder

    if getattr(given, "verbose", False):
        from neuroncore.confinement.process import missing_confinement

        if missing := missing_confinement():
            sys.stderr.write(f"nki-migrate: note: {missing}\n")
    line = StatusLine()
    store = Store(default_folder(), reads=not given.no_cache)
    with Children(Limits(given.timeout, given.memory)) as children:
        try:
            yield Runs(children, given.jobs or os.cpu_count() or 1, store, line.show)
        finally:
            line.close()
