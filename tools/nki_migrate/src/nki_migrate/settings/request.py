"""What the user asked for, in one frozen value that every stage reads and none changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from nki_migrate.facts.observed import Observed

VERSIONS = ("0.1", "0.2", "0.3", "0.4", "0.5", "0.6")


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
    target: str = "0.6"
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
