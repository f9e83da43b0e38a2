"""Calls of 0.1: their arguments by parameter name, and where their value goes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from neuroncore.surface import signature
from nki_migrate.facts.values import Const, Tensor, Value
from nki_migrate.rewriting.context.reasons import Cannot, Cause, Reason

Rewrite = Callable[..., Value]
Method = Callable[..., Value | None]


@dataclass(frozen=True, slots=True)
class RuleTable:
    """The hooks of all rules of the step 0.1 to 0.2.

    `reasons`: the id under which a reason is reported. `calls`: canonical name → (id, rewrite).
    `methods`: a tile's method → rewrite. `names`: names without a rewrite → id; "nl.*" is every
    name that begins so. `messages`: id → the text for such a name.
    """

    reasons: Mapping[Reason, str]
    calls: Mapping[str, tuple[str, Rewrite]]
    methods: Mapping[str, Method]
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
        """The exception for a call that no rule rewrites."""
        rule = self.rule_of(canonical)
        message = self.messages.get(rule, _no_counterpart)
        return Cannot(rule, message(canonical), node)


def _is_prefix(pattern: str, name: str) -> bool:
    return pattern.endswith("*") and name.startswith(pattern[:-1])


def _no_counterpart(canonical: str) -> str:
    return f"`{canonical}` has no counterpart that this tool writes yet"


@dataclass(frozen=True, slots=True)
class Handlers:
    """Functions of layers above the context.

    `evaluate(ctx, node)`, `rewrite_body(ctx, body)`, and `to_index(ctx, node, tile)`.
    """

    evaluate: Callable[..., Value]
    rewrite_body: Callable[..., None]
    to_index: Callable[..., Tensor]


# `nl` functions by position (stubs of SDK 2.26); `nisa` functions are in neuroncore.surface.
_TABLE = {
    "nl.load": "src",
    "nl.load_transpose2d": "src",
    "nl.store": "dst value",
    "nl.copy": "src",
    "nl.shared_identity_matrix": "n dtype",
    "nl.ndarray": "shape dtype",
    "nl.zeros": "shape dtype",
    "nl.ones": "shape dtype",
    "nl.full": "shape fill_value dtype",
    "nl.zeros_like": "a dtype",
    "nl.empty_like": "a dtype",
    "nl.broadcast_to": "src shape",
    "nl.transpose": "x",
    "nl.loop_reduce": "x op loop_indices",
    "nl.matmul": "x y transpose_x",
    "nl.where": "condition x y",
    "nl.expand_dims": "data axis",
}
_SIGNATURES = {k: tuple(v.split()) for k, v in _TABLE.items()}
_REDUCTIONS = ("sum", "max", "min", "prod", "mean", "var", "all")
_SIGNATURES |= {f"nl.{n}": ("x", "axis") for n in (*_REDUCTIONS, "softmax")}
_SIGNATURES["nl.rms_norm"] = ("x", "w", "axis", "n", "epsilon")


def _parameters(name: str) -> tuple[str, ...]:
    """The parameters of a function of 0.1 that take positional arguments, in order."""
    module, _, own = name.partition(".")
    written = signature(own, "0.1") if module == "nisa" else None
    if written is not None:
        return tuple(p.name for p in written.params if not p.keyword_only)
    return _SIGNATURES.get(name, ("x", "y"))


@dataclass(frozen=True, slots=True)
class Target:
    """The place of a statement's value: `name`, or (added to) `view`."""

    name: str | None = None
    view: Tensor | None = None
    accumulate: bool = False
    reads: frozenset[str] = frozenset()  # names that the right-hand side mentions


NOWHERE = Target()  # of a value that a larger expression takes


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call with its arguments by parameter name, in the order written, and the value's place."""

    name: str
    node: ast.Call
    arguments: dict[str, ast.expr]
    target: Target = NOWHERE

    def get(self, name: str) -> ast.expr | None:
        """An argument, or None if it was not given or is the literal None."""
        node = self.arguments.get(name)
        if isinstance(node, ast.Constant) and node.value is None:
            return None
        return node

    def is_set(self, name: str) -> bool:
        """Whether an argument is a literal that counts as true."""
        node = self.arguments.get(name)
        return isinstance(node, ast.Constant) and bool(node.value)


def bind(name: str, node: ast.Call, target: Target) -> CallSite | None:
    """The call's arguments by name; None if that is not known (`*args`, too many, one twice)."""
    positional = _parameters(name)
    if any(isinstance(a, ast.Starred) for a in node.args) or len(node.args) > len(positional):
        return None
    bound = dict(zip(positional, node.args, strict=False))
    named = {k.arg: k.value for k in node.keywords if k.arg}
    if len(named) < len(node.keywords) or named.keys() & bound.keys():
        return None
    return CallSite(name, node, bound | named, target)


DONE = Const(None, "done")  # the value of a statement that was rewritten as a whole
