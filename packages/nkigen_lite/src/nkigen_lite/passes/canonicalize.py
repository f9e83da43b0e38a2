"""One form for what can be written in many: functions recognised, no-ops gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from nki_dtypes import float32
from nkigen_lite.ir import Graph, Node
from nkigen_lite.ir.interpreter import FLOAT32, run_node
from nkigen_lite.ops import Kind
from nkigen_lite.passes.bounds import least
from nkigen_lite.passes.rewriting import Constant_, Match, RewriteRule, is_float, of, rewrite
from nkigen_lite.tensors.constant import Constant

MOST_FOLDED = 4096
"""Elements of a constant that is computed here rather than by the kernel."""


def canonicalize(graph: Graph) -> Graph:
    """The graph in one form: known functions for their formulas, no views of views, no constants
    computed from constants.

        v1 = sqrt(x0); v2 = constant(1.0); v3 = divide(v2, v1)   →   v3 = rsqrt(x0)
    """
    return rewrite(graph, RULES)


def _is_root(m: Match) -> bool:
    """NumPy's power by the number 0.5 is its square root, by an array of it not."""
    return m.dtype.is_float and m.spec(m["n"]).shape == () and float(m.number("n")) == 0.5


def _is_positive(m: Match) -> bool:
    return m.dtype.is_float and least(m.build, m["x"]) > 0


def _unary(op: str) -> Callable[[Match], str]:
    return lambda m: m.shaped(m.emit(op, m["x"]))


# ------------------------------------------------------------------------ softmax


def _softmax_axis(m: Match) -> int | None:
    """The one axis over which both the maximum and the sum run."""
    axes = {m.nodes[n].attrs["axes"] for n in ("largest", "total")}
    kept = all(m.nodes[n].attrs["keepdims"] for n in ("largest", "total"))
    (only, *others) = axes
    return only[0] if kept and not others and len(only) == 1 else None


def _softmax(m: Match) -> str:
    return m.emit("softmax", m["x"], axis=_softmax_axis(m))


_EXP = of("exp", of("subtract", "x", of("max", "x", name="largest")))

# ----------------------------------------------------------------------- rms_norm


def _rms_axis(m: Match) -> int | None:
    mean = m.nodes["mean"].attrs
    return mean["axes"][0] if mean["keepdims"] and len(mean["axes"]) == 1 else None


def _rms_norm(m: Match) -> str:
    return m.emit("rms_norm", m["x"], axis=_rms_axis(m), epsilon=float(m.number("epsilon")))


def _is_rms_norm(m: Match) -> bool:
    axis = _rms_axis(m)
    spec = m.spec(m["x"])
    return axis is not None and spec == m.root.spec and spec.shape[axis] > 0


_MEAN_SQUARE = of("mean", of("square", "x"), name="mean")

# ------------------------------------------------------------ what changes nothing


def _same(m: Match) -> str:
    return m["x"]


def _keeps_spec(m: Match) -> bool:
    return m.spec(m["x"]) == m.root.spec


def _reshaped(m: Match) -> str:
    return m.emit("reshape", m["x"], shape=m.root.spec.shape)


def _is_of_one(m: Match) -> bool:
    """Whether every axis that is reduced or scanned has one element."""
    attrs, x = m.root.attrs, m.spec(m["x"])
    axes = attrs["axes"] if "axes" in attrs else (attrs["axis"],)
    return x.dtype is m.dtype and all(x.shape[a] == 1 for a in axes)


def _transpose_twice(m: Match) -> str:
    inner, outer = m.nodes["inner"].attrs["axes"], m.root.attrs["axes"]
    return m.emit("transpose", m["x"], axes=tuple(inner[a] for a in outer))


def _slice_twice(m: Match) -> str:
    a, b = m.nodes["inner"].attrs, m.root.attrs
    starts = (
        s + t * first for s, t, first in zip(a["starts"], a["steps"], b["starts"], strict=True)
    )
    steps = (s * t for s, t in zip(a["steps"], b["steps"], strict=True))
    return m.emit("slice", m["x"], starts=tuple(starts), sizes=b["sizes"], steps=tuple(steps))


def _in_order(m: Match) -> bool:
    axes = m.root.attrs["axes"]
    return axes == tuple(range(len(axes)))


def _is_whole(m: Match) -> bool:
    return _keeps_spec(m) and all(s == 1 for s in m.root.attrs["steps"])


