"""The user's request, in one frozen value that every stage reads and none changes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from neuroncore.documents import read_utf8, unreadable
from neuroncore.surface import VERSIONS
from nki_migrate.facts.observed import Observed

_EXPECTED = "expected 'kernel.arg: shape=(S, 128), dtype=bf16, buffer=sbuf'"
_TARGET = re.compile(r"(?P<kernel>\*|[A-Za-z_]\w*)\.(?P<argument>[A-Za-z_]\w*)")


class ConfigError(Exception):
    """A configuration file, or an option, that cannot be used as it is; the text says why."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """`--assume 'kernel.arg: shape=(S, 128), dtype=bf16'`, parsed.

    `kernel` is "*" for every kernel. A shape entry is an int, a name or an expression in
    the kernel's own words. `text` is what the user typed; findings quote it.
    """

    kernel: str
    argument: str
    shape: tuple[str, ...] | None = None
    dtype: str | None = None
    buffer: str | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """All choices of one run (NKI_MIGRATE command line, options)."""

    source_version: str = "auto"
    target: str = VERSIONS[-1]
    select: tuple[str, ...] = ()  # id prefixes; empty = all rules
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    unsafe_fixes: bool = False
    nl: Literal["keep", "lower"] = "lower"
    block_dims: Literal["auto", "list", "fold"] = "auto"
    assumptions: tuple[Assumption, ...] = ()
    todo: Literal["comment", "none"] = "comment"
    all_or_nothing: bool = False
    step: bool = False
    leave: tuple[str, ...] = ()  # kernels to leave as they are
    observed: Observed = field(default_factory=Observed)  # what runs of the old kernels showed

    def selects(self, rule_id: str) -> bool:
        """Whether the rule takes part; a longer prefix beats a shorter one, `ignore` wins a tie."""
        chosen = self.select or ("NKI",)
        wanted = _longest_match(rule_id, (*chosen, *self.extend_select))
        return wanted > _longest_match(rule_id, self.ignore)


def _longest_match(rule_id: str, prefixes: tuple[str, ...]) -> int:
    return max((len(p) for p in prefixes if rule_id.startswith(p)), default=0)


class VersionStep(NamedTuple):
    """From one version of NKI to the next."""

    source: str
    target: str


def steps_between(source: str, target: str) -> tuple[VersionStep, ...]:
    """The steps from one version to another: ("0.2", "0.4") → (("0.2", "0.3"), ("0.3", "0.4"))."""
    first, last = VERSIONS.index(source), VERSIONS.index(target)
    return tuple(VersionStep(VERSIONS[i], VERSIONS[i + 1]) for i in range(first, last))


# -- assumptions of the user


def parse_assumption(text: str) -> Assumption:
    """One assumption; `*.x` speaks about the argument x of every kernel.

    Raises ConfigError with what was expected.
    """
    target, colon, facts = text.partition(":")
    match = _TARGET.fullmatch(target.strip())
    if not colon or match is None:
        raise ConfigError(f"--assume {text!r}: {_EXPECTED}")
    given = _keywords(text, facts)
    if unknown := set(given) - {"shape", "dtype", "buffer"} or not given:
        named = ", ".join(sorted(unknown)) if isinstance(unknown, set) else "no fact"
        raise ConfigError(f"--assume {text!r}: {named}; {_EXPECTED}")
    return Assumption(
        match["kernel"],
        match["argument"],
        shape=_shape(text, given["shape"]) if "shape" in given else None,
        dtype=_name(given.get("dtype")),
        buffer=_name(given.get("buffer")),
        text=text.strip(),
    )


def read_assumptions(path: Path) -> tuple[Assumption, ...]:
    """The assumptions of a file: one per line, blank lines and `#` comments aside."""
    try:
        lines = read_utf8(path).splitlines()
    except (OSError, ValueError) as error:
        raise ConfigError(f"--assume-file {path}: cannot be read: {unreadable(error)}") from None
    return parse_assumptions(
        line for line in lines if line.strip() and not line.strip().startswith("#")
    )


def parse_assumptions(texts: Iterable[str]) -> tuple[Assumption, ...]:
    """Several assumptions."""
    return tuple(parse_assumption(text) for text in texts)


def _keywords(text: str, facts: str) -> dict[str, ast.expr]:
    try:
        call = ast.parse(f"_({facts.strip()})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # deep brackets
        raise ConfigError(f"--assume {text!r:.200}: {_EXPECTED}") from None
    if not isinstance(call, ast.Call) or call.args:
        raise ConfigError(f"--assume {text!r}: {_EXPECTED}")
    return {keyword.arg or "**": keyword.value for keyword in call.keywords}


def _shape(text: str, value: ast.expr) -> tuple[str, ...]:
    if not isinstance(value, ast.Tuple | ast.List):
        raise ConfigError(f"--assume {text!r}: shape is a tuple; {_EXPECTED}")
    return tuple(ast.unparse(size) for size in value.elts)


def _name(value: ast.expr | None) -> str | None:
    """`bf16`, `"bf16"` and `nl.bfloat16` all name a thing by its last word."""
    if value is None:
        return None
    plain = str(value.value) if isinstance(value, ast.Constant) else ast.unparse(value)
    return plain.rpartition(".")[2]
