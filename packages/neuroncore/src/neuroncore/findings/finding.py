"""A finding: one place of a source or program, the rule that it violates, and the cure."""

from __future__ import annotations

import linecache
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from neuroncore.findings.notebook_html import ShownAsHtml


class Severity(StrEnum):
    """How much a finding matters. The values are the levels of SARIF."""

    ERROR = "error"  # does not compile, or is silently wrong
    WARNING = "warning"  # needs a decision
    NOTE = "note"  # for information


class Certainty(StrEnum):
    """How well the rule that a finding rests on is known."""

    DOCUMENTED = "documented"  # a document of the vendor states it
    REPORTED = "reported"  # a public report or measurement shows it
    ASSUMED = "assumed"  # documents are silent or disagree, or the vendor's code avoids it


class Safety(StrEnum):
    """Whether the edits of a finding may be applied without a decision of the user."""

    SAFE = "safe"  # proved from the source
    UNSAFE = "unsafe"  # valid under the finding's `assumption`
    MANUAL = "manual"  # without edits


_LONGEST_EXCERPT = 400


class Position(Protocol):
    """Where a finding is: a range of a text, or the range that a frame of a program executes."""

    @property
    def region(self) -> Region:
        """The range in characters."""
        ...

    def excerpt(self, operand: str | None = None, position: int | None = None) -> list[str]:
        """The source line and a caret below the range, or below the argument of that name."""
        ...


@dataclass(frozen=True, slots=True, order=True)
class Region:
    """A range of a text file: lines and columns are 1-based characters, the end is exclusive."""

    path: str
    line: int = 1
    column: int = 1
    end_line: int = 1
    end_column: int = 1

    @property
    def region(self) -> Region:
        return self

    def excerpt(self, operand: str | None = None, position: int | None = None) -> list[str]:
        line = linecache.getline(self.path, self.line).rstrip("\n")
        is_shown = line.strip() and len(line) <= _LONGEST_EXCERPT
        return [f"    {line}", f"    {underline(self, line)}"] if is_shown else []

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


def underline(region: Region, line: str) -> str:
    """Carets below the part of a region that is in its first line."""
    end = region.end_column if region.end_line == region.line else len(line.rstrip()) + 1
    before = "".join(c if c == "\t" else " " for c in line[: region.column - 1])
    return before + "^" * max(1, end - region.column)


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace the characters between two positions by `text`.

    Lines and columns are 1-based characters; the end is exclusive. An empty range inserts.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True, slots=True)
class Finding(ShownAsHtml):
    """One violation of a rule.

    `rule` is its id, or the name of the check that found it; `code` the kind within a check.
    `source` cites the document that states the rule, `certainty` how well it is known, `cure`
    names what to do. `kernel` is the
    function around the place; `instruction`, `operand` and `position` name the argument at fault.
    `basis` lists the facts that the edits rest on ("x.shape == (P, F): unpacked in line 12"),
    `notes` further lines for people. `count` is how often it was found at this place.
    Findings of one statement that is rewritten as a whole share that statement's edit.
    """

    rule: str
    message: str
    place: Position | None = None
    severity: Severity = Severity.ERROR
    safety: Safety | None = None
    kernel: str | None = None
    assumption: str | None = None
    basis: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()
    applied: bool = False
    expected: str | None = None
    got: str | None = None
    cure: str | None = None
    source: str | None = None
    code: str | None = None
    instruction: str | None = None
    operand: str | None = None
    position: int | None = None
    notes: tuple[str, ...] = ()
    count: int = 1
    certainty: Certainty | None = None

    @property
    def region(self) -> Region:
        """The range of the place; of a finding without one, the beginning of an unnamed text."""
        return Region("") if self.place is None else self.place.region

    @property
    def label(self) -> str:
        """The rule with its code: `subset[star-import]`, `NKI1131`."""
        return self.rule if self.code is None else f"{self.rule}[{self.code}]"

    def __str__(self) -> str:
        label = self.label if self.severity is Severity.ERROR else f"{self.severity}: {self.label}"
        what = f"{self.instruction}: {self.message}" if self.instruction else self.message
        times = f" ({self.count} times)" if self.count > 1 else ""
        return rendered(
            f"{label}: {what}{times}", self.place, self.operand, self.position, self.expected,
            self.got, (self.cure, *self.notes), self.source,
        )  # fmt: skip


def rendered(
    head: str,
    place: Position | None,
    operand: str | None,
    position: int | None,
    expected: str | None,
    got: str | None,
    hints: Sequence[str | None],
    source: str | None,
) -> str:
    """The text of an error or finding: place and head, excerpt, then every part that is given."""
    lines = [f"{place}: {head}" if place else head]
    if place:
        lines += place.excerpt(operand, position)
    if expected is not None:
        lines.append(f"    expected: {expected}")
    if got is not None:
        lines.append(f"    got:      {got}")
    lines += [f"    {hint}" for hint in hints if hint is not None]
    if source is not None:
        lines.append(f"    [{source}]")
    return "\n".join(lines)


def python_lines(text: str) -> list[str]:
    """Lines as the Python parser counts them: form feeds and the like do not end one."""
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)
