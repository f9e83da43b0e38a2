"""expand and rotate: a place of its own for each iteration's tile.

    for k in range(4):                        t = buffer(bfloat16[128, 4, 512], sbuf)
        t = buffer(bfloat16[128, 512], sbuf)  for k in range(4):
        load(t[:, :], …)                   →      load(t[:, k, :], …)
        use(t[:, :])                              use(t[:, k, :])

`rotate` gives the tiles of a loop's body `slots` places that take turns: the loop is split, and the
buffers are expanded over the inner one. The next tile is loaded while this one is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from neuroncore.engines import HBM, Space
from neuroncore.program import Access, Affine, Allocate, Buffer, Loop, Program
from neuroncore.program.binding import in_elements
from nkigym.loops.split import split_loop
from nkigym.loops.step import Path, Refused, Step
from nkigym.loops.transform import Taken, Transform
from nkigym.loops.tree import Body, changed, fresh, loop_at, replaced, with_body, with_offset

SLOTS = (2, 3, 4, 8)
"""Numbers of places that `rotate` offers."""


def with_slots(buffer: Buffer, slots: int) -> Buffer:
    """The buffer `slots` times: on chip side by side in each partition."""
    head, tail = buffer.shape[:1], buffer.shape[1:]
    on_chip = buffer.space.on_chip
    return replace(buffer, shape=(*head, slots, *tail) if on_chip else (slots, *head, *tail))


def slotted(access: Access, buffer: Buffer, slots: int, loop: Loop) -> Access:
    """The access to `buffer` as one to the slot of this iteration of `loop`."""
    if not buffer.space.on_chip:
        unit = in_elements(access, buffer, buffer.size)
        return with_offset(access, access.offset + _slot(loop, unit))
    row = max(1, in_elements(access, buffer, buffer.row))
    constant, column = divmod(access.offset.constant, row)
    terms = tuple((name, _wider(c, row, slots, buffer)) for name, c in access.offset.terms)
    offset = Affine(constant * row * slots + column, terms) + _slot(loop, row)
    first, *others = access.strides
    for count, stride in zip(access.shape[1:], others, strict=True):
        if count > 1 and abs(stride) >= row:
            raise Refused(f"an access to {buffer.name} takes its partitions in two dimensions")
    strides = (_wider(first, row, slots, buffer), *others)
    return Access(buffer.name, offset, access.shape, strides, access.dtype, access.indirect)


def _slot(loop: Loop, unit: int) -> Affine:
    return Affine.variable(loop.variable, unit) + -unit * loop.start


def _wider(move: int, row: int, slots: int, buffer: Buffer) -> int:
    """A step in a buffer of `row` elements per partition as one where they are `slots` times."""
    if abs(move) < row:
        return move
    if move % row:
        raise Refused(f"an access to {buffer.name} steps over partitions and columns at once")
    return move * slots


def expand_body(loop: Loop, chosen: frozenset[str]) -> tuple[Body, Loop]:
    """Allocations that now stand in front of the loop, and the loop without them."""
    if loop.step != 1:
        raise Refused(f"loop {loop.variable} does not count by 1")
    made = [s for s in loop.body if isinstance(s, Allocate) and s.buffer.name in chosen]
    old = {s.buffer.name: s.buffer for s in made}
    for buffer in old.values():
        if buffer.address is not None or buffer.content is not None:
            raise Refused(f"{buffer.name} has a fixed place or content")

    def change(access: Access) -> Access:
        buffer = old.get(access.buffer)
        return access if buffer is None else slotted(access, buffer, loop.trips, loop)

    body = tuple(changed(s, change) for s in loop.body if s not in made)
    front = tuple(replace(s, buffer=with_slots(s.buffer, loop.trips)) for s in made)
    return front, with_body(loop, body)


def _expand(program: Program, step: Step) -> Taken:
    loop, name = loop_at(program, step.at), step.option("buffer", str)
    if not any(isinstance(s, Allocate) and s.buffer.name == name for s in loop.body):
        raise Refused(f"loop {loop.variable} makes no buffer {name}")
    front, made = expand_body(loop, frozenset({name}))
    return Taken(replaced(program, step.at, (*front, made)))


def _expands(program: Program, at: Path, loop: Loop) -> Iterator[Step]:
    for statement in loop.body:
        if isinstance(statement, Allocate):
            yield Step("expand", at, (("buffer", statement.buffer.name),))


def _rotate(program: Program, step: Step) -> Taken:
    loop, slots, space = loop_at(program, step.at), step.option("slots"), step.option("space", str)
    chosen = frozenset(_on_chip(loop, space))
    if not chosen:
        raise Refused(f"loop {loop.variable} makes no tile in {space}")
    if slots == loop.trips:
        front, made = expand_body(loop, chosen)
        return Taken(replaced(program, step.at, (*front, made)))
    outer = split_loop(loop, slots, fresh(program, loop.variable))
    inner = outer.body[0]
    assert isinstance(inner, Loop)
    front, made = expand_body(inner, chosen)
    return Taken(replaced(program, step.at, (with_body(outer, (*front, made)),)))


def _on_chip(loop: Loop, space: str) -> Iterator[str]:
    """The tiles that each iteration makes: in `sbuf`, in `psum`, or in both (`chip`)."""
    wanted = {"sbuf": (Space.sbuf,), "psum": (Space.psum,), "chip": (Space.sbuf, Space.psum)}
    if space not in wanted:
        raise Refused(f"space is sbuf, psum or chip, got {space}")
    for s in loop.body:
        if isinstance(s, Allocate) and s.buffer.space in wanted[space] and not s.buffer.address:
            yield s.buffer.name


def _rotates(program: Program, at: Path, loop: Loop) -> Iterator[Step]:
    spaces = {s.buffer.space for s in loop.body if isinstance(s, Allocate)} - set(HBM)
    names = [n for n, s in (("sbuf", Space.sbuf), ("psum", Space.psum)) if s in spaces]
    for space in ["chip", *names] if len(names) > 1 else names:
        for slots in SLOTS:
            if slots <= loop.trips and loop.trips % slots == 0:
                yield Step("rotate", at, (("slots", slots), ("space", space)))


EXPAND = Transform(
    "expand", "a buffer made in a loop, as one made before it, a slot per iteration",
    _expands, _expand,
)  # fmt: skip
ROTATE = Transform(
    "rotate",
    "tiles of a loop's body get `slots` places that take turns",
    _rotates,
    _rotate,
)
