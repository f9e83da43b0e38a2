"""What a verifier finds: violations with the statement that they belong to."""

from __future__ import annotations

from dataclasses import dataclass

from neuroncore.errors import KernelError, LaunchError, ProgramError, Violation
from neuroncore.program.ir.nodes import Call, Statement
from neuroncore.program.ir.program import Program
from neuroncore.source_location import Place


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule: what is wrong, in which instruction, and the line it came from."""

    violation: Violation
    origin: Place | None = None
    instruction: str | None = None

    def as_error(self) -> KernelError:
        """The finding as the error that running the program would raise."""
        v = self.violation
        error = v.error(
            v.what, expected=v.expected, got=v.got, hint=v.hint, rule=v.rule, operand=v.operand,
            instruction=self.instruction, place=self.origin,
        )  # fmt: skip
        error.place = self.origin  # without one: nowhere, not where it was asked for
        return error


def need_program(given: object) -> None:
    """Raise LaunchError for anything but a program."""
    if not isinstance(given, Program):
        raise LaunchError(
            "this is not a program",
            expected="a Program, as capture makes it of a kernel and parse_program of a text",
            got=type(given).__name__,
        )


def found(statement: Statement | None, violation: Violation, place: Place | None = None) -> Finding:
    """A finding at a statement, or at a place of the text that is none."""
    name = statement.instruction if isinstance(statement, Call) else None
    return Finding(violation, statement.origin if statement else place, name)


def as_violation(wrong: KernelError) -> Violation:
    """An error as a violation, for a finding."""
    return Violation(
        type(wrong), wrong.what, wrong.operand, wrong.expected, wrong.got, wrong.hint, wrong.rule
    )


def raise_findings(program: Program, findings: list[Finding]) -> None:
    """Raise ProgramError with all of them; nothing where there are none."""
    if findings:
        count = f"{len(findings)} violation" + "s" * (len(findings) > 1)
        errors = [finding.as_error() for finding in findings]
        raise ProgramError(f"program {program.name}: {count}", errors)
