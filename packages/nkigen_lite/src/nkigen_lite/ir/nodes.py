"""Graphs as data: every value is made once, by an operation on values made before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from neuroncore.errors import Place
from neuroncore.records import record
from nkigen_lite.ops import OPS, Op
from nkigen_lite.tensors.spec import Spec


@dataclass(frozen=True, slots=True)
class Value:
    """An input of the graph."""

    name: str
    spec: Spec


@record
class Node:
    """One operation: `name` is the value it makes, `operands` are names of values, `spec` follows
    from the record. `origin` is the user's source line."""

    name: str
    op: str
    operands: tuple[str, ...]
    attrs: Mapping[str, Any]
    spec: Spec
    origin: Place | None = field(default=None, compare=False)

    @property
    def record(self) -> Op:
        """The record of the operation."""
        return OPS[self.op]
