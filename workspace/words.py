"""`python workspace/words.py [PATH ...]`: words that the project does not use, with their places.

The words and what to say instead are in words.toml. Identifiers, strings, comments and docstrings
of Python files are read, and the text of pages outside code blocks.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from members import ROOT

TABLE = Path(__file__).with_name("words.toml")
FOLDERS = (
    "packages",
    "tools",
    "tests",
    "workspace",
    "benchmarks",
    "examples",
    "docs",
    "README.md",
    "noxfile.py",
)
LEFT_OUT = ("changelog.d", "golden", ".venv", "node_modules", "test_words.py")
TEXT = (tokenize.STRING, tokenize.COMMENT)
CODE_BLOCK = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
SUBJECT = re.compile(r'"""(\w+)')
Kind = Literal["modules", "identifiers", "text", "subjects"]


@dataclass(frozen=True, slots=True)
class Word:
    """A word that is not used, and its replacement."""

    pattern: re.Pattern[str]
    say: str
    kinds: frozenset[str]


@dataclass(frozen=True, slots=True)
class Use:
    """A place where such a word is used."""

    path: Path
    line: int
    used: str
    word: Word

    def __str__(self) -> str:
        place = self.path.relative_to(ROOT) if self.path.is_relative_to(ROOT) else self.path
        return f"{place}:{self.line}: {self.used!r}: say {self.word.say}"


@cache
def words() -> tuple[Word, ...]:
    """The table of words.toml."""
    entries = tomllib.loads(TABLE.read_text(encoding="utf-8"))["words"]
    return tuple(map(_word, entries))


def _word(entry: dict[str, str]) -> Word:
    only = entry.get("only")
    kinds = frozenset({only} if only else {"identifiers", "text"})
    pattern = re.compile(rf"\b(?:{entry['word']})\b".replace(" ", r"\s+"), re.IGNORECASE)
    return Word(pattern, entry["say"], kinds)


def files(paths: list[Path]) -> Iterator[Path]:
    """Every Python file and page under `paths`, changelogs and the words' own test left out."""
    for path in paths:
        found = [path] if path.is_file() else sorted([*path.rglob("*.py"), *path.rglob("*.md")])
        yield from (f for f in found if not set(f.parts) & set(LEFT_OUT))


def uses(path: Path) -> Iterator[Use]:
    """Every use of a word of the table in the file."""
    for line, kind, text in _pieces(path):
        if not _any_word(kind).search(text):
            continue
        for word in (w for w in words() if kind in w.kinds):
            for match in word.pattern.finditer(text):
                place = line + text.count("\n", 0, match.start())
                yield Use(path, place, match.group(), word)


@cache
def _any_word(kind: Kind) -> re.Pattern[str]:
    """One pattern for all words of a kind: most texts contain none."""
    patterns = (word.pattern.pattern for word in words() if kind in word.kinds)
    return re.compile("|".join(patterns), re.IGNORECASE)


def _pieces(path: Path) -> Iterator[tuple[int, Kind, str]]:
    """(line, kind, text) of everything in the file that is read."""
    yield 1, "modules", path.stem
    yield 1, "identifiers", spaced(path.stem)
    source = path.read_text(encoding="utf-8")
    if "src" in path.parts and (subject := SUBJECT.match(source)):
        yield 1, "subjects", subject.group(1)
    if path.suffix == ".md":
        yield 1, "text", CODE_BLOCK.sub(lambda m: "\n" * m.group().count("\n"), source)
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], "identifiers", spaced(token.string)
        elif token.type in TEXT:
            yield token.start[0], "text", token.string


def spaced(identifier: str) -> str:
    """The words of an identifier: `free_size` and `FreeSize` are "free size"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", identifier).replace("_", " ")


def main(arguments: list[str]) -> int:
    """Print every use under the paths (the whole project without one); 1 when there is one."""
    paths = [Path(a).resolve() for a in arguments] or [ROOT / name for name in FOLDERS]
    found = [use for path in files(paths) for use in uses(path)]
    for use in found:
        print(use)
    if found:
        print(f"{len(found)} words to replace")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
