"""The table of the corpus: on a terminal, and as a part of a document."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path

from tests.corpora.beta1.harness import Verdict, summary

REASON_CHARACTERS = 160


def one_line(verdict: Verdict, *, verbose: bool = False) -> str:
    """`verdict  file: kernel  reason`; a long reason is cut unless `verbose`."""
    kernel = verdict.kernel
    reason = verdict.reason if verbose else shortened(verdict.reason)
    if verdict.word == "match":
        reason = f"max error {verdict.max_error:.2g}"
    where = f"{kernel.file.repo.partition('/')[2]}/{kernel.file.path}: {kernel.name}"
    return f"{verdict.word:9}{where}  {reason}".rstrip()


def shortened(reason: str) -> str:
    """The reason in one line of at most REASON_CHARACTERS."""
    line = " ".join(reason.split())
    return line if len(line) <= REASON_CHARACTERS else line[: REASON_CHARACTERS - 1] + "…"


def markdown(verdicts: Sequence[Verdict]) -> str:
    """Counts, then one table per repository."""
    numbers = summary(verdicts)
    counted = int(numbers["kernels"] - numbers["excluded"])
    lines = [
        f"{int(numbers['kernels'])} entry kernels, {int(numbers['excluded'])} excluded, "
        f"{int(numbers['with a case'])} with a case; {int(numbers['match'])} of {counted} "
        f"({numbers['share']:.0%}) run under beta1 and match.",
    ]
    for repo, group in itertools.groupby(verdicts, lambda verdict: verdict.kernel.file.repo):
        lines += [
            "",
            f"### {repo}",
            "",
            "| file | kernel | verdict | reason |",
            "|---|---|---|---|",
        ]
        lines += [_row(verdict) for verdict in group]
    return "\n".join(lines) + "\n"


def _row(verdict: Verdict) -> str:
    kernel = verdict.kernel
    reason = shortened(verdict.reason).replace("|", "\\|").replace("<", "&lt;")
    return f"| {kernel.file.path} | {kernel.name} | {verdict.word} | {reason} |"


def replace_part(document: Path, name: str, text: str) -> None:
    """Put `text` between `<!-- NAME: begin -->` and `<!-- NAME: end -->` of a document.

    Raises ValueError when the document has no such marks.
    """
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    old = document.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    new, count = pattern.subn(lambda match: f"{begin}\n\n{text}\n{end}", old)
    if count != 1:
        raise ValueError(f"{document}: expected one part between {begin} and {end}, found {count}")
    document.write_text(new, encoding="utf-8")
