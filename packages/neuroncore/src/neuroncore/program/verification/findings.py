"""The findings of the verifier, and the errors that they are raised as."""

from __future__ import annotations

from neuroncore import errors
from neuroncore.errors import KernelError, LaunchError, ProgramError, Violation
from neuroncore.findings import Finding
from neuroncore.program.ir.nodes import Call, Statement
from neuroncore.program.ir.program import Program
from neuroncore.source_location import Place


def need_program(given: object) -> None:
    """Raise LaunchError for anything but a program."""
    if not isinstance(given, Program):
        raise LaunchError(
            "this is not a program",
            expected="a Program, as capture makes it of a kernel and parse_program of a text",
            got=type(given).__name__,
        )


def found(statement: Statement | None, violation: Violation, place: Place | None = None) -> Finding:
    """A finding at a statement, or at a place of the text that is none; its rule is the class of
    the error.
    """
    name = statement.instruction if isinstance(statement, Call) else None
    origin = statement.origin if statement else place
    return violation.finding(violation.error.__name__, origin, name)


def as_error(finding: Finding) -> KernelError:
    """The finding of a verifier as the error that running the program would raise."""
    f, kind = finding, getattr(errors, finding.rule)
    error = kind(
        f.message, expected=f.expected, got=f.got, hint=f.cure, rule=f.source, operand=f.operand,
        instruction=f.instruction, place=f.place,
    )  # fmt: skip
    error.place = f.place  # without one: nowhere, not where it was asked for
    return error


def as_violation(wrong: KernelError) -> Violation:
    """An error as a violation, for a finding."""
    return Violation(
        type(wrong), wrong.what, wrong.operand, wrong.expected, wrong.got, wrong.hint, wrong.rule
    )


def raise_findings(program: Program, findings: list[Finding]) -> None:
    """Raise ProgramError with all of them; nothing where there are none."""
    if findings:
        count = f"{len(findings)} violation" + "s" * (len(findings) > 1)
        raise ProgramError(f"program {program.name}: {count}", [*map(as_error, findings)])
