"""The report on a bytecode file: the orders that it needs beside the tokens that it has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain, count, product
from pathlib import Path

from neuroncore.errors import LaunchError, Place
from tokenplan.checker import Checked, checked_at_sizes
from tokenplan.graph.diagnostics import folded
from tokenplan.graph.token_graph import REMOVED
from tokenplan.kernel.model import Mode, Op
from tokenplan.rules import BUDGET, says
from tokenplan.tile_ir import bytecode, compiler
from tokenplan.tile_ir.bytecode import Block, BytecodeError, Function, Module
from tokenplan.tile_ir.bytecode.verification import verify
from tokenplan.tile_ir.emission import rewritten
from tokenplan.tile_ir.function_model import FunctionModel, function_model
from tokenplan.tile_ir.model import Order, Orders
from tokenplan.tile_ir.orders import are_weak_loads, is_fence, orders_of_kernel
from tokenplan.tile_ir.token_tracing import ACCESSES

MAGIC = bytecode.MAGIC
MOST_NAMED = 4
"""Accesses without an execution that a report names."""


def is_bytecode(path: Path) -> bool:
    """Whether the file begins as Tile IR bytecode does, or is named so."""
    if path.suffix == ".tileirbc":
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


Check = Callable[[Function, Sequence[tuple[str, str]]], Checked]


@dataclass(frozen=True, slots=True)
class Report:
    """The report on a file, and the file with the tokens that it needs."""

    text: str
    data: bytes
    """The bytes that were read, where there are reasons not to rewrite them."""
    contradicted: tuple[str, ...] = ()
    """Functions of which the checker finds that an order that they need would be lost."""
    unchecked: tuple[str, ...] = ()
    """Functions that the checker cannot execute, where these are not to be rewritten."""


def explain(
    data: bytes, may_alias: Sequence[tuple[str, str]] = (), budget: int = BUDGET, target: str = "",
    check: Check = checked_at_sizes, distinct: Sequence[tuple[str, str]] = (),
    unchecked: bool = False,
) -> tuple[str, bytes]:  # fmt: skip
    """The text and the data of `reported`."""
    found = reported(data, may_alias, budget, target, check, distinct, unchecked)
    return found.text, found.data


def reported(
    data: bytes, may_alias: Sequence[tuple[str, str]] = (), budget: int = BUDGET, target: str = "",
    check: Check = checked_at_sizes, distinct: Sequence[tuple[str, str]] = (),
    unchecked: bool = False,
) -> Report:  # fmt: skip
    """The report on a file, and the file with the tokens that it needs.

    may_alias: pairs of parameters (p0, p5 …) that may share bytes, beside the pairs that the tokens
    of the file order. distinct: pairs of these that share none. target: compile both for it,
    count barriers and list the compiler's remarks, where the compiler is installed. check: of each
    function with its new tokens; a file in which one loses an order is not rewritten. unchecked:
    rewrite a file with functions that the checker cannot execute, too.
    """
    module, lines, functions, ids = bytecode.read(data), [], [], []
    contradicted, not_executed = [], []
    for function in module.functions:
        verify(function)
        found = function_model(function)
        _check_distinct(found, distinct, {*map(frozenset, may_alias)})
        own = _ordered_parameters(found, distinct)
        new = _checked(found, (*may_alias, *own), budget, check, unchecked)
        functions.append(new.function)
        if new.checked.lost:
            contradicted.append(function.name)
        elif not new.is_confirmed:
            not_executed.append(function.name)
        lines += [*_function(found, new.orders, bool(new.checked.lost)), *(f"its tokens order {a} "
                  f"and {b}, which may share bytes; --distinct {a},{b} if they do not"
                  for a, b in own), new.verdict(), ""]  # fmt: skip
        ids += [op.id for op in found.kernel.ops()]
    changed = replace(module, functions=tuple(functions))
    not_executed = [] if unchecked else not_executed
    if contradicted or not_executed:
        return Report(_text(lines), data, tuple(contradicted), tuple(not_executed))
    if target:
        lines += _compared(data, changed, target, ids)
    return Report(_text(lines), bytecode.write(changed))


@dataclass(frozen=True, slots=True)
class _Checked:
    """A function with the tokens that it needs, and the checker's verdict on it."""

    orders: Orders
    function: Function
    checked: Checked
    unproved: tuple[tuple[str, ...], ...]
    """Accesses, and two accesses, that keep their orders because no execution contains them."""

    @property
    def is_confirmed(self) -> bool:
        """Whether the checker executes all orders but the kept ones."""
        return bool(self.checked.executed) and {*self.checked.absent} <= {*self.unproved}

    def verdict(self) -> str:
        """For the report."""
        if self.checked.lost or not (self.unproved and self.is_confirmed):
            return self.checked.text
        names = [*dict.fromkeys(" and ".join(dict.fromkeys(found)) for found in self.unproved)]
        names[MOST_NAMED:] = [f"{len(names) - MOST_NAMED} more"] * (len(names) > MOST_NAMED)
        return (f"checked at {self.checked.executed} concrete sizes: every order has a token; "
                f"none executes {', '.join(names)}, whose orders are kept")  # fmt: skip


