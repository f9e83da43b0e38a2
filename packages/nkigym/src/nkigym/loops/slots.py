"""expand and rotate: a place of its own for each iteration's tile.

    for k in range(4):                        t = buffer(bfloat16[128, 4, 512], sbuf)
        t = buffer(bfloat16[128, 512], sbuf)  for k in range(4):
        load(t[:, :], …)                   →      load(t[:, k, :], …)
        use(t[:, :])                              use(t[:, k, :])

`rotate` gives the tiles of a loop's body `slots` places that take turns: the loop is split, and the
buffers are expanded over the inner one. The next tile is loaded while this one is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from neuroncore.engines import HBM, Space
from neuroncore.program import Access, Affine, Allocate, Buffer, Loop, Program
from neuroncore.program.binding import in_elements
from nki_dtypes import DType
from nkigym.loops.making import new_access, new_affine, new_allocate, new_buffer
from nkigym.loops.split import halves
from nkigym.loops.step import Path, Refused, Step
from nkigym.loops.transform import Taken, Transform
from nkigym.loops.tree import (
    Body,
    Scope,
    changed_body,
    fresh,
    loop_at,
    loops_around,
    replaced,
    with_body,
    with_offset,
)

SLOTS = (2, 3, 4, 8)
"""Numbers of places that `rotate` offers."""


def with_slots(buffer: Buffer, slots: int) -> Buffer:
    """The buffer `slots` times: on chip side by side in each partition."""
    head, tail = buffer.shape[:1], buffer.shape[1:]
    shape = (*head, slots, *tail) if buffer.space.on_chip else (slots, *head, *tail)
    return new_buffer(buffer, buffer.name, shape)


def slotter(
    old: Mapping[str, Buffer], loop: Loop, scope: Scope, values: Mapping[str, Affine] | None = None
) -> Callable[[Access], Access]:
    """What makes of accesses to the `old` buffers those to the slot of this iteration of `loop`;
    first it replaces loop variables by their `values`, everywhere. The scope is that of the access.
    """
    given = values or {}
    places: dict[tuple[int, _Terms], Affine] = {}
    """Offsets, and what they are with the values of loop variables."""
    units: dict[tuple[str, DType | None], tuple[int, Affine]] = {}
    """How far slots are apart, and where this iteration's is."""
    known: dict[_Place, _Moved] = {}
    """Offset and strides, of whatever buffer → those among slots."""

    def given_offset(offset: Affine) -> Affine:
        for name, _ in offset.terms:
            if name in given:
                key = offset.constant, offset.terms
                found = places.get(key)
                if found is None:
                    found = places[key] = offset.substitute(given)
                return found
        return offset

    def change(access: Access) -> Access:
        buffer = old.get(access.buffer)
        offset = given_offset(access.offset) if given else access.offset
        if buffer is None:
            return access if offset is access.offset else with_offset(access, offset)
        key = access.buffer, access.dtype
        apart = units.get(key)
        if apart is None:
            unit = max(1, _unit(access, buffer))
            apart = units[key] = unit, Affine(-unit * loop.start, ((loop.variable, unit),))
        if access.indirect is not None and (access.indirect.dim or not buffer.space.on_chip):
            raise Refused(f"an index that is read on the device moves an access to {buffer.name}")
        if not buffer.space.on_chip:
            return with_offset(access, offset + apart[1])
        place = apart[0], offset.constant, offset.terms, access.shape, access.strides
        found = known.get(place)
        if found is None or (found[2] and not _is_same(found[2], scope)):
            found = known[place] = _among(access, offset, buffer, loop.trips, apart, scope)
        moved, strides, _ = found
        return new_access(access, access.buffer, moved, strides)

    return change


_Terms = tuple[tuple[str, int], ...]
_Place = tuple[int, int, _Terms, tuple[int, ...], tuple[int, ...]]
_Moved = tuple[Affine, tuple[int, ...], list[Loop]]
"""Offset and strides, and the loops on whose values it depends that these are right."""


