"""Memory that each instance accesses: cells, the atoms of one life of a buffer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from tokenplan.checker.errors import PlanFileError, TooBigError
from tokenplan.checker.records import Access, Buffer
from tokenplan.checker.unrolled import Unrolled, linear

CellAccess = tuple[str, tuple[int, ...]]
"""R, W or A and the cells."""


@dataclass(slots=True)
class Memory:
    """Cells of memory, each a set of bytes that belong to the same accesses.

    `accesses` gives every instance's accesses, in the order of its operation's.
    """

    accesses: list[list[CellAccess]]
    owners: list[tuple[Buffer, int, int]] = field(default_factory=list)
    """Per cell: its buffer, the buffer's life, the atom."""
    parts: dict[str, Atoms] = field(default_factory=dict)
    aliases: list[tuple[str, ...]] = field(default_factory=list)
    """Pairs of buffers that the file allows to share bytes."""

    def first_byte(self, cell: int) -> tuple[Buffer, int]:
        """A cell's buffer and the lowest byte in it."""
        buffer, _, atom = self.owners[cell]
        return buffer, int(self.parts[buffer.id].first_byte[atom])

    def num_bytes(self, cell: int) -> int:
        buffer, _, atom = self.owners[cell]
        return int(self.parts[buffer.id].num_bytes[atom])


def lay_out(unrolled: Unrolled, slots: Mapping[str, int] | None = None) -> Memory:
    """The cells that every instance accesses.

    A scoped buffer is other memory in every iteration of its scope, unless `slots` gives it s
    places: then iteration n is where iteration n - s was.
    """
    memory = Memory([[] for _ in range(unrolled.size)])
    memory.aliases = [c.buffers for c in unrolled.file.claims if c.what == "may_alias"]
    per_buffer: dict[str, list[tuple[int, int, Access]]] = {}
    for number, op in enumerate(unrolled.ops):
        for place, access in enumerate(op.accesses):
            per_buffer.setdefault(access.buffer, []).append((number, place, access))
    found: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for name, accesses in per_buffer.items():
        buffer = unrolled.file.buffers[name]
        _buffer(unrolled, memory, buffer, accesses, (slots or {}).get(name), found)
    for number, op in enumerate(unrolled.ops):
        for n, instance in enumerate(map(int, unrolled.positions[number])):
            memory.accesses[instance] = [
                (access.mode, found[number, place][n]) for place, access in enumerate(op.accesses)
            ]
    return memory


def _buffer(
    unrolled: Unrolled, memory: Memory, buffer: Buffer, accesses: list[tuple[int, int, Access]],
    slots: int | None, found: dict[tuple[int, int], list[tuple[int, ...]]],
) -> None:  # fmt: skip
    """Number the cells of one buffer; `found` gets them per operation, access and instance."""
    footprints, which = _footprints(unrolled, buffer, accesses)
    parts = memory.parts[buffer.id] = atoms(footprints)
    cells: dict[tuple[int, int], int] = {}
    made: dict[tuple[int, int], tuple[int, ...]] = {}
    for (op, place, _), mine in zip(accesses, which, strict=True):
        listed = found[op, place] = []
        for key in zip(mine, _lives(unrolled, op, buffer, slots), strict=True):
            if key not in made:
                which_one, life = key
                made[key] = tuple(
                    _cell(memory, cells, buffer, life, atom)
                    for atom in parts.of_footprint[which_one]
                )
            listed.append(made[key])


def _footprints(
    unrolled: Unrolled, buffer: Buffer, accesses: list[tuple[int, int, Access]]
) -> tuple[list[np.ndarray], list[list[int]]]:
    """All different footprints in a buffer, and per access which one each instance has."""
    kinds: dict[object, int] = {}
    known: dict[tuple[int, int], int] = {}
    footprints, which = [], []
    for op, _, access in accesses:
        shape = runs(access)
        kind = kinds.setdefault((shape.tobytes(), access.swizzle), len(kinds))
        mine = []
        for value in _offsets(unrolled, op, access).tolist():
            at = known.setdefault((kind, value), len(known))
            if at == len(footprints):
                footprints.append(_inside(buffer, footprint(access, shape, value)))
            mine.append(at)
        which.append(mine)
    return footprints, which


