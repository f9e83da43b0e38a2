"""Arrays in HBM as the operations see them: views of buffers, nothing of which costs anything."""

from __future__ import annotations

from dataclasses import dataclass, replace

from neuroncore.program import Buffer
from neuroncore.spec import row_major
from nki_dtypes import DType
from nkigen_lite.ir import Node
from nkigen_lite.lower.refuse import cannot


@dataclass(frozen=True, slots=True)
class Source:
    """Element (i, j, …) is element offset + Σ strides · index of the buffer."""

    buffer: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie one after the other in C order."""
        dense = row_major(self.shape)
        return all(
            n == 1 or s == d for n, s, d in zip(self.shape, self.strides, dense, strict=True)
        )


def whole_source(buffer: Buffer, shape: tuple[int, ...]) -> Source:
    """All of a buffer, seen in `shape`: kernels have no rank 0."""
    return Source(buffer.name, 0, shape, row_major(shape), buffer.dtype)


def seen_through(node: Node, source: Source) -> Source:
    """The source after a view operation. Raises LoweringError where no pattern says it."""
    view = _VIEWS.get(node.op)
    found = view(node, source) if view else None
    if found is None:
        raise cannot(node, "no access pattern of its operand in HBM has these elements")
    return found


def _transpose(node: Node, source: Source) -> Source:
    axes = node.attrs["axes"]
    strides = tuple(source.strides[a] for a in axes)
    return replace(source, shape=node.spec.shape, strides=strides)


def _slice(node: Node, source: Source) -> Source:
    starts, steps = node.attrs["starts"], node.attrs["steps"]
    moved = sum(s * b for s, b, n in zip(source.strides, starts, node.spec.shape, strict=True) if n)
    strides = tuple(s * k for s, k in zip(source.strides, steps, strict=True))
    return replace(source, offset=source.offset + moved, shape=node.spec.shape, strides=strides)


def _broadcast(node: Node, source: Source) -> Source:
    shape = node.spec.shape
    lead = len(shape) - len(source.shape)
    old = (1,) * lead + source.shape
    strides = (0,) * lead + source.strides
    kept = tuple(0 if o != n else s for o, n, s in zip(old, shape, strides, strict=True))
    return replace(source, shape=shape, strides=kept)


def _reshape(node: Node, source: Source) -> Source | None:
    shape = node.spec.shape
    if source.is_contiguous:
        return replace(source, shape=shape, strides=row_major(shape))
    if squeezed(source.shape) != squeezed(shape):
        return None
    left = [s for n, s in zip(source.shape, source.strides, strict=True) if n != 1]
    strides = tuple(left.pop(0) if n != 1 else 0 for n in shape)
    return replace(source, shape=shape, strides=strides)


def squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The axes that have more than one element."""
    return tuple(n for n in shape if n != 1)


_VIEWS = {
    "transpose": _transpose,
    "slice": _slice,
    "broadcast_to": _broadcast,
    "reshape": _reshape,
}
