"""Kernels of two operations in a loop, in one line."""

from __future__ import annotations

from neuroncore.program import Affine
from tokenplan import Access, Buffer, Kernel, Loop, Mode, Op
from tokenplan.kernel.model import PLAIN, Node, walk


def access(
    buffer: str, mode: str, constant: int = 0, width: int = 4, shape=(), strides=(), opaque=None,
    swizzle=PLAIN, **terms: int,
) -> Access:  # fmt: skip
    """`width` bytes from constant + Σ terms on, once per index of `shape`."""
    offset = Affine(constant, tuple(sorted((n, c) for n, c in terms.items() if c)))
    return Access(buffer, Mode(mode), offset, shape, strides, width, "", opaque, swizzle)


def op(name: str, *accesses: Access) -> Op:
    """An operation; `kernel` puts it into its loops."""
    return Op(name, "copy", "dma", (), accesses)


def loop(name: str, trips: int, *body: Node) -> Loop:
    return Loop(name, name, trips, 0, 1, body)


def kernel(*body: Node, scopes=None, parameters=("a", "b"), itemsize=1, **shapes) -> Kernel:
    """The body, its ops told their loops; buffers a, b, … have 256 bytes but for `shapes`."""
    names = {x.buffer for node in walk(body) if isinstance(node, Op) for x in node.accesses}
    scopes = scopes or {}
    buffers = {
        n: Buffer(n, "hbm", shapes.get(n, (256,)), itemsize, scopes.get(n, ()), n in parameters)
        for n in sorted(names)
    }
    return Kernel("test", "trn2", buffers, tuple(_placed(node, ()) for node in body))


def _placed(node: Node, loops: tuple[str, ...]) -> Node:
    if isinstance(node, Loop):
        inside = (*loops, node.id)
        body = tuple(_placed(inner, inside) for inner in node.body)
        return Loop(node.id, node.variable, node.trips, node.start, node.step, body, node.place)
    return Op(node.id, node.instruction, node.engine, loops, node.accesses, node.details)
