"""What the rules decide for the engine, which is built without them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from nki_migrate.facts.values import Value
from nki_migrate.rewriting.context.reasons import Cannot, Cause, Reason

Rewrite = Callable[..., Value]


@dataclass(frozen=True, slots=True)
class RuleTable:
    """The hooks of all rules of the step 0.1 to 0.2.

    `reasons`: the id under which a reason is reported. `calls`: canonical name → (id, rewrite).
    `methods`: a tile's method → rewrite. `names`: names without a rewrite → id; "nl.*" is every
    name that begins so. `messages`: id → the text for such a name.
    """

    reasons: Mapping[Reason, str]
    calls: Mapping[str, tuple[str, Rewrite]]
    methods: Mapping[str, Rewrite]
    names: Mapping[str, str]
    messages: Mapping[str, Callable[[str], str]]

    def id_of(self, cause: Cause) -> str:
        """The id of the rule that a reason belongs to."""
        return self.reasons[cause] if isinstance(cause, Reason) else cause

    def rule_of(self, canonical: str) -> str:
        """The id of the rule about a name of 0.1; the longest matching entry decides."""
        if canonical in self.calls:
            return self.calls[canonical][0]
        found = [n for n in self.names if n == canonical or _is_prefix(n, canonical)]
        return self.names[max(found, key=len)]

    def unsupported(self, canonical: str, node: ast.AST) -> Cannot:
        """What is raised for a call that no rule rewrites."""
        rule = self.rule_of(canonical)
        message = self.messages.get(rule, _no_counterpart)
        return Cannot(rule, message(canonical), node)


def _is_prefix(pattern: str, name: str) -> bool:
    return pattern.endswith("*") and name.startswith(pattern[:-1])


def _no_counterpart(canonical: str) -> str:
    return f"`{canonical}` has no counterpart that this tool writes yet"


@dataclass(frozen=True, slots=True)
class Handlers:
    """What the layers above the context do: `evaluate(ctx, node)`, `rewrite_body(ctx, body)`."""

    evaluate: Callable[..., Value]
    rewrite_body: Callable[..., None]