def _inside(buffer: Buffer, found: np.ndarray) -> np.ndarray:
    if len(found) and not 0 <= found[0, 0] <= found[-1, 1] <= buffer.num_bytes:
        raise PlanFileError(
            "body",
            f"a swizzled access has bytes {found[0, 0]} to {found[-1, 1]} of "
            f"{buffer.id}, which has {buffer.num_bytes}",
        )
    return found


def _cell(
    memory: Memory, cells: dict[tuple[int, int], int], buffer: Buffer, life: int, atom: int
) -> int:
    if (life, atom) not in cells:
        cells[life, atom] = len(memory.owners)
        memory.owners.append((buffer, life, atom))
    return cells[life, atom]


def _offsets(unrolled: Unrolled, op: int, access: Access) -> np.ndarray:
    value = access.offset.at(unrolled.columns(op))
    return np.broadcast_to(np.asarray(value, np.int64), len(unrolled.positions[op]))


def _lives(unrolled: Unrolled, op: int, buffer: Buffer, slots: int | None) -> list[int]:
    """Which life, or which slot, of the buffer every instance of an operation accesses."""
    sizes = [unrolled.trips[loop] for loop in buffer.scope]
    life = linear(unrolled.iterations[op][:, : len(buffer.scope)], sizes)
    return [int(n) for n in (life if slots is None else life % slots)]


def common(memory: Memory, earlier: int, later: int) -> dict[str, list[int]]:
    """The cells in which two instances conflict, by the kind of the conflict."""
    kinds: dict[str, set[int]] = {}
    for first, here in memory.accesses[earlier]:
        for second, there in memory.accesses[later]:
            if (kind := KINDS.get(first + second)) and (both := set(here) & set(there)):
                kinds.setdefault(kind, set()).update(both)
    return {kind: sorted(cells) for kind, cells in kinds.items()}


KINDS = {
    "WR": "RAW", "RW": "WAR", "WW": "WAW",
    "WA": "accumulate", "AW": "accumulate", "RA": "accumulate", "AR": "accumulate",
}  # fmt: skip
"""Earlier and later mode -> why their order matters; the others commute."""


def fight_over(unrolled: Unrolled, buffer: str, byte: int, earlier: int, later: int) -> set[str]:
    """The kinds of conflict of two instances over this byte of one life of the buffer."""
    scope = unrolled.file.buffers[buffer].scope
    where = [unrolled.where(instance) for instance in (earlier, later)]
    if any(where[0][loop] != where[1][loop] for loop in scope):
        return set()
    first, second = (
        {
            access.mode
            for access in unrolled.ops[int(unrolled.op[instance])].accesses
            if access.buffer == buffer and _covers(access, access.offset.at(at), byte)
        }
        for instance, at in zip((earlier, later), where, strict=True)
    )
    return {KINDS[a + b] for a in first for b in second if a + b in KINDS}


def _covers(access: Access, at: int, byte: int) -> bool:
    return any(first <= byte < last for first, last in footprint(access, runs(access), at).tolist())


# -- the bytes of accesses, as atoms ---------------------------------------------------------------


MOST_RUNS = 1 << 22
"""Runs of bytes of all different footprints of a buffer together."""
_SALT = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True)
class Atoms:
    """The bytes of a buffer, parted so that every footprint is a union of parts."""

    of_footprint: tuple[tuple[int, ...], ...]
    first_byte: np.ndarray
    """(atoms,): the lowest byte of each."""
    num_bytes: np.ndarray
    """(atoms,)."""


def runs(access: Access) -> np.ndarray:
    """(n, 2): the disjoint intervals [first, last) of bytes, from offset 0, in order."""
    if 0 in access.shape:
        return np.zeros((0, 2), np.int64)
    width, dims = access.width, []
    for extent, stride in sorted(zip(access.shape, access.strides, strict=True), key=_by_stride):
        if stride == width:  # goes on where the last one ended
            width *= extent
        elif extent > 1:
            dims.append((extent, stride))
    starts = np.zeros(1, np.int64)
    for extent, stride in dims:
        if len(starts) * extent > MOST_RUNS:
            raise TooBigError(f"an access to {access.buffer} has more than {MOST_RUNS} runs")
        steps = np.arange(extent, dtype=np.int64) * stride
        starts = np.unique((starts[:, None] + steps[None, :]).ravel())
    return merged_runs(starts, width)


