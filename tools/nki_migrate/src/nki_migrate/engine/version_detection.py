"""Detection of the NKI version of a kernel.

Between 0.2 and the newest version a kernel is taken for the newest version that it is valid in: the
first later step that has something to change in it marks its version.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from neuroncore.findings import Finding, Severity
from nki_migrate.facts.dialects import (
    MIXED,
    UNKNOWN,
    Dialect,
    beta1,
    marks_of_01,
    marks_of_02,
    names,
    old_namespace,
    oldest_possible,
)
from nki_migrate.index import FileIndex, Function, walk
from nki_migrate.rules import Rule, Site, all_rules, rules_by_node
from nki_migrate.settings.request import VERSIONS, Request


def detect(function: Function, index: FileIndex) -> Dialect:
    """The dialect of one kernel (or helper of kernels) of a file."""
    old = next(marks_of_01(function.node, index), None)
    new = next(marks_of_02(function.node, index), None)
    if old and new:
        return Dialect(MIXED, f"0.1: {old}, but 0.2 or later: {new}", "0.1")
    if old:
        return beta1(function, index, str(old))
    old_name = next(old_namespace(function.node, index), None)
    if new:
        if old_name:
            return Dialect("0.2", f"{new}, although under the old namespace: {old_name}", "0.2")
        return _of_later_version(function, index)
    if old_name:
        return beta1(function, index, str(old_name))
    if any(names(function.node, index)):
        return _of_later_version(function, index)
    return Dialect(UNKNOWN, "no NKI name is used", None)


def _of_later_version(function: Function, index: FileIndex) -> Dialect:
    """A kernel of 0.2 or later: the newest version in which nothing of it is out of date.

    Migration starts where the first form is deprecated, although later versions have it, too.
    """
    needed, feature = oldest_possible(function.node, index)
    stale = _stale(function, index)
    # What later versions accept, too, is of the newer one in a file that needs it:
    # all its kernels run on one installed version.
    found = [s for s in stale if not (s.is_valid_later and s.version < _oldest_of_file(index))]
    newest = VERSIONS[-1]
    start = found[0].version if found else newest
    invalid = next((s for s in found if not s.is_deprecated), None)
    if invalid is None:
        why = found[0].why if found else "nothing in it is older"
        return Dialect(newest, feature if needed == newest else why, start)
    if invalid.version < needed:
        why = f"{invalid.version}: {invalid.why}, but {needed}: {feature}"
        return Dialect(MIXED, why, start)
    return Dialect(invalid.version, invalid.why, start)


@lru_cache(maxsize=8)
def _oldest_of_file(index: FileIndex) -> str:
    """The oldest version that has every name of a file."""
    return oldest_possible(index.source.tree, index)[0]


@dataclass(frozen=True, slots=True)
class _Stale:
    """Something of a kernel that the step from `version` has to change."""

    version: str
    why: str
    is_deprecated: bool
    is_valid_later: bool


def _stale(function: Function, index: FileIndex) -> Iterator[_Stale]:
    """Constructs of this kernel that the steps after 0.2 change, the first step first."""
    site = Site(index, Request())
    rules = (r for r in all_rules().values() if r.hooks.check and not (r.optional or r.ambiguous))
    later = [rule for rule in rules if rule.step[0] != "0.1"]
    wanted = rules_by_node(later)
    nodes = [n for n in walk(function.node) if type(n) in wanted]
    for rule in sorted(later, key=lambda rule: rule.step):
        for finding in _findings(rule, nodes, site):
            # A finding of any version, or a note, identifies none.
            if not finding.assumption and finding.severity is not Severity.NOTE:
                why = f"{finding.message} (line {finding.region.line})"
                yield _Stale(rule.step[0], why, rule.deprecated, rule.is_valid_later)


def _findings(rule: Rule, nodes: list[ast.AST], site: Site) -> Iterator[Finding]:
    assert rule.hooks.check is not None
    for node in nodes:
        if type(node) in rule.hooks.nodes:
            yield from rule.hooks.check(node, site)
