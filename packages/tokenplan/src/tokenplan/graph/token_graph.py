"""The token graph: which orderings a kernel needs, which it does not, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from neuroncore.findings import ShownAsHtml
from tokenplan.graph.diagnostics import Diagnostic
from tokenplan.kernel.model import Kernel

Distance = tuple[int, ...]
"""Iterations between two operations, one number per shared loop, outermost first."""

JOIN = "join"
ALIAS = "may-alias"
"""The rule of orders between tensors that may share bytes."""
KEPT, IMPLIED, REMOVED = "kept", "implied", "removed"


@dataclass(frozen=True, slots=True)
class Witness:
    """One byte that both ends of an edge access, and the iterations in which they do.

    `element` is its index in the buffer.
    """

    buffer: str
    byte: int
    element: tuple[int, ...]
    source: Mapping[str, int]
    """Iteration of each loop around the source."""
    sink: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Edge:
    """An order between two operations, needed or shown not to be.

    At iteration j of the loops that both are in, `sink` starts after every instance of `source` in
    iterations up to j - distance (lexicographically) has completed. `rule` found the conflict or
    proves that there is none; `assumes` is what this rests on beside the program.
    """

    source: str
    sink: str
    distance: Distance
    kind: str
    """RAW, WAR, WAW, accumulate, or join where the user requests it."""
    status: str
    """kept, implied (needed, and follows from kept ones) or removed (no conflict exists)."""
    rule: str
    buffer: str = ""
    witness: Witness | None = None
    assumes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Parallel:
    """The claim that iterations of a loop need no order among each other."""

    loop: str


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The claim that an iteration of a loop needs no order with the depth - 1 before it."""

    loop: str
    depth: int


@dataclass(frozen=True, slots=True)
class Join:
    """The request that `sink` starts after `source`, independent of the bytes they access."""

    source: str
    sink: str


@dataclass(frozen=True, slots=True)
class MayAlias:
    """Two tensors that may share bytes, any with any; the order of the two does not matter."""

    tensors: tuple[str, str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "tensors", tuple(sorted(self.tensors)))

    @property
    def text(self) -> str:
        """How edges and plans say so."""
        return f"it is allowed that {' and '.join(self.tensors)} share bytes"


Claim = Parallel | Pipeline | Join | MayAlias


@dataclass(frozen=True, slots=True)
class Counts:
    """How many pairs of accesses could need an order, and what became of them.

    A pair is two accesses of two operations in the order of one run, or of one operation in two
    iterations. pairs = removed + untested + conflicts.
    """

    total_order: int
    """Edges of the conservative order: one operation after the other, each loop closed."""
    pairs: int
    rules: Mapping[str, int]
    """Pairs that each rule removed."""
    untested: int
    """Pairs that were not looked at: were they to conflict, others imply their order."""
    conflicts: int

    @property
    def removed(self) -> int:
        return sum(self.rules.values())


@dataclass(frozen=True, slots=True)
class TokenGraph(ShownAsHtml):
    """Everything that is known about the orders of a kernel's operations."""

    kernel: Kernel
    edges: tuple[Edge, ...]
    claims: tuple[Claim, ...] = ()
    assumptions: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    counts: Counts | None = None
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)
    """CPU time: check (of the program, by its own rules), effects, elision, reduction."""

    def with_status(self, status: str) -> tuple[Edge, ...]:
        """The edges that are kept, implied or removed."""
        return tuple(edge for edge in self.edges if edge.status == status)
