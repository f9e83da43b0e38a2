"""Arrays in HBM as the operations see them: views of buffers, nothing of which costs anything."""

from __future__ import annotations

from dataclasses import dataclass, replace

from neuroncore.program import Buffer
from neuroncore.spec import row_major
from nki_dtypes import DType
from nkigen_lite.ir import Node
from nkigen_lite.selection.engine_operations import held_as
from nkigen_lite.selection.unsupported import unsupported
from nkigen_lite.tensors.strides import reshaped


@dataclass(frozen=True, slots=True)
class ArrayView:
    """Element (i, j, …) is element offset + Σ strides · index of the buffer."""

    buffer: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    look: DType | None = None
    """The dtype that accesses name, where it is not the buffer's."""

    @property
    def is_in_rows(self) -> bool:
        """Whether neighbours along the last axis are neighbours in HBM."""
        axes = [s for n, s in zip(self.shape, self.strides, strict=True) if n != 1]
        return not axes or axes[-1] == 1


def buffer_view(buffer: Buffer, shape: tuple[int, ...]) -> ArrayView:
    """All of a buffer, seen in `shape`: kernels have no rank 0."""
    return array_view_of(buffer.name, shape, buffer.dtype)


def array_view_of(name: str, shape: tuple[int, ...], dtype: DType) -> ArrayView:
    """A whole array in C order; bool is seen as the integers that it is on chip."""
    held = held_as(dtype)
    return ArrayView(name, 0, shape, row_major(shape), held, held if held is not dtype else None)


def box_of(
    source: ArrayView, starts: tuple[int, ...], sizes: tuple[int, ...], steps: tuple[int, ...]
) -> ArrayView:
    """Elements start, start + step, … of each axis: `sizes` of them."""
    moved = sum(s * b for s, b, n in zip(source.strides, starts, sizes, strict=True) if n)
    strides = tuple(s * k for s, k in zip(source.strides, steps, strict=True))
    return replace(source, offset=source.offset + moved, shape=sizes, strides=strides)


def view_of(node: Node, source: ArrayView) -> ArrayView | None:
    """The source after a view operation; None where no strides say it."""
    view = _VIEWS.get(node.op)
    return view(node, source) if view else None


def apply_view(node: Node, source: ArrayView) -> ArrayView:
    """The source after a view operation. Raises CodegenError where no pattern says it."""
    found = view_of(node, source)
    if found is None:
        raise unsupported(node, "no access pattern of its operand in HBM has these elements")
    return found


def operand_view(node: Node, place: ArrayView, shape: tuple[int, ...]) -> ArrayView | None:
    """Where the operand, of `shape`, lies if its view lies at `place`; None where that says not
    all of its elements."""
    if node.op == "transpose":
        back = dict(zip(node.attrs["axes"], place.strides, strict=True))
        return replace(place, shape=shape, strides=tuple(back[d] for d in range(len(shape))))
    strides = reshaped(place.shape, place.strides, shape) if node.op == "reshape" else None
    return None if strides is None else replace(place, shape=shape, strides=strides)


def _transpose(node: Node, source: ArrayView) -> ArrayView:
    axes = node.attrs["axes"]
    strides = tuple(source.strides[a] for a in axes)
    return replace(source, shape=node.spec.shape, strides=strides)


def _slice(node: Node, source: ArrayView) -> ArrayView:
    return box_of(source, node.attrs["starts"], node.spec.shape, node.attrs["steps"])


def _broadcast(node: Node, source: ArrayView) -> ArrayView:
    shape = node.spec.shape
    lead = len(shape) - len(source.shape)
    old = (1,) * lead + source.shape
    strides = (0,) * lead + source.strides
    kept = tuple(0 if o != n else s for o, n, s in zip(old, shape, strides, strict=True))
    return replace(source, shape=shape, strides=kept)


def _reshape(node: Node, source: ArrayView) -> ArrayView | None:
    shape = node.spec.shape
    strides = reshaped(source.shape, source.strides, shape)
    return None if strides is None else replace(source, shape=shape, strides=strides)


def squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The axes that have more than one element."""
    return tuple(n for n in shape if n != 1)


def _bitcast(node: Node, source: ArrayView) -> ArrayView:
    held = held_as(node.spec.dtype)
    return replace(source, dtype=held, look=held)


def _convert(node: Node, source: ArrayView) -> ArrayView:
    """The view of a node that a DMA converts as it reads."""
    return replace(source, dtype=held_as(node.spec.dtype))


_VIEWS = {
    "convert": _convert,
    "bitcast": _bitcast,
    "transpose": _transpose,
    "slice": _slice,
    "broadcast_to": _broadcast,
    "reshape": _reshape,
}
