"""A plan file as records: all names known, all lengths right, or an error that names the place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from tokenplan.checker.errors import PlanFileError
from tokenplan.checker.json_values import LARGEST, Value, load
from tokenplan.checker.records import (
    Access,
    Affine,
    Buffer,
    Claim,
    Edge,
    Loop,
    Op,
    Plan,
    PlanFile,
    Stats,
    Swizzle,
    Wait,
    Witness,
    shared,
)
from tokenplan.checker.schema import hold_to_schema

SCHEMA = "tokenplan/1"
_ENGINES = {"tensor", "vector", "scalar", "gpsimd", "sync"}
_ALL_COUNTS = ("total_order", "pairs", "removed", "untested", "conflicts", "rules")
_KEY = re.compile(r"sha256:[0-9a-f]{64}")


def read_plan_file(text: str) -> PlanFile:
    """The plan file that `text` holds; raises PlanFileError for anything else."""
    file = load(text)
    schema = file.value.get("schema") if isinstance(file.value, dict) else None
    if schema != SCHEMA:
        raise PlanFileError("schema", f"expected {SCHEMA!r}, got {schema!r}")
    hold_to_schema(file)
    return _Reader().read(file)


@dataclass(slots=True)
class _Reader:
    buffers: dict[str, Buffer] = field(default_factory=dict)
    trips: dict[str, int] = field(default_factory=dict)
    ops: dict[str, Op] = field(default_factory=dict)
    order: dict[str, int] = field(default_factory=dict)
    """The position of each operation in the program."""

    def read(self, file: Value) -> PlanFile:
        given = file.fields()
        if not _KEY.fullmatch(given["key"].text()):
            raise given["key"].wrong("expected sha256: and 64 digits from 0 to f")
        self.scopes(given["buffers"])
        body = self.body(given["body"], ())
        self.check_scopes(given["buffers"])
        for result in given["results"].items():
            self.buffer(result)
        edges = tuple(self.edge(n, item) for n, item in enumerate(given["edges"].items()))
        claims = given["claims"].items()
        return PlanFile(
            given["kernel"].text(), self.buffers, body, edges,
            tuple(self.claim(n, item) for n, item in enumerate(claims)),
            tuple(item.text() for item in given["assumptions"].items()),
            tuple(item.value["text"] for item in given["diagnostics"].items()),
            _stats(given["stats"]), self.plan(given["plan"]),
        )  # fmt: skip

    def plan(self, given: Value) -> Plan | None:
        if given.value is None:
            return None
        return read_plan_part(given, self.ops, self.buffers, self.trips)

    # -- buffers and the body ---------------------------------------------------------------------

    def scopes(self, given: Value) -> None:
        for item in given.items():
            made = item.fields()
            name = made["id"].text()
            if name in self.buffers:
                raise made["id"].wrong(f"{name} is already a buffer")
            scope = made["scope"].items()
            buffer = Buffer(
                name, made["space"].text(), made["shape"].integers(0),
                made["itemsize"].integer(1), tuple(loop.text() for loop in scope),
                made["parameter"].value,
            )  # fmt: skip
            if buffer.num_bytes > LARGEST:
                raise item.wrong(f"{name} has {buffer.num_bytes} bytes, more than {LARGEST}")
            self.buffers[name] = buffer

    def check_scopes(self, given: Value) -> None:
        for item, buffer in zip(given.items(), self.buffers.values(), strict=True):
            if unknown := [loop for loop in buffer.scope if loop not in self.trips]:
                raise item.wrong(f"scope names {unknown[0]}, which is not a loop")
            for op in self.ops.values():
                used = any(access.buffer == buffer.id for access in op.accesses)
                if used and op.loops[: len(buffer.scope)] != buffer.scope:
                    raise item.wrong(f"{buffer.id} is made in {list(buffer.scope)} but {op.id} "
                                     f"accesses it in {list(op.loops)}")  # fmt: skip

    def body(self, given: Value, loops: tuple[str, ...]) -> tuple[Op | Loop, ...]:
        if len(loops) > 60:
            raise given.wrong("loops are nested more than 60 deep")
        return tuple(
            self.loop(item, loops) if "loop" in item.value
            else self.op(item, loops)
            for item in given.items()
        )  # fmt: skip

    def loop(self, given: Value, loops: tuple[str, ...]) -> Loop:
        made = given.fields()
        name = made["loop"].text()
        if name in self.trips:
            raise made["loop"].wrong(f"{name} is already a loop")
        self.trips[name] = made["trips"].integer(0)
        for value in ("start", "step"):
            made[value].integer()
        return Loop(name, self.trips[name], self.body(made["body"], (*loops, name)))

    def op(self, given: Value, loops: tuple[str, ...]) -> Op:
        made = given.fields()
        name = made["op"].text()
        if name in self.ops:
            raise made["op"].wrong(f"{name} is already an operation")
        accesses = tuple(self.access(item, loops) for item in made["accesses"].items())
        place = made["location"].value
        self.order[name] = len(self.order)
        self.ops[name] = Op(name, loops, accesses, place or None)
        return self.ops[name]

    def access(self, given: Value, loops: tuple[str, ...]) -> Access:
        made = given.fields()
        buffer = self.buffer(made["buffer"])
        shape, strides = made["shape"].integers(0), made["strides"].integers()
        if len(shape) != len(strides):
            raise made["strides"].wrong(f"{len(strides)} strides for {len(shape)} dimensions")
        access = Access(
            buffer, made["mode"].value, affine(made["offset"], loops), shape, strides,
            made["width"].integer(1), made["operand"].value,
            read_swizzle(made["swizzle"]) if "swizzle" in made else None,
        )  # fmt: skip
        if access.swizzle is None:  # where one moves bytes to is looked at when they are counted
            self.check_inside(access, given, loops)
        return access

    def check_inside(self, access: Access, given: Value, loops: tuple[str, ...]) -> None:
        if not prod((*access.shape, *(self.trips[loop] for loop in loops))):
            return  # accesses nothing
        last = [(c, self.trips[loop] - 1) for loop, c in access.offset.terms.items()]
        last += [(s, n - 1) for s, n in zip(access.strides, access.shape, strict=True)]
        low = access.offset.constant + sum(min(0, c * n) for c, n in last)
        high = access.offset.constant + sum(max(0, c * n) for c, n in last) + access.width
        size = self.buffers[access.buffer].num_bytes
        if low < 0 or high > size:
            raise given.wrong(f"accesses bytes {low} to {high} of {access.buffer}, "
                              f"which has {size}")  # fmt: skip

    # -- edges and claims -------------------------------------------------------------------------

    def known(self, given: Value) -> Op:
        name = given.text()
        if name not in self.ops:
            raise given.wrong(f"{name} is not an operation")
        return self.ops[name]

    def edge(self, index: int, given: Value) -> Edge:
        made = given.fields()
        source, sink = self.known(made["from"]), self.known(made["to"])
        loops = shared(source, sink)
        distance = made["distance"].integers()
        if len(distance) != len(loops):
            raise made["distance"].wrong(
                f"{source.id} and {sink.id} share the loops {list(loops)}: expected {len(loops)} "
                f"numbers, got {len(distance)}"
            )
        nothing = (0,) * len(loops)
        if distance < nothing:
            raise made["distance"].wrong(f"{list(distance)} points into the future")
        if distance == nothing and self.order[source.id] >= self.order[sink.id]:
            raise made["distance"].wrong(
                f"a cycle: {source.id} does not stand before {sink.id} in one iteration"
            )
        witness, held = made["witness"], made.get("buffer", Value(None))
        return Edge(
            index, source.id, sink.id, distance, made["kind"].value,
            made["status"].value,
            None if held.value is None else self.buffer(held),
            None if witness.value is None else self.witness(witness, source, sink),
            made["rule"].text(), tuple(item.text() for item in made["assumes"].items()),
        )  # fmt: skip

    def buffer(self, given: Value) -> str:
        """The name of a buffer that there is."""
        name = given.text()
        if name not in self.buffers:
            raise given.wrong(f"{name} is not a buffer")
        return name

    def witness(self, given: Value, source: Op, sink: Op) -> Witness:
        made = given.fields()
        name = self.buffer(made["buffer"])
        size = self.buffers[name].num_bytes
        return Witness(
            name, made["byte"].integer(0, size - 1), made["element"].integers(0),
            self.iterations(made["from"], source), self.iterations(made["to"], sink),
        )  # fmt: skip

    def iterations(self, given: Value, op: Op) -> dict[str, int]:
        made = given.members()
        if set(made) != set(op.loops):
            raise given.wrong(f"expected the loops of {op.id}, {list(op.loops)}")
        return {loop: value.integer(0, self.trips[loop] - 1) for loop, value in made.items()}

    def claim(self, index: int, given: Value) -> Claim:
        if "join" in given.value:
            named = given.fields()["join"].items()
            source, sink = (self.known(item) for item in named)
            if self.order[source.id] >= self.order[sink.id] and not shared(source, sink):
                raise given.wrong(
                    f"{sink.id} cannot wait for {source.id}, which stands behind it: "
                    "no loop repeats both"
                )
            return Claim(index, "join", ops=(source.id, sink.id))
        if "may_alias" in given.value:
            held = tuple(self.buffer(item) for item in given.fields()["may_alias"].items())
            if len(set(held)) != 2:
                raise given.wrong("two different buffers may share bytes")
            return Claim(index, "may_alias", buffers=held)
        made = given.fields()
        loop = made["loop"].text()
        if loop not in self.trips:
            raise made["loop"].wrong(f"{loop} is not a loop")
        what = made["claim"].value
        depth = made["depth"].integer(1) if "depth" in made else 1
        return Claim(index, what, loop, depth)


def _stats(given: Value) -> Stats:
    """Two counts, or all of them."""
    made = given.fields()
    if len(made) > 2 and (missing := [name for name in _ALL_COUNTS if name not in made]):
        raise given.wrong(f"no {', '.join(missing)}")
    rules = made.pop("rules", Value({})).members()
    return Stats(
        {name: value.integer(0) for name, value in made.items()},
        {name: value.integer(0) for name, value in rules.items()},
    )


def affine(given: Value, loops: tuple[str, ...]) -> Affine:
    """The affine expression of `loops` that a plan file writes as constant and terms."""
    made = given.fields()
    terms = made["terms"].members()
    for loop, value in terms.items():
        if loop not in loops:
            raise value.wrong(f"{loop} is none of the loops it may depend on, {list(loops)}")
    numbers = {loop: value.integer() for loop, value in terms.items()}
    return Affine(made["constant"].integer(), numbers)


def read_swizzle(given: Value) -> Swizzle:
    """The swizzle that a plan file writes; an invertible one, by its shape."""
    made = given.fields()
    columns = made["columns"].integers(0)
    if len(columns) > 60:
        raise made["columns"].wrong("more than 60 bits")
    for bit, column in enumerate(columns):
        if column.bit_length() != bit + 1:
            raise made["columns"].wrong(f"column {bit} has not bit {bit} as its highest")
    return Swizzle(columns, made["constant"].integer(0))


# -- the plan --------------------------------------------------------------------------------------


def read_plan_part(
    given: Value, ops: Mapping[str, Op], buffers: Mapping[str, Buffer], trips: Mapping[str, int]
) -> Plan:
    """Raises PlanFileError for an unknown name, an operation without queue, a bad length."""
    made = given.fields()
    queues = {op: queue.text() for op, queue in made["queues"].members().items()}
    if odd := sorted(set(queues) ^ set(ops)):
        known = "is not an operation" if odd[0] in queues else "has no queue"
        raise made["queues"].wrong(f"{odd[0]} {known}")
    slots = {}
    for name, count in made["slots"].members().items():
        if name not in buffers:
            raise count.wrong(f"{name} is not a buffer")
        slots[name] = count.integer(1)
    _check_stages(made, ops)
    _check_prefetch(made, trips, buffers, slots)
    waits = tuple(
        _wait(n, item, ops, queues) for n, item in enumerate(made["waits"].items())
    )  # fmt: skip
    return Plan(queues, slots, waits)


def _unit(queue: str) -> int | None:
    """By how much a queue of the NeuronCore counts; None for a queue of another name.

    The same facts as `dma_step` and `engine_step` of the target's machine table.
    """
    if re.fullmatch(r"dma\d+", queue):
        return 16
    return 1 if queue in _ENGINES else None


def _check_stages(made: Mapping[str, Value], ops: Mapping[str, Op]) -> None:
    named = [item.text() for stage in made["stages"].items() for item in stage.items()]
    if unknown := [name for name in named if name not in ops]:
        raise made["stages"].wrong(f"{unknown[0]} is not an operation")
    if absent := [name for name in ops if name not in named]:
        raise made["stages"].wrong(f"{absent[0]} is in no stage")
    if twice := [name for name in named if named.count(name) > 1]:
        raise made["stages"].wrong(f"{twice[0]} is in two stages")


def _check_prefetch(
    made: Mapping[str, Value],
    trips: Mapping[str, int],
    buffers: Mapping[str, Buffer],
    slots: Mapping[str, int],
) -> None:
    for loop, distance in made["prefetch"].members().items():
        if loop not in trips:
            raise distance.wrong(f"{loop} is not a loop")
        inside = (slots.get(b.id, 1) for b in buffers.values() if b.scope[-1:] == (loop,))
        most, ahead = max(inside, default=1), distance.integer(0)
        if ahead >= most:
            raise distance.wrong(
                f"{ahead} iterations ahead ask for {ahead + 1} places, but buffers of loop {loop} "
                f"have {most} at most"
            )


def _wait(index: int, given: Value, ops: Mapping[str, Op], queues: Mapping[str, str]) -> Wait:
    made = given.fields()
    named = {}
    for role in ("op", "after"):
        named[role] = made[role].text()
        if named[role] not in ops:
            raise made[role].wrong(f"{named[role]} is not an operation")
    op, after = ops[named["op"]], ops[named["after"]]
    queue = made["queue"].text()
    if queues[after.id] != queue:
        raise made["queue"].wrong(f"{after.id} runs on {queues[after.id]}, not on {queue}")
    loops, distance = shared(after, op), made["distance"].integers()
    if len(distance) != len(loops):
        raise made["distance"].wrong(
            f"{after.id} and {op.id} share the loops {list(loops)}: expected {len(loops)} "
            f"numbers, got {len(distance)}"
        )
    if distance < (0,) * len(loops):
        raise made["distance"].wrong(f"{list(distance)} points into the future")
    usual = _unit(queue)
    if made["unit"].integer(1) != (usual or made["unit"].value):
        raise made["unit"].wrong(f"{queue} counts by {usual}, not by {made['unit'].value}")
    return Wait(
        index, op.id, queue, after.id, distance, affine(made["count"], loops),
        made["unit"].integer(1),
    )  # fmt: skip