def _writes_back(m: Match) -> bool:
    part, whole = m.nodes["part"].attrs, m.root.attrs
    return part["starts"] == whole["starts"] and part["steps"] == whole["steps"]


def _covers(m: Match) -> bool:
    return m.spec(m["part"]) == m.root.spec and all(s == 1 for s in m.root.attrs["steps"])


# ------------------------------------------------- arrays written part by part
# `o = np.empty_like(x); o[..., ::2] = a; o[..., 1::2] = b` is a stack of a and b; what was there
# before is never made.


@dataclass(frozen=True, slots=True)
class _Written:
    """A part that is whole along every axis but one, where it has `size` elements from `start` on,
    `step` apart."""

    value: str
    start: int
    size: int
    step: int


def _as_parts(m: Match) -> str | None:
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


def _written(m: Match, axis: int) -> Iterator[_Written]:
    """Writes from the last to the first, until they cover the whole axis."""
    left, node = m.root.spec.shape[axis], m.root
    found: Node | None = node
    while found is not None and found.op == "update" and left > 0:
        base, part = found.operands
        shape, starts, steps = m.spec(part).shape, found.attrs["starts"], found.attrs["steps"]
        others = (d for d in range(len(shape)) if d != axis)
        if any((shape[d], steps[d]) != (node.spec.shape[d], 1) for d in others):
            return
        left -= shape[axis]
        yield _Written(part, starts[axis], shape[axis], steps[axis])
        found = m.build.by_name.get(base)


def _follow(parts: list[_Written]) -> bool:
    """Whether each part begins where the one before it ends."""
    ends = [0, *(p.start + p.size for p in parts)]
    return all(p.start == end for p, end in zip(parts, ends, strict=False))


def _alternate(parts: list[_Written]) -> bool:
    """Whether every element is one of the parts in turn, and all are as long."""
    count, size = len(parts), parts[0].size
    return all((p.start, p.step, p.size) == (n, count, size) for n, p in enumerate(parts))


def _interleaved(m: Match, parts: list[_Written], axis: int) -> str:
    shape = m.root.spec.shape
    each = (*shape[:axis], parts[0].size, 1, *shape[axis + 1 :])
    columns = (m.emit("reshape", p.value, shape=each) for p in parts)
    return m.emit("reshape", m.emit("concatenate", *columns, axis=axis + 1), shape=shape)


# ------------------------------------------------------------- products of matrices
# Matrices that are stored in another order than they are written in: one product of more terms, or
# one for each batch, where arrays would be copied into another order before.

_MOST_TERMS = 128
"""Terms of a product below which TensorE's rows are not all used."""
_COPIED = frozenset({"transpose", "slice"})


def _by_experts(m: Match) -> str | None:
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


def _as_one_product(m: Match) -> str | None:
    """a @ b + c @ d = [a c] @ [b; d], where a and c are copied into rows anyhow and have few
    columns: the taps of a convolution. Something may have been added to a @ b before."""
    for one, other in (m.root.operands, m.root.operands[::-1]):
        last = _seen(m, other)
        before = m.build.by_name.get(one)
        if last is None or before is None:
            continue
        first = _seen(m, one)
        if first is not None:
            return _joined_products(m, first, last)
        if before.op != "add":
            continue
        for rest, added in (before.operands, before.operands[::-1]):
            first = _seen(m, added)
            found = _joined_products(m, first, last) if first is not None else None
            if found is not None:
                return m.emit("add", rest, found)
    return None


def _seen(m: Match, value: str) -> _Seen | None:
    node, views = m.build.by_name.get(value), list[Node]()
    while node is not None and node.op in ("reshape", "transpose"):
        views.append(node)
        node = m.build.by_name.get(node.operands[0])
    return _Seen(node, tuple(views)) if node is not None and node.op == "matmul" else None


def _joined_products(m: Match, first: _Seen, last: _Seen) -> str | None:
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


# ----------------------------------------------------------------------- constants


def _is_known(m: Match) -> bool:
    nodes = [m.build.by_name.get(o) for o in m.root.operands]
    known = all(n is not None and n.op == "constant" for n in nodes)
    return m.root.record.kind is not Kind.constant and known and _is_small(m)


def _is_small(m: Match) -> bool:
    return 0 < m.root.spec.size <= MOST_FOLDED


def _folded(m: Match) -> str:
    operands = tuple(m.build.by_name[o].attrs["value"].array for o in m.root.operands)
    array = run_node(m.root, operands, FLOAT32)
    return m.emit("constant", value=Constant(np.asarray(array), m.dtype))