def _checked(
    found: FunctionModel, may_alias: Sequence[tuple[str, str]], budget: int, check: Check,
    unchecked: bool,
) -> _Checked:  # fmt: skip
    """The function with its new tokens; what no execution contains stays in order, unless it need
    not be checked."""

    def ordered(unproved: tuple[tuple[str, ...], ...]) -> _Checked:
        orders = orders_of_kernel(found.kernel, found.grid, may_alias, budget, found.may_be_empty,
                                  found.exclusive, unproved)  # fmt: skip
        function = rewritten(found, orders.kept)
        return _Checked(orders, function, check(function, may_alias), unproved)

    new = ordered(())
    is_left = not unchecked and new.checked.executed and not new.checked.lost
    return ordered(new.checked.absent) if is_left and new.checked.absent else new


def _text(lines: Sequence[str]) -> str:
    return "\n".join(lines).rstrip() + "\n"


def _check_distinct(
    found: FunctionModel, distinct: Sequence[tuple[str, str]], may_alias: Set[frozenset[str]]
) -> None:
    if unknown := {*chain(*distinct)} - found.kernel.buffers.keys():
        raise BytecodeError(
            f"{found.function.name} has no pointer {min(unknown)}",
            expected=", ".join(found.kernel.buffers),
        )
    for a, b in distinct:
        if a == b or frozenset((a, b)) in may_alias:
            why = "one parameter" if a == b else "which --may-alias says may share bytes"
            raise BytecodeError(f"--distinct {a},{b}: {why}", expected="two that share no byte")


