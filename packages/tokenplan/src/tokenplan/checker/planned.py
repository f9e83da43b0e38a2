"""The `plan` of a plan file: queues, slots and waits."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tokenplan.checker.affine import affine
from tokenplan.checker.json_values import Value
from tokenplan.checker.records import Buffer, Op, Plan, Wait, shared

_ENGINES = {"tensor", "vector", "scalar", "gpsimd", "sync"}


def read_plan_part(
    given: Value, ops: Mapping[str, Op], buffers: Mapping[str, Buffer], trips: Mapping[str, int]
) -> Plan:
    """Raises PlanFileError for an unknown name, an operation without queue, a bad length."""
    made = given.fields("queues slots waits prefetch stages")
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
    made = given.fields("op queue after distance count unit why")
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
