"""The findings of a run, each listed once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from neuroncore.findings import Certainty, Finding, ShownAsHtml


class Report(ShownAsHtml):
    """The findings of a run, in the order in which they were first met.

    A finding that comes again at the same place is counted, not listed again: as many findings as
    there are lines at fault, however long the run.
    """

    def __init__(self) -> None:
        self._found: dict[object, Finding] = {}

    def add(self, finding: Finding) -> None:
        """List the finding, or count it where its like is listed.

        What does not state its certainty is documented.
        """
        if not self.again(finding):
            certainty = finding.certainty or Certainty.DOCUMENTED
            self._found[_key(finding)] = replace(finding, certainty=certainty)

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
    return f.rule, f.code, f.instruction, f.operand, f.place or f.message