def footprint(access: Access, plain: np.ndarray, offset: int) -> np.ndarray:
    """(n, 2): the intervals of an access at this offset; `plain` are its `runs`."""
    moved = plain + offset
    if access.swizzle is None:
        return moved
    total = int((moved[:, 1] - moved[:, 0]).sum())
    if total > MOST_RUNS:
        raise TooBigError(f"a swizzled access to {access.buffer} has more than {MOST_RUNS} bytes")
    every = [np.arange(first, last) for first, last in moved.tolist()]
    found = np.sort(access.swizzle(np.concatenate([moved[:0, 0], *every])))
    return merged_runs(found, 1) if len(found) else moved


def _by_stride(dim: tuple[int, int]) -> tuple[int, int]:
    return abs(dim[1]), dim[0]


def merged_runs(starts: np.ndarray, width: int) -> np.ndarray:
    """Intervals of this width from sorted starts, adjacent ones merged."""
    fresh = np.flatnonzero(np.diff(starts) > width) + 1
    first = starts[np.concatenate(([0], fresh))]
    last = starts[np.concatenate((fresh - 1, [len(starts) - 1]))] + width
    return np.stack((first, last), 1)


def atoms(footprints: list[np.ndarray]) -> Atoms:
    """The atoms of these footprints, each the (n, 2) disjoint sorted runs of an access."""
    total = sum(map(len, footprints))
    if total > MOST_RUNS:
        raise TooBigError(f"accesses to one buffer have {total} runs, more than {MOST_RUNS}")
    owner = np.repeat(np.arange(len(footprints)), [len(f) for f in footprints])
    every = np.concatenate([np.zeros((0, 2), np.int64), *footprints])
    cuts = np.unique(every)
    left, right = np.searchsorted(cuts, every[:, 0]), np.searchsorted(cuts, every[:, 1])
    part = _parts(owner, left, right, len(cuts), len(footprints))
    count = int(part.max(initial=-1)) + 1
    lengths = np.diff(cuts, append=cuts[-1:])
    first = np.full(count, np.iinfo(np.int64).max)
    covered = part >= 0
    np.minimum.at(first, part[covered], cuts[covered])
    size = np.zeros(count, np.int64)
    np.add.at(size, part[covered], lengths[covered])
    bounds = np.searchsorted(owner, np.arange(len(footprints) + 1))
    members = []
    for begin, end in pairwise(bounds):
        pieces = [part[a:b] for a, b in zip(left[begin:end], right[begin:end], strict=True)]
        found = np.unique(np.concatenate([part[:0], *pieces]))
        extent = int((every[begin:end, 1] - every[begin:end, 0]).sum())
        assert int(size[found].sum()) == extent, "atoms mix bytes that differ"
        members.append(tuple(map(int, found)))
    return Atoms(tuple(members), first, size)


def _parts(
    owner: np.ndarray, left: np.ndarray, right: np.ndarray, segments: int, owners: int
) -> np.ndarray:
    """(segments,): the atom of each segment, -1 where nothing accesses it.

    A segment's signature is the sum of two random numbers of every footprint that covers it; that
    no two different covers had the same is asserted by the caller.
    """
    random = np.random.default_rng(_SALT).integers(1, 1 << 63, (2, owners), np.uint64)
    signature = np.zeros((2, segments + 1), np.uint64)
    for row, numbers in zip(signature, random, strict=True):
        np.add.at(row, left, numbers[owner])
        np.subtract.at(row, right, numbers[owner])
        np.cumsum(row, out=row)
    number = np.zeros(segments + 1, np.int64)
    np.add.at(number, left, 1)
    np.subtract.at(number, right, 1)
    covered = np.cumsum(number)[:segments] > 0
    part = np.full(segments, -1, np.int64)
    _, inverse = np.unique(signature[:, :segments][:, covered], axis=1, return_inverse=True)
    part[covered] = inverse.ravel()
    return part


# -- tile blocks -----------------------------------------------------------------------------------

DYNAMIC = -(2**63)
"""The extent or stride that is an operand."""
OUTSIDE = 2**48
"""An index that no array contains, as greater ones are."""
NO_BYTES = np.zeros((0, 2), np.int64)