def _is_not_empty(m: Match) -> bool:
    return m.root.spec.size > 0


def _is_empty(m: Match) -> bool:
    return m.root.spec.size == 0 and m.root.op != "constant"


def _empty(m: Match) -> str:
    return m.fill(0, m.dtype, m.root.spec.shape)


_ONE_PLUS_EXP = of("add", 1.0, of("exp", of("negative", "x")))

_PRODUCT_OF_EXPERTS = of(
    "matmul", "a", of("reshape", of("transpose", "w", name="order"), name="right"), name="product"
)

_PART = of("slice", "x", name="part")


RULES: tuple[RewriteRule, ...] = (
    RewriteRule("empty_result", of("*"), _empty, _is_empty),
    RewriteRule("constant_folding", of("*"), _folded, _is_known),
    # functions
    RewriteRule("square_of_multiply", of("multiply", "x", "x"), _unary("square"), is_float),
    RewriteRule("sqrt_of_power", of("power", "x", Constant_("n")), _unary("sqrt"), _is_root),
    RewriteRule("rsqrt_of_power", of("power", "x", -0.5), _unary("rsqrt"), _is_positive),
    RewriteRule("rsqrt_of_divide", of("divide", 1.0, of("sqrt", "x")), _unary("rsqrt")),
    RewriteRule("rsqrt_of_reciprocal", of("reciprocal", of("sqrt", "x")), _unary("rsqrt")),
    RewriteRule(
        "divide_by_sqrt",
        of("divide", "y", of("sqrt", "x")),
        lambda m: m.emit("multiply", m["y"], m.emit("rsqrt", m["x"])),
    ),
    RewriteRule("silu_of_divide", of("divide", "x", _ONE_PLUS_EXP), _unary("silu")),
    RewriteRule("sigmoid_of_divide", of("divide", 1.0, _ONE_PLUS_EXP), _unary("sigmoid")),
    RewriteRule("sigmoid_of_reciprocal", of("reciprocal", _ONE_PLUS_EXP), _unary("sigmoid")),
    RewriteRule("silu_of_multiply", of("multiply", "x", of("sigmoid", "x")), _unary("silu")),
    RewriteRule(
        "softmax_of_divide",
        of("divide", _EXP, of("sum", _EXP, name="total")),
        _softmax,
        lambda m: _softmax_axis(m) is not None,
    ),
    RewriteRule(
        "rms_norm_of_multiply",
        of("multiply", "x", of("rsqrt", of("add", _MEAN_SQUARE, Constant_("epsilon")))),
        _rms_norm,
        _is_rms_norm,
    ),
    # products
    RewriteRule(
        "product_of_experts",
        of("transpose", of("reshape", _PRODUCT_OF_EXPERTS, name="seen")),
        _by_experts,
    ),
    RewriteRule("products_as_one", of("add", "x", "y"), _as_one_product, is_float),
    # no-ops
    RewriteRule("cast_to_itself", of("cast", "x"), _same, _keeps_spec),
    RewriteRule("negative_twice", of("negative", of("negative", "x")), _same),
    RewriteRule("reshape_to_itself", of("reshape", "x"), _same, _keeps_spec),
    RewriteRule("broadcast_to_itself", of("broadcast_to", "x"), _same, _keeps_spec),
    RewriteRule("slice_of_all", of("slice", "x"), _same, _is_whole),
    RewriteRule("transpose_in_order", of("transpose", "x"), _same, _in_order),
    RewriteRule("reshape_twice", of("reshape", of("reshape", "x")), _reshaped),
    RewriteRule(
        "transpose_twice", of("transpose", of("transpose", "x", name="inner")), _transpose_twice
    ),
    RewriteRule(
        "slice_twice", of("slice", of("slice", "x", name="inner")), _slice_twice, _is_not_empty
    ),
    RewriteRule(
        "write_back", of("update", "x", of("slice", "x", name="part")), _same, _writes_back
    ),
    RewriteRule("write_in_parts", of("update", "x", "part"), _as_parts, _is_not_empty),
    RewriteRule("write_all", of("update", "x", "part"), lambda m: m["part"], _covers),
    *(
        RewriteRule(f"{op}_of_one", of(op, "x"), _reshaped, _is_of_one)
        for op in ("cumprod", "cumsum", "max", "mean", "min", "prod", "sum")
    ),
)