def _ordered_parameters(
    found: FunctionModel, distinct: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Different parameters whose accesses the tokens of the file order, one after the other,
    without a memory order.

    Front ends order arrays that may share bytes; that they may is not in the bytecode itself.
    """
    ops = {op.id: op for op in found.kernel.ops()}
    after: dict[str, set[str]] = {name: set() for name in ops}
    for order in found.tokens:
        if not is_fence(ops[order.source], ops[order.sink]):
            after[order.source].add(order.sink)
    pairs = {*chain(*(_of_two(ops[a], ops[b]) for a in ops for b in _reached(after, a)))}
    return sorted((min(pair), max(pair)) for pair in pairs - {*map(frozenset, distinct)})


def _reached(after: Mapping[str, set[str]], name: str) -> set[str]:
    """The accesses behind a path of tokens."""
    found, stack = set[str](), [name]
    while stack:
        new = after[stack.pop()] - found
        found |= new
        stack += new
    return found


def _of_two(source: Op, sink: Op) -> Iterator[frozenset[str]]:
    """The parameters of two accesses, if these alone are a reason for their order."""
    one, other = ({access.buffer for access in op.accesses} for op in (source, sink))
    if not (are_weak_loads(source, sink) or one & other or is_fence(source, sink)):
        yield from map(frozenset, product(one, other))


def _function(found: FunctionModel, orders: Orders, is_contradicted: bool) -> Iterator[str]:
    """Its accesses and tokens; without orders that the checker confirms, nothing of these."""
    yield f"kernel {found.function.name}"
    for op in found.kernel.ops():
        where = f"  # {op.place.file}:{op.place.line}" if op.place else ""
        verb = "reads" if op.accesses[0].mode is Mode.read else "writes"
        yield f"  {op.id} {verb} {' or '.join(access.buffer for access in op.accesses)}{where}"
    if not is_contradicted:
        yield from listed("orders to keep", orders.kept)
    yield from listed("tokens that it has", found.tokens)
    if not is_contradicted:
        yield from _removed(found, orders)


def _removed(found: FunctionModel, orders: Orders) -> Iterator[str]:
    """The tokens that are not needed, why, and what that rests on."""
    needless = [order for order in found.tokens if not _is_needed(order, orders.needed)]
    yield f"{len(needless)} of its tokens are not needed"
    for order in needless:
        yield f"  {_arrow(order)}: {_proof(order, orders)}"
    for text in dict.fromkeys((*found.assumptions, *map(str, folded(orders.graph.diagnostics)))):
        yield f"assumed: {text}"


def listed(title: str, orders: Sequence[Order]) -> Iterator[str]:
    """Their number, then one line for each."""
    yield f"{len(orders)} {title}"
    for order in orders:
        yield f"  {_arrow(order)}"


def _arrow(order: Order) -> str:
    when = "in the same iteration"
    if order.loop is not None:
        plural = "s" if order.distance > 1 else ""
        when = f"{order.distance} iteration{plural} of {order.loop} later"
    return f"{order.source} -> {order.sink}  {when}"


def _is_needed(order: Order, needed: Sequence[Order]) -> bool:
    """Whether some conflict has this order; a token of one iteration may serve further ones."""
    return any(
        (order.source, order.sink, order.loop) == (other.source, other.sink, other.loop)
        for other in needed
    )


def _proof(order: Order, orders: Orders) -> str:
    """The reason why the two never conflict there."""
    ops = {op.id: op for op in orders.kernel.ops()}
    source, sink = (ops[name] for name in (order.source, order.sink))
    if not {a.buffer for a in source.accesses} & {a.buffer for a in sink.accesses}:
        return says("distinct")
    if are_weak_loads(source, sink):
        return says("commute")
    for edge in orders.graph.edges:
        if (edge.source, edge.sink, edge.status) == (order.source, order.sink, REMOVED):
            return f"{says(edge.rule)} [{edge.rule}]"
    return "an exact search over the iterations that it orders finds no conflict [isl]"


def _compared(old: bytes, new: Module, target: str, ids: Sequence[str]) -> Iterator[str]:
    absent = compiler.missing("tileiras", "nvdisasm", "cuobjdump")
    if absent:
        yield f"not compiled: {absent}"
        return
    new = _numbered(new)
    try:
        made = [compiler.compile_bytecode(data, target) for data in (old, bytecode.write(new))]
        before, after = (compiler.statistics(found.cubin) for found in made)
    except LaunchError as wrong:
        yield f"not compiled: {wrong}"
        return
    yield (
        f"{target}, tileiras {compiler.version()}: {before.barriers} barriers and "
        f"{before.registers} registers with its tokens, {after.barriers} and {after.registers} "
        "with the needed ones"
    )
    yield "its remarks with the needed tokens"
    yield from _remarks(new, made[1].remarks, ids)


def _numbered(module: Module) -> Module:
    """The module with the operation's number as its debug location, which finds it in a remark."""
    numbers = count(1)

    def numbered(block: Block) -> Block:
        return replace(block, operations=tuple(
            replace(op, place=Place("", 1, next(numbers)), regions=tuple(map(numbered, op.regions)))
            for op in block.operations
        ))  # fmt: skip

    return replace(module, functions=tuple(
        replace(found, body=numbered(found.body), place=Place("", 1, 0))
        for found in module.functions
    ))  # fmt: skip


def _remarks(
    module: Module, remarks: Sequence[compiler.Remark], ids: Sequence[str]
) -> Iterator[str]:
    """The remarks on each access in program order, then those on other operations."""
    found = list(compiler.by_operation(module, remarks))
    operations = (op for function in module.functions for op in function.body.walk())
    places = [op.place.column for op in operations if op.name in ACCESSES and op.place]
    for name, number in zip(ids, places, strict=True):
        texts = [remark.text for _, at, remark in found if at == number]
        yield from (f"  {name}: {text}" for text in texts or ["none"])
    yield from (f"  {name}: {remark.text}" for name, at, remark in found if at not in places)
