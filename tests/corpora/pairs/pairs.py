"""Kernels that their authors migrated: an old text, theirs, and ours, function by function."""

from __future__ import annotations

import ast
import random
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.corpora.migration.form import Form, form_of

from nki_migrate.comments.todos import count_todos
from nki_migrate.engine.migration import migrate_source
from nki_migrate.settings.request import Request

_NEW = re.compile(r"^\s*(import nki|from nki)\b", re.M)
_OLD = re.compile(r"^\s*(import|from) neuronxcc\b", re.M)


@dataclass(frozen=True, slots=True)
class Pair:
    """A function before the migration, as its author migrated it, and as the command does."""

    file: str
    kernel: str
    before: str
    author: str
    ours: str
    todos: int

    @property
    def forms(self) -> tuple[Form | None, Form | None]:
        """How both texts read beside the old one."""
        return form_of(self.before, self.author), form_of(self.before, self.ours)


def find_pairs(corpus: Path) -> Iterator[Pair]:
    """The pairs of every clone below a folder (`<owner>/<name>`), in the order of their names."""
    for clone in sorted(corpus.glob("*/*")):
        for path in _git(clone, "grep", "-lE", "(import|from) nki", "HEAD", "--", "*.py").split():
            path = path.partition(":")[2]
            after = _git(clone, "show", f"HEAD:{path}")
            before = _last_old(clone, path) if _NEW.search(after) else ""
            if before:
                yield from pairs_of(f"{clone.parent.name}/{clone.name}/{path}", before, after)


def _git(clone: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", clone, *words], capture_output=True, check=False)
    return done.stdout.decode("utf-8", "replace")


def _last_old(clone: Path, path: str) -> str:
    """The last text of a file that imports the old package alone; empty where none does."""
    for commit in _git(clone, "log", "--format=%H", "--", path).split():
        text = _git(clone, "show", f"{commit}:{path}")
        if _OLD.search(text) and not _NEW.search(text):
            return text
    return ""


def pairs_of(file: str, before: str, after: str) -> Iterator[Pair]:
    """The functions of two texts that have one name, were kernels before, and changed in both."""
    old, author = functions(before), functions(after)
    if not old:
        return
    result = migrate_source(before, file, Request())
    ours = functions(result.after)
    for kernel in (k.name for k in result.kernels if k.name in old and k.name in author):
        pair = Pair(
            file, kernel, old[kernel], author[kernel], ours.get(kernel, old[kernel]),
            count_todos(result.after, {kernel}),
        )  # fmt: skip
        if all(pair.forms):
            yield pair


def functions(text: str) -> dict[str, str]:
    """The top-level functions of a text by name, with the comments inside them."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return {}
    lines = text.splitlines(keepends=True)
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {f.name: "".join(lines[f.lineno - 1 : f.end_lineno]) for f in found}


def table(pairs: list[Pair]) -> str:
    """A row per pair, the author's figure first and ours second, and the medians."""
    lines = [
        "| file | kernel | growth | longest line | comments kept | new names that end in a number "
        "| TODO |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    growths: tuple[list[float], list[float]] = ([], [])
    for pair in pairs:
        author, ours = pair.forms
        assert author is not None
        assert ours is not None
        growths[0].append(author.growth)
        growths[1].append(ours.growth)
        cells = [
            f"{author.growth:.2f}, {ours.growth:.2f}",
            f"{_longest(pair.author)}, {_longest(pair.ours)}",
            f"{author.kept_comments}, {ours.kept_comments} of {author.comments}",
            f"{author.numbered_names}, {ours.numbered_names}",
            f"{pair.todos}",
        ]
        lines.append(f"| {pair.file} | {pair.kernel} | {' | '.join(cells)} |")
    medians = " and ".join(f"{median(side):.2f}" for side in growths if side)
    lines.insert(
        0, f"{len(pairs)} pairs, the author's and the command's; median growth {medians}.\n"
    )
    return "\n".join(lines)


def _longest(text: str) -> int:
    return max(map(len, text.splitlines()))


def to_read(pairs: list[Pair], count: int, seed: int) -> tuple[str, str]:
    """Some pairs with both texts in a random order, and which of each two is the author's."""
    chosen = random.Random(seed)
    texts, key = [], []
    for number, pair in enumerate(chosen.sample(pairs, min(count, len(pairs))), 1):
        sides = [("author", pair.author), ("command", pair.ours)]
        chosen.shuffle(sides)
        for letter, (_, text) in zip("AB", sides, strict=True):
            texts.append(f"## {number} {letter}\n\n```python\n{text}```\n")
        whose = "A" if sides[0][0] == "author" else "B"
        key.append(f"{number}: {pair.file} {pair.kernel}: the author's is {whose}")
    return "\n".join(texts), "\n".join(key)
