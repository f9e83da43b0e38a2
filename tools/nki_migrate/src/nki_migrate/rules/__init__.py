"""All rules by id: the files `nki<digits>.toml` of this package and the hooks beside them.

Importing the package loads no rule: a run over files without NKI needs none.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nki_migrate.rewriting.context.call_site import RuleTable
    from nki_migrate.rules.rule import Example, Hooks, Rule
    from nki_migrate.rules.site import Site

__all__ = ["Example", "Rule", "Site", "all_rules", "rewriting_rules", "rules_by_node"]
_HOMES = {"Example": "rule", "Hooks": "rule", "Rule": "rule", "Site": "site"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def all_rules() -> Mapping[str, Rule]:
    """Every rule, ordered by id."""
    from nki_migrate.rules.rule import read_rule

    hooks = _all_hooks()
    data = sorted(f.name for f in files(__name__).iterdir() if f.name.endswith(".toml"))
    rules = (read_rule(files(__name__) / name, hooks) for name in data)
    return MappingProxyType({rule.id: rule for rule in rules})


def _all_hooks() -> dict[str, Hooks]:
    """The hooks by rule: `HOOKS` of a module `nki1234_where`, or of a family, as a mapping."""
    found: dict[str, Hooks] = {}
    for module in pkgutil.iter_modules(__path__):
        loaded = importlib.import_module(f"{__name__}.{module.name}")
        hooks: Hooks | dict[str, Hooks] = getattr(loaded, "HOOKS", {})
        named = module.name.partition("_")[0].upper()
        found |= hooks if isinstance(hooks, dict) else {named: hooks}
    return found


def rules_by_node(rules: Iterable[Rule]) -> dict[type[ast.AST], list[Rule]]:
    """The span rules that look at each kind of node, in the order given."""
    found: dict[type[ast.AST], list[Rule]] = {}
    for rule in rules:
        for kind in dict.fromkeys(rule.hooks.nodes):
            found.setdefault(kind, []).append(rule)
    return found


@cache
def rewriting_rules() -> RuleTable:
    """Decisions of the rules for the engine of the step 0.1 to 0.2."""
    from nki_migrate.rewriting.context.call_site import RuleTable

    rules = all_rules().values()
    return RuleTable(
        reasons={reason: r.id for r in rules for reason in r.reasons},
        calls={name: (r.id, f) for r in rules for name, f in r.hooks.calls.items()},
        methods={name: f for r in rules for name, f in r.hooks.methods.items()},
        names={name: r.id for r in rules for name in r.names},
        messages={r.id: r.hooks.message for r in rules if r.hooks.message is not None},
    )
