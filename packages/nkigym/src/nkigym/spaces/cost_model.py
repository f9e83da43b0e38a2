"""Legality, capacity, roofline bound and estimated latency of the kernels of a search space."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Generic

from neuroncore.errors import CapacityError
from neuroncore.program import Finding, Program
from neuroncore.timeline import latency_ns as timeline_ns
from nkigym.analysis.legality import Verifier
from nkigym.analysis.roofline import Rooflines
from nkigym.search.protocol import State


class KernelCosts(ABC, Generic[State]):
    """The part of a search space that judges the kernel of a state, of one target and NKI version,
    `as_written`: in the order of the kernel.
    """

    def __init__(self, target: str, nki: str) -> None:
        self.rooflines = Rooflines(target, nki)
        self._verifier = Verifier(target, nki)
        self._judged: tuple[Program, Sequence[Finding]] | None = None

    @abstractmethod
    def kernel(self, state: State) -> Program:
        """The kernel program of a state."""

    def illegal(self, state: State) -> str | None:
        """The first rule that it breaks, capacity aside."""
        return _first(f for f in self._findings(state) if not _is_capacity(f))

    def over_capacity(self, state: State) -> str | None:
        """The first memory that is too small."""
        return _first(f for f in self._findings(state) if _is_capacity(f))

    def _findings(self, state: State) -> Sequence[Finding]:
        """Structure, limits, capacity. That everything is written before it is read is proved by
        steps; a winner is verified once more.
        """
        program = self.kernel(state)
        if self._judged is None or self._judged[0] is not program:
            self._judged = program, self._verifier.findings(program)
        return self._judged[1]

    def bound_ns(self, state: State) -> float:
        """The longest that a resource is needed."""
        return self.rooflines.bound_ns(self.kernel(state))

    def latency_ns(self, state: State) -> float:
        """The timeline's total. Raises ProgramError where an instruction's cost is unknown."""
        return timeline_ns(self.kernel(state), verified=True)


def _is_capacity(finding: Finding) -> bool:
    return finding.rule == CapacityError.__name__


def _first(findings: Iterable[Finding]) -> str | None:
    """Its kind, and the rule where one is named: few of them, so that they can be counted."""
    for finding in findings:
        kind = finding.rule.removesuffix("Error")
        where = f" in {finding.instruction}" if finding.instruction else ""
        rule = f" [{finding.source}]" if finding.source else ""
        return f"{kind}{where}{rule}"
    return None
