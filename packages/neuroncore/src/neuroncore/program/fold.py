"""Makes one buffer of several: tiles that a kernel keeps in a Python list and uses by index.

    for k …: t_k = buffer(float32[128, 512], sbuf)  →  t = buffer(float32[128, K, 512], sbuf)
             … t_k[:, 0:64] …                               … t[:, k, 0:64] …

On chip the extra dimension follows the partitions, in HBM it comes first. Every member is
allocated once and all are alive together, so content, poison and PSUM's written bits stay with
their elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, replace

from neuroncore.engines import Space
from neuroncore.program.affine import Affine
from neuroncore.program.nodes import (
    Access,
    Allocate,
    Buffer,
    Statement,
    accesses,
    map_accesses,
)
from neuroncore.targets import TARGETS

_BANK = TARGETS["trn2"].psum_bank_bytes  # the same on every generation
_MOST = {Space.psum: TARGETS["trn2"].psum_bytes, Space.sbuf: TARGETS["trn1"].usable_sbuf_bytes}


@dataclass(frozen=True, slots=True)
class Fold:
    """Buffers, all alike, to become one; it takes the first one's name."""

    members: tuple[str, ...]


def can_fold(users: Iterable[Statement], buffers: Mapping[str, Buffer], members: list[str]) -> bool:
    """Whether the members fit one buffer and every access to them can be rewritten."""
    first = buffers[members[0]]
    if first.address is not None or not _fits(first, len(members)):
        return False
    mine = set(members)
    return all(
        _can_move(access, first)
        for statement in users
        for access in accesses(statement)
        if access.buffer in mine
    )


def _fits(buffer: Buffer, count: int) -> bool:
    if not buffer.space.on_chip:
        return True
    size = buffer.free_bytes
    aligned = buffer.space is not Space.psum or not (size % _BANK and _BANK % size)
    return aligned and size * count <= _MOST[buffer.space]


def _can_move(access: Access, buffer: Buffer) -> bool:
    """Each loop variable moves the access over whole partitions or inside one, not both."""
    if access.indirect is not None:
        return False
    row = _row(access, buffer)
    if buffer.space.on_chip and access.shape[0] > 1 and access.strides[0] != row:
        return False  # a DMA that skips or repeats partitions
    return not buffer.space.on_chip or all(
        c % row == 0 or abs(c) < row for _, c in access.offset.terms
    )


def _row(access: Access, buffer: Buffer) -> int:
    width = (access.dtype or buffer.dtype).itemsize
    return max(1, buffer.free_bytes // width)


def fold(
    body: list[Statement], buffers: MutableMapping[str, Buffer], folds: list[Fold]
) -> list[Statement]:
    """The statements over the folded buffers, which are entered into `buffers`."""
    member_of = {m: (f, i) for f in folds for i, m in enumerate(f.members)}
    old = {f: buffers[f.members[0]] for f in folds}
    for f in folds:
        buffers[f.members[0]] = _joined(old[f], len(f.members))

    def move(access: Access) -> Access:
        found = member_of.get(access.buffer)
        if found is None:
            return access
        f, number = found
        return _in_joined(access, old[f], len(f.members), number)

    made: list[Statement] = []
    for statement in body:
        if isinstance(statement, Allocate) and statement.buffer.name in member_of:
            f, number = member_of[statement.buffer.name]
            if number == 0:
                made.append(replace(statement, buffer=buffers[f.members[0]]))
        elif any(access.buffer in member_of for access in accesses(statement)):
            made.append(map_accesses(statement, move))
        else:
            made.append(statement)
    return made


def _joined(buffer: Buffer, count: int) -> Buffer:
    head, tail = (1, 1) if buffer.space.on_chip else (0, 0)
    return replace(buffer, shape=(*buffer.shape[:head], count, *buffer.shape[tail:]))


def _in_joined(access: Access, buffer: Buffer, count: int, number: int) -> Access:
    """The access to member `number`, as an access to the buffer of all `count`."""
    name = access.buffer if number == 0 else None
    if not buffer.space.on_chip:
        width = (access.dtype or buffer.dtype).itemsize
        size = buffer.num_bytes // width
        moved = access.offset + number * size
        return replace(access, buffer=name or buffer.name, offset=moved)
    row = _row(access, buffer)
    constant = access.offset.constant
    offset = Affine(constant // row * row * count + constant % row + number * row)
    for variable, c in access.offset.terms:
        offset += Affine.variable(variable, c * count if c % row == 0 else c)
    strides = (row * count, *access.strides[1:])
    return replace(access, buffer=buffer.name, offset=offset, strides=strides)
