"""All rules by id: the modules `nki<digits>_<subject>` of this package, which define `RULE`."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType

from nki_migrate.rules.rule import Example, Rule, Site

__all__ = ["Example", "Rule", "Site", "all_rules", "rules_by_node"]


@cache
def all_rules() -> Mapping[str, Rule]:
    """Every rule, ordered by id. A module may define `RULES` of one subject instead."""
    modules = (
        importlib.import_module(f"{__name__}.{m.name}")
        for m in pkgutil.iter_modules(__path__)
        if m.name.startswith("nki")
    )
    found = [r for m in modules for r in getattr(m, "RULES", None) or (m.RULE,)]
    return MappingProxyType({r.id: r for r in sorted(found, key=lambda r: r.id)})


def rules_by_node(rules: Iterable[Rule]) -> dict[type[ast.AST], list[Rule]]:
    """The span rules that look at each kind of node, in the order given."""
    found: dict[type[ast.AST], list[Rule]] = {}
    for rule in rules:
        for kind in dict.fromkeys(rule.nodes):
            found.setdefault(kind, []).append(rule)
    return found
