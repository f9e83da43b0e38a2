"""A search writes down what it finds, a few results at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from nkigym.store.errors import StoreError
from nkigym.store.store import Problem, Result, Store

AT_ONCE = 32
"""Results of one transaction: what a killed process may lose."""


@dataclass(slots=True)
class Recorder:
    """Adds results to a store. Where that fails, the search goes on without it; `trouble` says so.

    Ctrl-C between two results loses none of them, for `flush` comes at the end.
    """

    store: Store
    problem: Problem
    trouble: StoreError | None = None
    _waiting: list[Result] = field(default_factory=list)

    def add(self, result: Result) -> None:
        """Sooner or later."""
        self._waiting.append(result)
        if len(self._waiting) >= AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Everything that waits, now."""
        waiting, self._waiting = self._waiting, []
        self._keep(lambda: self.store.add(self.problem, waiting))

    def close(self, report: dict) -> None:
        """The end of a search."""
        self.flush()
        self._keep(lambda: self.store.add_run(self.problem, report))

    def _keep(self, write: Callable[[], None]) -> None:
        if self.trouble is not None:
            return
        try:
            write()
        except StoreError as trouble:
            self.trouble = trouble
