"""Arrays that are written part by part until nothing of them is left: parts put side by side.

`o = np.empty_like(x); o[..., ::2] = a; o[..., 1::2] = b` is a stack of a and b; what was there
before is never made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nkigen_lite.ir import Node
from nkigen_lite.passes.rewriting import Match


@dataclass(frozen=True, slots=True)
class Written:
    """A part that is whole along every axis but one, where it has `size` elements from `start` on,
    `step` apart."""

    value: str
    start: int
    size: int
    step: int


def joined(m: Match) -> str | None:
    """The parts as one array, where they are all of it; None where they are not."""
    shape = m.root.spec.shape
    for axis in range(len(shape)):
        parts = sorted(_written(m, axis), key=lambda p: p.start)
        if len(parts) > 1 and sum(p.size for p in parts) == shape[axis]:
            if all(p.step == 1 for p in parts) and _follow(parts):
                return m.emit("concatenate", *(p.value for p in parts), axis=axis)
            if _alternate(parts):
                return _interleaved(m, parts, axis)
    return None


def _written(m: Match, axis: int) -> Iterator[Written]:
    """What was written last, then what was before it, until that is the whole axis."""
    left, node = m.root.spec.shape[axis], m.root
    found: Node | None = node
    while found is not None and found.op == "update" and left > 0:
        base, part = found.operands
        shape, starts, steps = m.spec(part).shape, found.attrs["starts"], found.attrs["steps"]
        others = (d for d in range(len(shape)) if d != axis)
        if any((shape[d], steps[d]) != (node.spec.shape[d], 1) for d in others):
            return
        left -= shape[axis]
        yield Written(part, starts[axis], shape[axis], steps[axis])
        found = m.build.by_name.get(base)


def _follow(parts: list[Written]) -> bool:
    """Whether each part begins where the one before it ends."""
    ends = [0, *(p.start + p.size for p in parts)]
    return all(p.start == end for p, end in zip(parts, ends, strict=False))


def _alternate(parts: list[Written]) -> bool:
    """Whether every element is one of the parts in turn, and all are as long."""
    count, size = len(parts), parts[0].size
    return all((p.start, p.step, p.size) == (n, count, size) for n, p in enumerate(parts))


def _interleaved(m: Match, parts: list[Written], axis: int) -> str:
    shape = m.root.spec.shape
    each = (*shape[:axis], parts[0].size, 1, *shape[axis + 1 :])
    columns = (m.emit("reshape", p.value, shape=each) for p in parts)
    return m.emit("reshape", m.emit("concatenate", *columns, axis=axis + 1), shape=shape)
