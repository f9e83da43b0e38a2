"""Legality, capacity, roofline bound and estimated latency of kernel programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

from neuroncore.errors import CapacityError
from neuroncore.program import Finding, Program, print_program
from neuroncore.timeline import latency_ns
from nkigym.analysis.legality import Verifier
from nkigym.analysis.roofline import Rooflines


class CostModel:
    """Judges programs of one target and NKI version, `as_written`: in the order of the kernel."""

    def __init__(self, target: str, nki: str) -> None:
        self.rooflines = Rooflines(target, nki)
        self._verifier = Verifier(target, nki)
        self._judged: tuple[Program, Sequence[Finding]] | None = None

    def illegal(self, program: Program) -> str | None:
        """The first rule that it breaks, capacity aside."""
        return _first(f for f in self._findings(program) if not _is_capacity(f))

    def over_capacity(self, program: Program) -> str | None:
        """The first memory that is too small."""
        return _first(f for f in self._findings(program) if _is_capacity(f))

    def _findings(self, program: Program) -> Sequence[Finding]:
        """Structure, limits, capacity. That everything is written before it is read is proved by
        steps; a winner is verified once more.
        """
        if self._judged is None or self._judged[0] is not program:
            self._judged = program, self._verifier.findings(program)
        return self._judged[1]

    def bound_ns(self, program: Program) -> float:
        """The longest that a resource is needed."""
        return self.rooflines.bound_ns(program)

    def latency_ns(self, program: Program) -> float:
        """The timeline's total. Raises ProgramError where an instruction's cost is unknown."""
        return latency_ns(program, verified=True)


def digest(program: Program) -> str:
    """The digest of the text: equal for programs that print alike, also from different sources."""
    return sha256(print_program(program).encode()).hexdigest()


def _is_capacity(finding: Finding) -> bool:
    return issubclass(finding.violation.error, CapacityError)


def _first(findings: Iterable[Finding]) -> str | None:
    """Its kind, and the rule where one is named: few of them, so that they can be counted."""
    for finding in findings:
        kind = finding.violation.error.__name__.removesuffix("Error")
        where = f" in {finding.instruction}" if finding.instruction else ""
        rule = f" [{finding.violation.rule}]" if finding.violation.rule else ""
        return f"{kind}{where}{rule}"
    return None
