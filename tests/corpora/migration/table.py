"""The table of a run, and the classes of what is left, sorted by what they alone hold up."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.corpora.beta1.report import shortened
from tests.corpora.migration.form import form_lines
from tests.corpora.migration.harness import FileTried, Tried, counts


def one_line(file: FileTried, kernel: Tried) -> str:
    """`word  file: kernel  reason`."""
    where = f"{file.file.repo.partition('/')[2]}/{file.file.path}: {kernel.kernel}"
    return f"{kernel.word:16}{where}  {shortened(says(kernel))}".rstrip()


def says(kernel: Tried) -> str:
    """The rules that left something, and what went wrong."""
    rules = ", ".join(f"{rule} ×{n}" for rule, n in sorted(kernel.rules.items()))
    return "; ".join(filter(None, (rules, kernel.reason)))


def file_problems(file: FileTried) -> list[str]:
    """What is wrong with a file's text."""
    said = {
        "crash": file.crash,
        "unparsable": file.unparsable,
        "second run changes": file.unstable,
        "untouched lines changed": file.astray,
    }
    return [f"{what}: {why}" for what, why in said.items() if why]


def closing_lines(tried: Sequence[FileTried]) -> str:
    """The numbers."""
    n = counts(tried)
    return (
        f"{n['files']} files: {n['crash']} crash, {n['unparsable']} unparsable, "
        f"{n['second run changes']} changed by a second run, {n['untouched lines changed']} with "
        f"untouched lines changed.\n"
        f"{n['entry kernels']} entry kernels, {n['run under beta1']} run under beta1: "
        f"{n['verified']} verified ({n['share']:.0%}), {n['todo']} with a TODO, "
        f"{n['fails']} fail, {n['WRONG']} wrong.\n"
        f"{form_lines([file.form for file in tried if file.form is not None])}"
    )


def markdown(tried: Sequence[FileTried]) -> str:
    """The numbers, then one table per repository."""
    lines = [closing_lines(tried).replace("\n", "\n\n")]
    for repo, group in itertools.groupby(tried, lambda file: file.file.repo):
        lines += [
            "",
            f"### {repo}, migrated",
            "",
            "| file | kernel | outcome | |",
            "|---|---|---|---|",
        ]
        for file in group:
            lines += [_row(file.file.path, "", "", text) for text in file_problems(file)]
            lines += [_row(file.file.path, k.kernel, k.word, says(k)) for k in file.kernels]
    return "\n".join(lines) + "\n"


def _row(*cells: str) -> str:
    texts = (shortened(cell).replace("|", "\\|").replace("<", "&lt;") for cell in cells)
    return f"| {' | '.join(texts)} |"


def as_json(tried: Sequence[FileTried]) -> str:
    """Everything, for machines."""
    files: list[dict[str, Any]] = [
        {
            "repo": file.file.repo,
            "path": file.file.path,
            "problems": file_problems(file),
            "kernels": [
                {
                    "kernel": kernel.kernel,
                    "word": kernel.word,
                    "reason": kernel.reason,
                    "rules": dict(kernel.rules),
                    "left": [list(entry) for entry in dict.fromkeys(kernel.left)],
                }
                for kernel in file.kernels
            ],
        }
        for file in tried
    ]
    return json.dumps({"counts": counts(tried), "files": files}, indent=1)


@dataclass(frozen=True, slots=True)
class Class:
    """A kind of thing that is left: how many kernels it holds up alone, and among others."""

    rule: str
    message: str
    alone: tuple[str, ...]
    among: tuple[str, ...]


def classes(tried: Sequence[FileTried]) -> list[Class]:
    """What holds up kernels that run under beta1, the worst first."""
    alone: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    among: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    seen: Counter[tuple[str, str]] = Counter()
    for file in tried:
        for kernel in file.kernels:
            if kernel.word not in ("todo", "fails", "WRONG"):
                continue
            name = f"{file.file.repo.partition('/')[2]}/{file.file.path}: {kernel.kernel}"
            kinds = {(rule, general(message)) for rule, message in kernel.left}
            kinds = kinds or {(kernel.word, general(kernel.reason))}
            for kind in kinds:
                (alone if len(kinds) == 1 else among)[kind].append(name)
                seen[kind] += 1
    order = sorted(seen, key=lambda kind: (-len(alone[kind]), -seen[kind], kind))
    return [Class(*kind, tuple(alone[kind]), tuple(among[kind])) for kind in order]


def general(message: str) -> str:
    """A message without what is particular to one kernel."""
    text = re.sub(r"^\S+\.py:[\d:]+ ", "", " ".join(message.split()))
    text = re.sub(r"`[^`]*`", "`…`", text)
    return re.sub(r"-?\d[\d.e+-]*", "N", text)[:160]


def classes_text(found: Sequence[Class]) -> str:
    """The classes for a reader: counts, then up to six kernels each."""
    lines = []
    for kind in found:
        lines.append(
            f"{len(kind.alone):3} alone {len(kind.among):3} among  {kind.rule}  {kind.message}"
        )
        lines += [f"        {name}" for name in (*kind.alone, *(f"({n})" for n in kind.among))[:6]]
    return "\n".join(lines) + "\n"
