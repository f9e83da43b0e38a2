"""Rewriting: rules with a pattern, a guard and a replacement, applied until none fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from neuroncore.errors import Place
from nki_dtypes import DType
from nkigen_lite.ir import Builder, Graph, Node
from nkigen_lite.ops import Expr
from nkigen_lite.tensors.errors import RewriteError
from nkigen_lite.tensors.spec import Spec

MOST_SWEEPS = 64


@dataclass(frozen=True, slots=True)
class Any_:  # noqa: N801
    """Any value, under a name; the same name twice is the same value."""

    name: str


@dataclass(frozen=True, slots=True)
class Number:
    """A constant that is this number everywhere, in any shape."""

    value: float


@dataclass(frozen=True, slots=True)
class Constant_:  # noqa: N801
    """Any uniform constant, under a name: `match.number(name)`."""

    name: str


@dataclass(frozen=True, slots=True)
class Of:
    """An operation on such operands; in either order where the operation commutes. `name` gives
    access to its node."""

    op: str
    operands: tuple[Pattern, ...] = ()
    name: str | None = None


Pattern = Any_ | Number | Constant_ | Of


def of(op: str, *operands: Pattern | str | float, name: str | None = None) -> Of:
    """`of("add", "x", 1.0)`: strings are values by name, numbers are constants."""
    patterns = tuple(
        Any_(o) if isinstance(o, str) else Number(o) if isinstance(o, (int, float)) else o
        for o in operands
    )
    return Of(op, patterns, name)


@dataclass(slots=True, eq=False)
class Match:
    """The match of a pattern, and the graph to put the replacement into."""

    build: Builder
    root: Node
    values: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)

    def __getitem__(self, name: str) -> str:
        """The value that stands under this name."""
        return self.values[name]

    def spec(self, value: str) -> Spec:
        """The spec of a value of the graph."""
        return self.build.specs[value]

    @property
    def dtype(self) -> DType:
        """The result's."""
        return self.root.spec.dtype

    def emit(self, op: str, *operands: str, **attrs: Any) -> str:
        """A new operation at the line of the one that is replaced."""
        return self.build.emit(op, *operands, origin=self.root.origin, **attrs)

    def fill(self, number: Any, dtype: DType, shape: tuple[int, ...] = ()) -> str:
        """One number."""
        return self.build.fill(number, dtype, shape, origin=self.root.origin)

    def uniform(self, value: str) -> Any:
        """The number that a constant is everywhere; None for another value."""
        node = self.build.by_name.get(value)
        return node.attrs["value"].uniform if node and node.op == "constant" else None

    def number(self, name: str) -> Any:
        """The number of a uniform constant."""
        return self.uniform(self.values[name])

    def expr(self, name: str, dtype: DType | None = None) -> Expr:
        """The value that stands under this name, to compute with; in `dtype` if given."""
        found = Expr(self, self.values[name])
        return found if dtype is None else found.to(dtype)

    def constant(self, number: Any, dtype: DType, shape: tuple[int, ...] = ()) -> Expr:
        """One number, to compute with."""
        return Expr(self, self.fill(number, dtype, shape))

    def result(self, found: Expr) -> str:
        """The formula's value in the dtype and shape of what it replaces."""
        return self.shaped(found.to(self.dtype).value)

    def shaped(self, value: str) -> str:
        """The value in the result's shape: a replacement must not lose a broadcast."""
        shape = self.root.spec.shape
        if self.spec(value).shape == shape:
            return value
        return self.emit("broadcast_to", value, shape=shape)


@dataclass(frozen=True, slots=True)
class RewriteRule:
    """`pattern` → `replacement(match)`, where `guard(match)` holds.

    A replacement gives a value of the same spec, or None to leave things as they are.
    """

    name: str
    pattern: Of
    replacement: Callable[[Match], str | None]
    guard: Callable[[Match], bool] = lambda match: True


def is_float(m: Match) -> bool:
    """A guard: floats are computed."""
    return m.dtype.is_float


def is_integer(m: Match) -> bool:
    """A guard: integers are computed (bool is none)."""
    return m.dtype.is_integer


