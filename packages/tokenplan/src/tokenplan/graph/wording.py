"""Names of operations, iterations and elements in messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from neuroncore.integers import Digit
from neuroncore.program import Affine
from tokenplan.footprints import digits_of
from tokenplan.kernel.model import Access, Buffer, Kernel, Loop, Op


def op_name(op: Op) -> str:
    """The operation with its line: store (kernel.py:12)."""
    return f"{op.id} ({line_of(op)})" if op.place else op.id


def line_of(op: Op) -> str:
    """file.py:12, the file without its folder; nothing where the line is not known."""
    return f"{op.place.file.rpartition('/')[2]}:{op.place.line}" if op.place else ""


def at_iterations(kernel: Kernel, at: Mapping[str, int]) -> str:
    """Values of the loop variables: m = 0, k = 4."""
    loops = kernel.loops()
    found = (f"{loops[n].variable} = {loops[n].start + loops[n].step * i}" for n, i in at.items())
    return ", ".join(found) or "its only time"


def index_of(buffer: Buffer, byte: int) -> tuple[int, ...]:
    """The index of the element that holds a byte."""
    index, rest = [], byte // buffer.itemsize
    for size in reversed(buffer.shape):
        rest, position = divmod(rest, size)
        index.append(position)
    return tuple(reversed(index))


def element(buffer: Buffer, byte: int) -> str:
    """The element that holds a byte: a[128, 0]."""
    if buffer.space == "register":
        return f"register {buffer.id}"
    return f"{buffer.id}[{', '.join(map(str, index_of(buffer, byte)))}]"


def part(kernel: Kernel, access: Access) -> str:
    """The accessed part as a subscript in loop variables: a[256*k : 256*k + 128, :].

    The tensor's name alone where it is not a box of it.
    """
    loops, buffer = kernel.loops(), kernel.buffers[access.buffer]
    trips = {name: (0, max(0, loop.trips - 1)) for name, loop in loops.items()}
    digits = digits_of(access, buffer, trips)
    if access.opaque or access.swizzle or digits is None or len(digits) != len(buffer.shape):
        return buffer.id
    units = [1] * (len(digits) - 1) + [buffer.itemsize]
    items = [_item(*each, loops) for each in zip(digits, units, buffer.shape, strict=True)]
    return f"{buffer.id}[{', '.join(items)}]" if all(items) else buffer.id


def _item(digit: Digit, unit: int, size: int, loops: Mapping[str, Loop]) -> str:
    """Where an access begins and ends in a dimension; nothing where it is not a box of it."""
    offset = digit.offset
    numbers = (digit.extent, offset.constant, *(c for _, c in offset.terms))
    if digit.steps or any(number % unit for number in numbers):
        return ""
    terms = tuple((name, c // unit) for name, c in offset.terms)
    start = _in_variables(Affine(offset.constant // unit, terms), loops)
    stop = start + digit.extent // unit
    return ":" if (start, stop) == (Affine(), Affine(size)) else f"{start} : {stop}"


def _in_variables(offset: Affine, loops: Mapping[str, Loop]) -> Affine:
    """The same in values of the loop variables; where those do not divide, in iterations."""
    found = Affine(offset.constant)
    for name, c in offset.terms:
        loop = loops[name]
        if c % loop.step:
            found += Affine.variable(f"iteration({loop.variable})", c)
        else:
            each = c // loop.step
            found += Affine.variable(loop.variable, each) - each * loop.start
    return found


def plural(count: int, noun: str) -> str:
    """1 edge, 2 edges."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def distance_text(loops: Sequence[str], distance: Sequence[int]) -> str:
    """When the later end starts, seen from the earlier one."""
    if not loops:
        return "once all of it is done"
    first = next((n for n, d in enumerate(distance) if d), None)
    if first is None:
        return f"in the same iteration of {' and '.join(loops)}"
    ahead = f"{plural(distance[first], 'iteration')} of {loops[first]} later"
    inner = [
        f"{plural(abs(d), 'iteration')} of {loop} {'earlier' if d < 0 else 'later'}"
        for loop, d in zip(loops[first + 1 :], distance[first + 1 :], strict=True)
        if d
    ]
    return ", ".join([ahead, *inner])
