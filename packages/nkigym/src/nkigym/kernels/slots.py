"""Buffers with a slot per iteration of a loop, and the accesses to the slots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from neuroncore.program import Access, Affine, Allocate, Buffer, Loop
from neuroncore.program.ir.binding import in_elements
from nki_dtypes import DType
from nkigym.kernels.step import TransformError
from nkigym.kernels.tree import Body, Scope, access_like, changed_body, with_body, with_offset


def with_slots(buffer: Buffer, slots: int) -> Buffer:
    """The buffer `slots` times: on chip side by side in each partition."""
    head, tail = buffer.shape[:1], buffer.shape[1:]
    shape = (*head, slots, *tail) if buffer.space.on_chip else (slots, *head, *tail)
    return replace(buffer, shape=shape)


def slot_rewriter(
    old: Mapping[str, Buffer], loop: Loop, scope: Scope, values: Mapping[str, Affine] | None = None
) -> Callable[[Access], Access]:
    """Rewrites accesses to the `old` buffers as those to the slot of this iteration of `loop`;
    first it replaces loop variables by their `values`, everywhere. The scope is that of the access.
    """
    given = values or {}
    places: dict[tuple[int, _Terms], Affine] = {}
    """Offsets, and what they are with the values of loop variables."""
    units: dict[tuple[str, DType | None], tuple[int, Affine]] = {}
    """How far slots are apart, and where this iteration's is."""
    known: dict[_Place, _Moved] = {}
    """Offset and strides in a buffer → offset and strides among its slots."""

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
        spacing = units.get(key)
        if spacing is None:
            unit = max(1, _unit(access, buffer))
            spacing = units[key] = unit, Affine(-unit * loop.start, ((loop.variable, unit),))
        if access.indirect is not None and (access.indirect.dim or not buffer.space.on_chip):
            raise TransformError(
                f"an index that is read on the device moves an access to {buffer.name}"
            )
        if not buffer.space.on_chip:
            return with_offset(access, offset + spacing[1])
        place = spacing[0], offset.constant, offset.terms, access.shape, access.strides
        found = known.get(place)
        if found is None or (found[2] and not _is_same(found[2], scope)):
            found = known[place] = _among(access, offset, buffer, loop.trips, spacing, scope)
        moved, strides, _ = found
        return access_like(access, access.buffer, moved, strides)

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
    spacing: tuple[int, Affine],
    scope: Scope,
) -> _Moved:
    """Offset and strides of an access to a tile where there are `slots` of it, so far apart.

    A stride of a row or more moves by partitions, any other by columns. The columns of an access
    stay in one row for all values of the loops' variables, or it is rejected.
    """
    row, slot = spacing
    strides, low, high = access.strides, offset.constant, offset.constant
    for n, count in enumerate(access.shape):
        stride = strides[n]
        if -row < stride < row:
            if stride > 0:
                high += (count - 1) * stride
            else:
                low += (count - 1) * stride
        elif n and count > 1:
            raise TransformError(
                f"an access to {buffer.name} takes its partitions in two dimensions"
            )
    terms, loops = offset.terms, []
    for name, move in terms:
        if -row < move < row:
            around = scope.get(name)
            if around is None:
                raise TransformError(f"{name} is the variable of no loop around")
            first, over = move * around.start, move * (around.trips - 1) * around.step
            low, high = low + first + min(over, 0), high + first + max(over, 0)
            loops.append(around)
        else:
            terms = tuple([(name, _wider(c, row, slots, buffer)) for name, c in offset.terms])
    partition = low // row
    if high // row != partition:
        raise TransformError(
            f"columns of an access to {buffer.name} are not known to be in one partition"
        )
    constant = offset.constant + partition * row * (slots - 1)
    if not -row < strides[0] < row:
        strides = (_wider(strides[0], row, slots, buffer), *strides[1:])
    return Affine(constant, terms) + slot, strides, loops


def _unit(access: Access, buffer: Buffer) -> int:
    """How far slots are apart."""
    return in_elements(access, buffer, buffer.row if buffer.space.on_chip else buffer.size)


def _wider(move: int, row: int, slots: int, buffer: Buffer) -> int:
    """A step in a buffer of `row` elements per partition as one where they are `slots` times."""
    if abs(move) < row:
        return move
    if move % row:
        raise TransformError(
            f"an access to {buffer.name} steps over partitions and columns at once"
        )
    return move * slots


def expand_body(
    loop: Loop,
    around: Sequence[Loop],
    chosen: frozenset[str],
    values: Mapping[str, Affine] | None = None,
) -> tuple[Body, Loop]:
    """The allocations in front of the loop, and the loop without them, with the loops `around` it.

    Variables are replaced by their `values`, if there are some.
    """
    if loop.step != 1:
        raise TransformError(f"loop {loop.variable} does not count by 1")
    made = [s for s in loop.body if isinstance(s, Allocate) and s.buffer.name in chosen]
    old = {s.buffer.name: s.buffer for s in made}
    for buffer in old.values():
        if buffer.address is not None or buffer.content is not None:
            raise TransformError(f"{buffer.name} has a fixed place or content")

    rest = tuple([s for s in loop.body if not (isinstance(s, Allocate) and s.buffer.name in old)])
    scope = {each.variable: each for each in (*around, loop)}
    body = changed_body(rest, slot_rewriter(old, loop, scope, values), scope=scope)
    front = tuple([Allocate(with_slots(s.buffer, loop.trips), s.origin) for s in made])
    return front, with_body(loop, body)
