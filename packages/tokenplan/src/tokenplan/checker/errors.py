"""Errors that stop a check: a file that is not a plan, or one too large to unroll."""

from __future__ import annotations


class PlanFileError(ValueError):
    """A plan file that is none; `place` is a path into it ("edges[3].distance")."""

    def __init__(self, place: str, wrong: str) -> None:
        super().__init__(f"{place}: {wrong}" if place else wrong)
        self.place = place
        self.wrong = wrong


class TooBigError(Exception):
    """More than the checker unrolls; the message says how much, the limit and what to do."""


class ExecutionError(Exception):
    """The function has an operation that is not supported here, or leaves its arrays."""


class TooManyOperationsError(ExecutionError):
    """The execution does not end within its limit."""
