"""Which NKI version a kernel is written for.

Between 0.2 and the newest version a kernel is taken for the newest version that it is valid in: the
first later step that has something to change in it marks its version.
"""

from __future__ import annotations

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
from nki_migrate.rules import Site, all_rules, rules_by_node
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
    """A kernel of 0.2 or later: the newest version in which nothing of it is out of date."""
    stale = _first_stale(function, index)
    needed, feature = oldest_possible(function.node, index)
    if stale is None:
        newest = VERSIONS[-1]
        return Dialect(newest, feature if needed == newest else "nothing in it is older", newest)
    version, why = stale
    if version < needed:
        return Dialect(MIXED, f"{version}: {why}, but {needed}: {feature}", version)
    return Dialect(version, why, version)


def _first_stale(function: Function, index: FileIndex) -> tuple[str, str] | None:
    """The first step after 0.2 that has an edit for this kernel, and what it is about."""
    site = Site(index, Request())
    later = [rule for rule in all_rules().values() if rule.step[0] != "0.1" and rule.hooks.check]
    wanted = rules_by_node(later)
    nodes = [n for n in walk(function.node) if type(n) in wanted]
    for rule in sorted(later, key=lambda rule: rule.step):
        assert rule.hooks.check is not None
        for node in (n for n in nodes if type(n) in rule.hooks.nodes):
            for finding in rule.hooks.check(node, site):
                if not finding.assumption:  # a finding of any version identifies none
                    return rule.step[0], f"{finding.message} (line {finding.region.line})"
    return None
