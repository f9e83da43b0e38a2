"""A program with arrays on chip: their transfers removed, or between partitions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from itertools import pairwise

from neuroncore.errors import Place
from neuroncore.program import (
    Access,
    Affine,
    Allocate,
    Buffer,
    Call,
    Loop,
    Program,
    Statement,
    make_call,
)
from nkigen_lite.codegen.emission.writer import new_name
from nkigen_lite.codegen.matmul.operand_tiles import LOAD_BYTES
from nkigen_lite.codegen.residency.hbm_uses import Transfer, transfer_of
from nkigen_lite.codegen.residency.layouts import Ranges, ResidentLayout
from nkigen_lite.codegen.residency.tile_renaming import Body, Renamer


@dataclass(frozen=True, slots=True)
class Resident:
    """An array of HBM that is on chip in a buffer of this layout; `is_stored`: in HBM too."""

    array: Buffer
    buffer: Buffer
    layout: ResidentLayout
    first: int
    is_stored: bool
    is_argument: bool
    is_direct: bool
    is_faster: bool
    """Whether some transfers go and no other one moves shorter runs."""
    saved: int
    others: frozenset[str]
    """What it is copied from or to."""

    def __str__(self) -> str:
        return f"{self.array.name} stays in SBUF: {self.saved:,} B of HBM less"


def with_residents(program: Program, residents: list[Resident], renamer: Renamer) -> Program:
    """The program with these arrays on chip; `renamer` has their buffers."""
    rewriter = _Rewriter({r.array.name: r for r in residents}, renamer)
    starts: dict[int, list[Statement]] = {}
    for each in residents:
        new = [Allocate(each.buffer), *rewriter.loads(each)]
        starts.setdefault(each.first, []).extend(new)
    body = [s for n, at in enumerate(program.body) for s in (*starts.get(n, ()), at)]
    gone = {r.array.name for r in residents if not (r.is_stored or r.is_argument)}
    done = rewriter.block(tuple(body), {})
    kept = (s for s in done if not (isinstance(s, Allocate) and s.buffer.name in gone))
    return replace(program, body=tuple(kept))


@dataclass(frozen=True, slots=True)
class _Rewriter:
    """Rewrites blocks; `kept` are transfers that remain, `residents` are by the array in HBM."""

    residents: dict[str, Resident]
    renamer: Renamer
    kept: list[Statement] = field(default_factory=list)

    def loads(self, resident: Resident) -> list[Statement]:
        """The transfers that load an argument."""
        if not resident.is_argument:
            return []
        layout, name = resident.layout, resident.array.name
        run, block = layout.run, layout.run * layout.partitions
        blocks, rest = divmod(layout.size, block)
        each = max(1, LOAD_BYTES // (run * resident.array.dtype.itemsize))
        places = [
            (first * block, layout.partitions, min(each, blocks - first))
            for first in range(0, blocks, each)
        ]
        places += [(blocks * block, rest // run, 1)] if rest else []
        for start, partitions, count in places:
            look = (
                resident.buffer.dtype if resident.buffer.dtype is not resident.array.dtype else None
            )
            source = Access(name, Affine(start), (partitions, count, run), (run, block, 1), look)
            target = layout.direct(resident.buffer.name, source, {})
            assert target is not None, "whole runs"
            self.kept.append(make_call("dma_copy", dst=target, src=source))
        return self.kept[len(self.kept) - len(places) :]

    def block(self, block: Body, ranges: Ranges) -> Body:
        """The block without transfers of residents."""
        body = tuple(
            replace(s, body=self.block(s.body, {**ranges, s.variable: s.values}))
            if isinstance(s, Loop) else s
            for s in block
        )  # fmt: skip
        start = 0
        while (found := self.next(body, start)) is not None:
            body = self.moved(body, *found, ranges)
            start = max(0, found[0] - 1)  # an allocation before it may have gone
        return body

    def next(self, body: Body, start: int) -> tuple[int, str] | None:
        """(number, operand) of the first transfer from `start` on that is not done."""
        kept = set(map(id, self.kept))
        for number, statement in enumerate(body[start:], start):
            if isinstance(statement, Call) and id(statement) not in kept:
                for name, access in statement.accesses.items():
                    if access.buffer in self.residents:
                        return number, name
        return None

    def moved(self, body: Body, number: int, name: str, ranges: Ranges) -> Body:
        """The block with the transfer on chip, without it, or as before where it remains."""
        call = body[number]
        assert isinstance(call, Call)
        access = call.accesses[name]
        resident = self.residents[access.buffer]
        transfer = transfer_of(call, name, access, ranges, 0, self.renamer.buffers)
        if transfer is None:
            return self.remaining(body, call)
        place = resident.layout.direct(resident.buffer.name, access, ranges)
        on_chip = {r.buffer.name for r in self.residents.values()}
        if place is not None and transfer.other.buffer not in on_chip:
            new = self.renamer.without_transfer(body, number, transfer.other, place, ranges)
            if new is not None:
                return self.stored(new, len(new) - len(body) + number, call, place, resident, name)
        return self.transferred(body, number, transfer, resident, place)

    def remaining(self, body: Body, call: Call) -> Body:
        self.kept.append(call)
        return body

    def stored(
        self, body: Body, number: int, call: Call, place: Access, resident: Resident, name: str
    ) -> Body:
        """The block with a store of what is on chip where the array is needed in HBM too."""
        if name != "dst" or not resident.is_stored:
            return body
        store = replace(call, operands={**call.operands, "src": place})
        self.kept.append(store)
        return (*body[: number + 1], store, *body[number + 1 :])

    def transferred(
        self, body: Body, number: int, transfer: Transfer, resident: Resident, place: Access | None
    ) -> Body:
        """The block with transfers on chip."""
        pairs = transfer.moved(resident.layout, resident.buffer.name)
        if pairs is None and place is not None:
            pairs = [(place, transfer.other)]
        if pairs is None:
            call = body[number]
            assert isinstance(call, Call)
            return self.remaining(body, call)
        calls = _calls(pairs, transfer, body[number].origin, self.renamer.buffers)
        if transfer.is_store and resident.is_stored:
            self.kept.append(body[number])
            calls.append(body[number])
        return (*body[:number], *calls, *body[number + 1 :])


def _calls(
    pairs: list[tuple[Access, Access]],
    transfer: Transfer,
    origin: Place | None,
    taken: Collection[str],
) -> list[Statement]:
    """The transfers, more than two in a loop where they are evenly apart."""
    steps = _steps(pairs)
    if steps is None:
        sides = [_sides(transfer.is_store, *pair) for pair in pairs]
        return [make_call("dma_copy", None, origin, **side) for side in sides]
    name = new_name("part", lambda n: n in taken or n in transfer.ranges, lambda _: None)
    here, there = (
        replace(access, offset=access.offset + Affine.variable(name, step))
        for access, step in zip(pairs[0], steps, strict=True)
    )
    call = make_call("dma_copy", None, origin, **_sides(transfer.is_store, here, there))
    return [Loop(name, 0, len(pairs), (call,))]


def _steps(pairs: list[tuple[Access, Access]]) -> tuple[int, ...] | None:
    """How far more than two transfers are apart on both sides; None where that differs."""
    steps = [{b.offset - a.offset for a, b in pairwise(side)} for side in zip(*pairs, strict=True)]
    if len(pairs) < 3 or any(len(side) > 1 for side in steps):
        return None
    return tuple(side.pop().constant for side in steps)


def _sides(is_store: bool, here: Access, there: Access) -> dict[str, Access]:
    return {"dst": here, "src": there} if is_store else {"dst": there, "src": here}