def has_wide_integers(m: Match) -> bool:
    """A guard: the operands are 32-bit integers."""
    dtype = m.spec(m.root.operands[0]).dtype
    return dtype.is_integer and dtype.bits == 32


def rewrite(graph: Graph, rules: Sequence[RewriteRule]) -> Graph:
    """The graph where no rule fits any more.

    Raises RewriteError, naming the rules, when they undo each other or never come to an end.
    """
    by_op: dict[str, list[RewriteRule]] = {}
    for rule in rules:
        by_op.setdefault(rule.pattern.op, []).append(rule)
    seen = {_key(graph): 0}
    log: list[Counter[str]] = []
    for sweep in range(1, MOST_SWEEPS + 1):
        graph, fired = _sweep(graph, by_op)
        if not fired:
            return graph
        log.append(fired)
        key = _key(graph)
        if key in seen:
            _disagree(log[seen[key] :], "undo each other")
        seen[key] = sweep
    _disagree(log[-8:], f"are still at work after {MOST_SWEEPS} sweeps")
    return graph


def _key(graph: Graph) -> Any:
    """Equal for equal graphs, and quickly compared."""
    nodes = tuple((n.op, n.operands, tuple(n.attrs.values())) for n in graph.nodes)
    return hash((nodes, graph.results))


def _disagree(log: Iterable[Counter[str]], what: str) -> None:
    fired: Counter[str] = Counter()
    for sweep in log:
        fired.update(sweep)
    names = " and ".join(sorted(name for name, _ in fired.most_common(2)))
    raise RewriteError(f"the rules {names} {what}: one of them needs a guard")


def _sweep(graph: Graph, by_op: Mapping[str, list[RewriteRule]]) -> tuple[Graph, Counter[str]]:
    """Every node once, operands before users."""
    build = Builder(graph.name)
    names = {v.name: build.input(v.spec, v.name) for v in graph.inputs}
    fired: Counter[str] = Counter()
    for old in graph.nodes:
        operands = tuple(names[o] for o in old.operands)
        node = Node(old.name, old.op, operands, old.attrs, old.spec, old.origin)
        value = None
        for rule in (*by_op.get("*", ()), *by_op.get(node.op, ())):
            value = _applied(rule, build, node)
            if value is not None:
                fired[rule.name] += 1
                break
        if value is None:
            value = build.emit(node.op, *operands, origin=node.origin, **node.attrs)
        names[old.name] = value
    writes = tuple((i, names[v]) for i, v in graph.writes)
    return build.finish(tuple(names[o] for o in graph.outputs), writes), fired


def _applied(rule: RewriteRule, build: Builder, node: Node) -> str | None:
    match = Match(build, node)
    if not _matches_node(rule.pattern, node, match) or not rule.guard(match):
        return None
    value = rule.replacement(match)
    if value is not None and build.specs[value] != node.spec:
        raise RewriteError(
            f"rule {rule.name} makes {build.specs[value]} of {node.spec} ({_place(node.origin)})"
        )
    return value


def _place(origin: Place | None) -> str:
    return str(origin) if origin else "no source line"


def _matches_node(pattern: Of, node: Node, match: Match) -> bool:
    if pattern.op not in (node.op, "*"):
        return False
    if pattern.name is not None:
        match.nodes[pattern.name] = node
    if not pattern.operands:
        return True
    if len(pattern.operands) != len(node.operands):
        return False
    orders = [node.operands]
    if node.record.is_commutative:
        orders.append(node.operands[::-1])
    kept = dict(match.values), dict(match.nodes)
    for order in orders:
        if all(_matches(p, v, match) for p, v in zip(pattern.operands, order, strict=True)):
            return True
        match.values, match.nodes = dict(kept[0]), dict(kept[1])
    return False


def _matches(pattern: Pattern, value: str, match: Match) -> bool:
    node = match.build.by_name.get(value)
    match pattern:
        case Any_(name):
            return match.values.setdefault(name, value) == value
        case Of():
            return node is not None and _matches_node(pattern, node, match)
    constant = match.uniform(value)
    if constant is None:
        return False
    if isinstance(pattern, Constant_):
        return match.values.setdefault(pattern.name, value) == value
    return bool(float(constant) == pattern.value)
