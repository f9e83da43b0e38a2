"""Knowledge about a function: its variables, and results of one pass for the next."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from nki_migrate.facts.dtypes import DType
from nki_migrate.facts.values import Storage, Tensor, Value

Passed = tuple[Value | None, ...]
"""What a call gives to each parameter; None where it leaves the default."""

_IDENTIFIER = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_READ = re.compile(r"(?<![\w.])[A-Za-z_]\w*\b(?!\s*=(?!=))")


@dataclass(frozen=True, slots=True)
class Cover:
    """How many programs write a whole tensor: in words (empty: unknown), in runs, and seen."""

    text: str
    number: int | None
    seen: int | None


@dataclass(slots=True)
class Seen:
    """Results of one pass over a function for the next. Keys of storages are their `site`."""

    ranks: dict[str, int] = field(default_factory=dict)  # parameter → rank
    folds: set[int] = field(default_factory=set)  # block tensors that a list cannot serve
    first_write: dict[int, str] = field(default_factory=dict)  # site → kind of the first use
    given: dict[int, set[tuple[int, ...]]] = field(
        default_factory=dict
    )  # site of a PSUM tile → loops around what gave it something else than products
    uses: dict[int, set[str]] = field(
        default_factory=dict
    )  # site → "store:<dtype>", "broadcast", "op"
    arguments: dict[str, list[Passed]] = field(default_factory=dict)  # helper → calls
    returned: list[Value] = field(default_factory=list)
    dtypes: dict[str, DType] = field(default_factory=dict)
    stored: dict[str, DType] = field(default_factory=dict)  # text of a use → what it is stored as
    tensors: set[str] = field(default_factory=set)  # parameters used as tensors
    unlike: set[tuple[int, str]] = field(default_factory=set)  # (loop, name): no one kind of tile
    items: dict[str, list[Value]] = field(default_factory=dict)  # list → what was put into it
    mixed: set[str] = field(default_factory=set)  # lists of things that differ in kind
    listed: set[int] = field(default_factory=set)  # block tensors that something left mentions
    covers: dict[int, set[Cover]] = field(default_factory=dict)  # grid axis → what stores say

    def learned_of_given(self, before: Seen) -> bool:
        """Whether more is known of given tiles than `before`; what was known then stays known."""
        for site, loops in before.given.items():
            self.given.setdefault(site, set()).update(loops)
        return self.given != before.given


def assigned_name(statement: ast.stmt | None) -> str:
    """The name that a statement binds, or writes a part of; "" for other statements."""
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    target = targets[0]
    while isinstance(target, ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else ""


def identifiers(text: str) -> set[str]:
    """Names that occur in an expression's text (not as attributes)."""
    return set(_IDENTIFIER.findall(text))


def names_read(text: str) -> set[str]:
    """Identifiers of a text that are neither keywords of a call nor the target of `=`."""
    return set(_READ.findall(text))


@dataclass(slots=True)
class Scope:
    """Variables with a version each: a spelling can tell whether its names mean the same.

    `values` says what a name means in the source, `held` which tile it holds in the new text:
    a tile is spelled by a name that holds it (trap T3).
    """

    values: dict[str, Value] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    clock: int = 0
    held: dict[str, Storage | Tensor] = field(default_factory=dict)

    def bind(self, name: str, value: Value) -> None:
        """Bind a name anew; `hold` says when the new text binds it to that very tile as well."""
        self.clock += 1
        self.values[name] = value
        self.versions[name] = self.clock
        self.held.pop(name, None)

    def hold(self, name: str, tensor: Tensor) -> None:
        """In the new text the name holds this tile (or this view of one) from here on."""
        self.held[name] = tensor.storage if tensor.dims is None else tensor

    def copy(self) -> Scope:
        """A snapshot."""
        return Scope(dict(self.values), dict(self.versions), self.clock, dict(self.held))


@dataclass(frozen=True, slots=True)
class LocalTile:
    """A tile that is made at the head of a region, in place of blocks made by `statement`."""

    statement: ast.stmt
    storage: Storage
    lines: tuple[str, ...]
