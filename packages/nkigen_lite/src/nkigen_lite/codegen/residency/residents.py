"""Arrays that parts of a kernel hand to each other through HBM, in SBUF from their first use on.

An array is resident where all transfers of its elements agree on the partitions, or few transfers
between partitions do what remains; where it fits beside the tiles; and where that is predicted
faster. Arguments that are read several times are loaded once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from math import inf, prod

from neuroncore.enums import MemorySpace
from neuroncore.machine.core import NeuronCore
from neuroncore.program import (
    Buffer,
    Program,
    peaks,
)
from neuroncore.spec import row_major
from neuroncore.targets import PARTITIONS, resolve_target
from nkigen_lite.codegen.emission.candidates import TimedProgram
from nkigen_lite.codegen.emission.writer import new_name
from nkigen_lite.codegen.residency.hbm_uses import Transfer, Uses, uses_of
from nkigen_lite.codegen.residency.layouts import ResidentLayout
from nkigen_lite.codegen.residency.tile_renaming import Renamer
from nkigen_lite.codegen.residency.transfer_removal import Resident, with_residents
from nkigen_lite.fusion.budget import PLACES


def candidates(program: Program) -> list[Resident]:
    """The arrays that may be on chip, the largest saving first."""
    buffers, arguments = program.buffers(), {p.name for p in program.parameters}
    taken, found = {*buffers}, list[Resident]()
    for name, uses in uses_of(program).items():
        made = _resident(buffers[name], uses, name in arguments, name in program.results)
        if made is not None and made.saved > made.is_argument * SMALL_ARGUMENT_BYTES:
            wanted = f"{name.replace('_in_hbm', '')}_on_chip"
            new = new_name(wanted, taken.__contains__, taken.add)
            found.append(replace(made, buffer=replace(made.buffer, name=new)))
    return sorted(found, key=lambda r: -r.saved)


SMALL_ARGUMENT_BYTES = 4096
"""An argument is loaded again where that saves no more: its transfers wait for nothing, one on chip
would wait for the first."""


def _resident(array: Buffer, uses: Uses, is_argument: bool, is_result: bool) -> Resident | None:
    """The array in the layout that saves the most; None where there is none."""
    if array.content is not None or not uses.may_stay(array, is_argument):
        return None
    tries = (
        _in_layout(array, uses, layout, is_argument, is_result)
        for layout in _layouts(array, uses.transfers)
        if all(t.is_possible(layout) for t in uses.stores())
    )
    return max(tries, key=lambda r: r.saved, default=None)


def _layouts(array: Buffer, transfers: list[Transfer]) -> set[ResidentLayout]:
    """The layouts in which some transfer is a tile."""
    most: dict[int, int] = {}
    for each in transfers:
        partitions, stride = each.access.shape[0], each.access.strides[0]
        run = stride if partitions > 1 else array.size
        if run > 0 and partitions <= PARTITIONS and array.size % run == 0:
            most[run] = max(most.get(run, 1), partitions)
    return {ResidentLayout(run, partitions, array.size) for run, partitions in most.items()}


def _in_layout(
    array: Buffer, uses: Uses, layout: ResidentLayout, is_argument: bool, is_result: bool
) -> Resident:
    possible = [t for t in uses.loads() if t.is_possible(layout)]
    everywhere = len(possible) == len(uses.loads()) and not uses.is_used_otherwise
    is_stored = is_result or not (everywhere or is_argument)
    saved = _bytes_of(array, possible) - is_argument * array.num_bytes
    saved += (not is_stored) * _bytes_of(array, uses.stores())
    (dtype,) = uses.dtypes(array)
    shape = _shape(layout, uses.transfers)
    return Resident(
        array, Buffer(array.name, shape, dtype, MemorySpace.sbuf), layout, uses.first, is_stored,
        is_argument, all(t.is_direct(layout) for t in uses.transfers),
        not is_argument and _is_faster(uses, layout), saved,
        frozenset(t.other.buffer for t in uses.transfers),
    )  # fmt: skip


def _bytes_of(array: Buffer, transfers: Iterable[Transfer]) -> int:
    return sum(t.bytes_of(array) for t in transfers)


def _is_faster(uses: Uses, layout: ResidentLayout) -> bool:
    runs = [t.run_on_chip(layout) for t in uses.transfers]
    return inf in runs and min(runs) >= min(t.run() for t in uses.transfers)


def _shape(layout: ResidentLayout, transfers: list[Transfer]) -> tuple[int, ...]:
    """Of the tile that most transfers move, if one is all of the array."""
    plain = (layout.partitions, layout.row)
    whole = Counter[tuple[int, ...]]([plain])
    for each in transfers:
        found = layout.direct("", each.access, each.ranges)
        if found is None or len(found.shape) < len(plain):
            continue
        if (found.size, found.strides) == (prod(plain), row_major(found.shape)):
            whole[found.shape] += 1
    return max(whole, key=whole.__getitem__)


def fitting(program: Program, found: list[Resident]) -> list[Resident]:
    """The first of them that fit beside the tiles of the program, each of which has room twice; of
    two of which one is copied to the other, the first."""
    held = peaks(program, resolve_target(program.target))[MemorySpace.sbuf].held
    left, kept = resolve_target(program.target).usable_sbuf_bytes - PLACES * held, list[Resident]()
    for each in found:
        if each.buffer.free_bytes <= left and each.others.isdisjoint(k.array.name for k in kept):
            left -= each.buffer.free_bytes
            kept.append(each)
    return kept


def keep_on_chip(timed: TimedProgram, is_compared: bool = True) -> tuple[TimedProgram, list[str]]:
    """The program with arrays on chip, and which, where that is predicted faster; it is not
    `is_compared` where it was for another program of the same arrays."""
    program = timed.program
    every = fitting(program, candidates(program))
    direct = [r for r in every if r.is_direct]
    for some in filter(None, (every, direct if len(direct) < len(every) else [])):
        new = _with(program, some)
        if not is_compared or all(r.is_faster for r in some) or new.us < timed.us:
            return new, [str(r) for r in some]
    return timed, []


def _with(program: Program, residents: list[Resident]) -> TimedProgram:
    buffers = program.buffers() | {r.buffer.name: r.buffer for r in residents}
    renamer = Renamer(NeuronCore(program.target, watchers=()), program.nki, buffers)
    return TimedProgram(with_residents(program, residents, renamer))
