"""`.gitignore` files and exclude globs: which paths a search does not enter.

Source of the pattern language: git's documentation of gitignore (blank lines and `#` comments,
`!` negation, a trailing `/` for directories only, `/` anywhere else anchors, `**` crosses levels,
the last match wins).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_PIECES = re.compile(r"\*\*/|/\*\*|\*\*|\*|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)


def _piece(text: str) -> str:
    """The regular expression of one piece of a glob; `*` and `?` never cross a `/`."""
    match text:
        case "**/":
            return "(?:.*/)?"
        case "/**":
            return "/.*"
        case "**":
            return ".*"
        case "*":
            return "[^/]*"
        case "?":
            return "[^/]"
    if len(text) > 2 and text[0] == "[":
        body = text[1:-1].replace("\\", "\\\\")
        return f"[^{body[1:]}]" if body[0] == "!" else f"[{body}]"
    return re.escape(text)


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line of an ignore file, or one exclude glob."""

    regex: re.Pattern[str]
    negated: bool
    directories_only: bool

    def matches(self, relative: str, is_directory: bool) -> bool:
        """Whether the pattern names this path, written with `/` from the pattern's folder."""
        if self.directories_only and not is_directory:
            return False
        return self.regex.fullmatch(relative) is not None


@lru_cache(maxsize=4096)
def parse_pattern(line: str) -> Pattern | None:
    """The pattern on a line of an ignore file, or None for a blank line or a comment."""
    text = line.rstrip("\n\r").rstrip()
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text.removeprefix("!").removeprefix("\\")
    directories_only = text.endswith("/")
    text = text.rstrip("/")
    anchored = "/" in text
    body = "".join(_piece(piece) for piece in _PIECES.findall(text.lstrip("/")))
    return Pattern(re.compile(body if anchored else f"(?:.*/)?{body}"), negated, directories_only)


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The patterns of one folder; they speak about what lies below it."""

    root: Path
    patterns: tuple[Pattern, ...]

    @classmethod
    def of(cls, root: Path, lines: Iterable[str]) -> IgnoreRules:
        """Rules from the lines of an ignore file, or from exclude globs."""
        parsed = (parse_pattern(line) for line in lines)
        return cls(root, tuple(pattern for pattern in parsed if pattern is not None))

    def verdict(self, path: Path, is_directory: bool) -> bool | None:
        """True = ignored, False = taken back by a `!` line, None = not mentioned."""
        try:
            relative = path.relative_to(self.root).as_posix()
        except ValueError:
            return None
        found = None
        for pattern in self.patterns:
            if pattern.matches(relative, is_directory):
                found = not pattern.negated
        return found


def gitignore_in(folder: Path) -> IgnoreRules | None:
    """The rules of `folder/.gitignore`, or None without a readable one."""
    try:
        lines = (folder / ".gitignore").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return IgnoreRules.of(folder, lines)


def gitignores_above(folder: Path) -> tuple[IgnoreRules, ...]:
    """The rules of the folders from the repository's root down to `folder`, outermost first.

    Empty outside a git repository: a stray `.gitignore` in a home directory says nothing.
    """
    chain = [folder, *folder.parents]
    depth = next((i for i, parent in enumerate(chain) if (parent / ".git").exists()), None)
    if depth is None:
        return ()
    found = (gitignore_in(parent) for parent in reversed(chain[: depth + 1]))
    return tuple(rules for rules in found if rules is not None)


def is_ignored(path: Path, is_directory: bool, rules: Iterable[IgnoreRules]) -> bool:
    """Whether the last word of all rules, outermost first, is "ignored"."""
    ignored = False
    for rule in rules:
        verdict = rule.verdict(path, is_directory)
        ignored = ignored if verdict is None else verdict
    return ignored
