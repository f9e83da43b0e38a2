"""What checks find, and the report that collects it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from neuroncore._caret import Place
from neuroncore.errors import Violation, rendered


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check found; reads like an error of the machine.

    `code` names the kind of finding within its check where it has several. `operand` and `position`
    put the caret under an argument, as in KernelError. `notes` are further lines: who holds a
    memory, where the other access stands. `count` says how often it was found at this place.
    """

    check: str
    message: str
    place: Place | None = None
    expected: str | None = None
    got: str | None = None
    hint: str | None = None
    rule: str | None = None
    code: str | None = None
    severity: Literal["error", "warning"] = "error"
    instruction: str | None = None
    operand: str | None = None
    position: int | None = None
    notes: tuple[str, ...] = ()
    count: int = 1

    def __str__(self) -> str:
        label = self.check if self.code is None else f"{self.check}[{self.code}]"
        if self.severity != "error":
            label = f"{self.severity}: {label}"
        what = f"{self.instruction}: {self.message}" if self.instruction else self.message
        times = f" ({self.count} times)" if self.count > 1 else ""
        return rendered(
            f"{label}: {what}{times}", self.place, self.operand, self.position, self.expected,
            self.got, (self.hint, *self.notes), self.rule,
        )  # fmt: skip


def from_violation(
    check: str,
    violation: Violation,
    place: Place | None,
    instruction: str | None = None,
    code: str | None = None,
) -> Finding:
    """A broken limit of an instruction as a finding."""
    v = violation
    return Finding(
        check, v.what, place, v.expected, v.got, v.hint, v.rule, code,
        instruction=instruction, operand=v.operand,
    )  # fmt: skip


class Report:
    """The findings of a run, in the order in which they were first met.

    A finding that comes again at the same place is counted, not listed again: as many findings as
    there are lines at fault, however long the run.
    """

    def __init__(self) -> None:
        self._found: dict[object, Finding] = {}

    def add(self, finding: Finding) -> None:
        """List the finding, or count it where its like is listed."""
        if not self.again(finding):
            self._found[_key(finding)] = finding

    def again(self, finding: Finding) -> bool:
        """Count the finding if its like is listed, and say whether it is.

        What makes two alike are check, code, instruction, operand and place: a finding whose words
        are costly to find can be asked for without them.
        """
        key = _key(finding)
        known = self._found.get(key)
        if known is not None:
            self._found[key] = replace(known, count=known.count + finding.count)
        return known is not None

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(self._found.values())

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self._found)

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.findings)) or "nothing found"


def _key(f: Finding) -> object:
    return f.check, f.code, f.instruction, f.operand, f.place or f.message