def runs_of_box(first: int, dims: Iterable[tuple[int, int]], width: int) -> np.ndarray:
    """The runs of elements of `width` bytes at first + Σ stride · index, dims being (count, stride)
    in bytes."""
    starts = np.asarray([first])
    for count, stride in sorted(dims, key=lambda dim: dim[1]):
        if stride == width and len(starts) == 1:
            width *= count
        elif count > 1:
            starts = (starts[:, None] + np.arange(count) * stride).reshape(-1)
    if len(starts) == 1:
        return starts + np.asarray([[0, width]])
    return merged_runs(np.unique(starts), width)


def runs_of_elements(addresses: np.ndarray, width: int) -> np.ndarray:
    """The runs of elements of `width` bytes at these addresses."""
    return merged_runs(np.unique(addresses), width) if addresses.size else NO_BYTES


@dataclass(frozen=True, slots=True)
class _Tensor:
    base: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any


@dataclass(frozen=True, slots=True)
class View:
    tensor: _Tensor
    tile: tuple[int, ...]
    steps: tuple[int, ...]
    dims: tuple[int, ...]
    padding: str | None
    sparse: int | None = None


def grid(run: Any, op: Any, view: View) -> tuple[np.ndarray, np.ndarray]:
    """Addresses of a tile's elements, and which of them are inside the tensor."""
    index, tensor = run.all(op, "index"), view.tensor
    rank, total = len(view.tile), 0
    inside = np.ones(view.tile, bool)
    for at, (extent, step) in enumerate(zip(view.tile, view.steps, strict=True)):
        dim, shape = view.dims[at], [1] * rank
        shape[at] = extent
        bits = np.asarray(index[at])
        start = np.minimum(bits.view(f"u{bits.itemsize}").astype(np.uint64), OUTSIDE)
        start = start.astype(np.int64)
        along = start if view.sparse == at else start * step + np.arange(extent)
        along = along.reshape(shape)
        inside &= along < tensor.shape[dim]
        total = total + along * tensor.strides[dim]
    size = np.dtype(tensor.dtype).itemsize
    return np.broadcast_to(tensor.base + total * size, view.tile), inside


def runs_of_tile(run: Any, op: Any, view: View) -> np.ndarray:
    """The bytes of a tile of a view, without the elements themselves where it is a box."""
    size, tensor = np.dtype(view.tensor.dtype).itemsize, view.tensor
    if view.sparse is not None:
        addresses, inside = grid(run, op, view)
        return runs_of_elements(addresses[inside], size)
    first, dims = tensor.base, []
    for at, index in enumerate(run.all(op, "index")):
        dim, start = view.dims[at], natural(index) * view.steps[at]
        low, high = start, min(start + view.tile[at], tensor.shape[dim])
        if low >= high:
            return NO_BYTES
        stride = _address(tensor.strides[dim] * size)
        first += low * stride
        dims.append((high - low, stride))
    return runs_of_box(_address(first), dims, size)


def _address(number: int) -> int:
    """The number of bytes that 64 bits contain."""
    return (number + 2**63) % 2**64 - 2**63


def natural(number: Any) -> int:
    """An index, extent or stride, which has no sign."""
    found = int(number)
    return found if found >= 0 else found + (1 << 8 * number.itemsize)


def make_tensor(run: Any, op: Any) -> list[Any]:
    kind = op.results[0].type
    shapes, strides = (map(natural, run.all(op, name)) for name in ("shape", "strides"))
    shape = tuple(next(shapes) if n == DYNAMIC else n for n in kind["shape"])
    steps = tuple(next(strides) if n == DYNAMIC else n for n in kind["strides"])
    return [_Tensor(int(run.value(op, "base")), shape, steps, run.dtype(kind["element"]))]


def make_view(run: Any, op: Any) -> list[Any]:
    kind, tensor = op.results[0].type, run.value(op, "tensor_view")
    tile, padding = kind["tile"], kind["padding"]
    if kind.kind == "gather_scatter_view":
        return [View(tensor, tile, tile, tuple(range(len(tile))), padding, kind["sparse_dim"])]
    steps = kind["traversal"] if kind.kind == "strided_view" else tile
    return [View(tensor, tile, steps, kind["dim_map"], padding)]