def _is_same(loops: list[Loop], scope: Scope) -> bool:
    """Whether the loops around of these variables run over the same values."""
    for loop in loops:
        here = scope[loop.variable]
        if here is not loop and here.values != loop.values:
            return False
    return True


def _among(
    access: Access,
    offset: Affine,
    buffer: Buffer,
    slots: int,
    apart: tuple[int, Affine],
    scope: Scope,
) -> _Moved:
    """Offset and strides of an access to a tile where there are `slots` of it, so far apart.

    What is as far as a row moves by partitions, all else by columns. The columns of an access are
    in one row, whatever the loops' variables are, or it is refused: that row is its partition.
    """
    row, slot = apart
    strides, low, high = access.strides, offset.constant, offset.constant
    for n, count in enumerate(access.shape):
        stride = strides[n]
        if -row < stride < row:
            if stride > 0:
                high += (count - 1) * stride
            else:
                low += (count - 1) * stride
        elif n and count > 1:
            raise Refused(f"an access to {buffer.name} takes its partitions in two dimensions")
    terms, loops = offset.terms, []
    for name, move in terms:
        if -row < move < row:
            around = scope.get(name)
            if around is None:
                raise Refused(f"{name} is the variable of no loop around")
            first, over = move * around.start, move * (around.trips - 1) * around.step
            low, high = low + first + min(over, 0), high + first + max(over, 0)
            loops.append(around)
        else:
            terms = tuple([(name, _wider(c, row, slots, buffer)) for name, c in offset.terms])
    partition = low // row
    if high // row != partition:
        raise Refused(f"columns of an access to {buffer.name} are not known to be in one partition")
    constant = offset.constant + partition * row * (slots - 1)
    if not -row < strides[0] < row:
        strides = (_wider(strides[0], row, slots, buffer), *strides[1:])
    return new_affine(constant, terms) + slot, strides, loops


def _unit(access: Access, buffer: Buffer) -> int:
    """How far slots are apart."""
    return in_elements(access, buffer, buffer.row if buffer.space.on_chip else buffer.size)


def _wider(move: int, row: int, slots: int, buffer: Buffer) -> int:
    """A step in a buffer of `row` elements per partition as one where they are `slots` times."""
    if abs(move) < row:
        return move
    if move % row:
        raise Refused(f"an access to {buffer.name} steps over partitions and columns at once")
    return move * slots


def expand_body(
    loop: Loop,
    around: Sequence[Loop],
    chosen: frozenset[str],
    values: Mapping[str, Affine] | None = None,
) -> tuple[Body, Loop]:
    """Allocations that now stand in front of the loop, and the loop without them; it has others
    `around`.

    Variables are replaced by their `values`, if there are some.
    """
    if loop.step != 1:
        raise Refused(f"loop {loop.variable} does not count by 1")
    made = [s for s in loop.body if isinstance(s, Allocate) and s.buffer.name in chosen]
    old = {s.buffer.name: s.buffer for s in made}
    for buffer in old.values():
        if buffer.address is not None or buffer.content is not None:
            raise Refused(f"{buffer.name} has a fixed place or content")

    rest = tuple([s for s in loop.body if not (isinstance(s, Allocate) and s.buffer.name in old)])
    scope = {each.variable: each for each in (*around, loop)}
    body = changed_body(rest, slotter(old, loop, scope, values), scope=scope)
    front = tuple([new_allocate(s, with_slots(s.buffer, loop.trips)) for s in made])
    return front, with_body(loop, body)


def _expand(program: Program, step: Step) -> Taken:
    loop, name = loop_at(program, step.at), step.option("buffer", str)
    if not any(isinstance(s, Allocate) and s.buffer.name == name for s in loop.body):
        raise Refused(f"loop {loop.variable} makes no buffer {name}")
    front, made = expand_body(loop, loops_around(program, step.at), frozenset({name}))
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
    around = loops_around(program, step.at)
    if slots == loop.trips:
        front, made = expand_body(loop, around, chosen)
        return Taken(replaced(program, step.at, (*front, made)))
    outer, inner, values = halves(loop, slots, fresh(program, loop.variable))
    front, made = expand_body(inner, (*around, outer), chosen, values)
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
