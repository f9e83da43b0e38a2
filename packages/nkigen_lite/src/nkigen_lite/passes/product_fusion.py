"""Products of matrices that lie otherwise in HBM than they are written: as one product of more
terms, or as one for each batch, where arrays would be copied into another order before.
"""

from __future__ import annotations

from dataclasses import dataclass

from nki_dtypes import float32
from nkigen_lite.ir import Node
from nkigen_lite.passes.rewriting import Match

_MOST_TERMS = 128
"""Terms of a product below which TensorE's rows are not all used."""
_COPIED = frozenset({"transpose", "slice"})


def by_experts(m: Match) -> str | None:
    """(T, D) @ (D, E · F) seen as (E, T, F), where the right matrix was (E, D, F): E products.

    `einsum("td,edf->etf", x, w)` writes them so; neither the weights nor the result is reordered.
    """
    seen, product, right, order = (m.nodes[n] for n in ("seen", "product", "right", "order"))
    experts, terms, columns = m.spec(m["w"]).shape if len(m.spec(m["w"]).shape) == 3 else (0, 0, 0)
    rows = product.spec.shape[0]
    wanted = (
        order.attrs["axes"] == m.root.attrs["axes"] == (1, 0, 2)
        and right.spec.shape == (terms, experts * columns)
        and seen.spec.shape == (rows, experts, columns)
        and len(product.spec.shape) == 2
    )
    return m.emit("matmul", m["a"], m["w"], dtype=product.spec.dtype) if wanted else None


@dataclass(frozen=True, slots=True)
class _Seen:
    """A product of matrices through views: the views, outermost first."""

    product: Node
    views: tuple[Node, ...]

    @property
    def kind(self) -> object:
        """Equal for products that are seen alike."""
        views = tuple((v.op, tuple(v.attrs.items())) for v in self.views)
        return views, self.product.spec, tuple(self.product.attrs.items())


def as_one_product(m: Match) -> str | None:
    """a @ b + c @ d = [a c] @ [b; d], where a and c are copied into rows anyhow and have few
    columns: the taps of a convolution. Something may have been added to a @ b before."""
    for one, other in (m.root.operands, m.root.operands[::-1]):
        last = _seen(m, other)
        before = m.build.by_name.get(one)
        if last is None or before is None:
            continue
        first = _seen(m, one)
        if first is not None:
            return _joined(m, first, last)
        if before.op != "add":
            continue
        for rest, added in (before.operands, before.operands[::-1]):
            first = _seen(m, added)
            found = _joined(m, first, last) if first is not None else None
            if found is not None:
                return m.emit("add", rest, found)
    return None


def _seen(m: Match, value: str) -> _Seen | None:
    node, views = m.build.by_name.get(value), list[Node]()
    while node is not None and node.op in ("reshape", "transpose"):
        views.append(node)
        node = m.build.by_name.get(node.operands[0])
    return _Seen(node, tuple(views)) if node is not None and node.op == "matmul" else None


def _joined(m: Match, first: _Seen, last: _Seen) -> str | None:
    (a, b), (c, d) = first.product.operands, last.product.operands
    two = len(m.spec(b).shape) == len(m.spec(a).shape) == 2
    if first.kind != last.kind or not two or not (_is_copied(m, a) and _is_copied(m, c)):
        return None
    if m.spec(c).shape[1] >= _MOST_TERMS or m.dtype is not float32:
        return None
    left, right = _beside(m, a, c, 1), _beside(m, b, d, 0)
    value = m.emit("matmul", left, right, **first.product.attrs)
    for view in reversed(first.views):
        value = m.emit(view.op, value, **view.attrs)
    return value


def _is_copied(m: Match, value: str) -> bool:
    """Whether the matrix is made by copies: rows of an array in another order, or several."""
    node = m.build.by_name.get(value)
    if node is None or node.op == "concatenate":
        return node is not None and all(_is_copied(m, o) for o in node.operands)
    below = m.build.by_name.get(node.operands[0]) if node.op == "reshape" else None
    return below is not None and below.op in _COPIED


def _beside(m: Match, one: str, other: str, axis: int) -> str:
    """Side by side; what is already is so is not joined twice."""
    node = m.build.by_name.get(one)
    joined = node is not None and node.op == "concatenate" and node.attrs["axis"] == axis
    parts = node.operands if node is not None and joined else (one,)
    return m.emit("concatenate", *parts, other, axis=axis)
