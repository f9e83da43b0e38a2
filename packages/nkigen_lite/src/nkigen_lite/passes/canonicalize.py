"""One form for what can be written in many: functions recognised, no-ops gone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nkigen_lite.ir import Graph
from nkigen_lite.ir.interpreter import FLOAT32, run_node
from nkigen_lite.ops import Kind
from nkigen_lite.passes import product_fusion, updates
from nkigen_lite.passes.bounds import least
from nkigen_lite.passes.rewriting import Constant_, Match, RewriteRule, of, rewrite
from nkigen_lite.tensors.constant import Constant

MOST_FOLDED = 4096
"""Elements of a constant that is computed here rather than by the kernel."""


def canonicalize(graph: Graph) -> Graph:
    """The graph in one form: known functions for their formulas, no views of views, no constants
    computed from constants.

        v1 = sqrt(x0); v2 = constant(1.0); v3 = divide(v2, v1)   →   v3 = rsqrt(x0)
    """
    return rewrite(graph, RULES)


def _is_float(m: Match) -> bool:
    return m.dtype.is_float


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


def _has_elements(m: Match) -> bool:
    return m.root.spec.size > 0


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


def _part(m: Match) -> str:
    return m["part"]


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
    RewriteRule("square_of_multiply", of("multiply", "x", "x"), _unary("square"), _is_float),
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
        product_fusion.by_experts,
    ),
    RewriteRule("products_as_one", of("add", "x", "y"), product_fusion.as_one_product, _is_float),
    # no-ops
    RewriteRule("cast_to_itself", of("cast", "x"), _same, _keeps_spec),
    RewriteRule("negative_twice", of("negative", of("negative", "x")), _same),
    RewriteRule("reshape_to_itself", of("reshape", "x"), _same, _keeps_spec),
    RewriteRule("broadcast_to_itself", of("broadcast_to", "x"), _same, _keeps_spec),
    RewriteRule("slice_of_all", of("slice", "x"), _same, _is_whole),
    RewriteRule("transpose_in_order", of("transpose", "x"), _same, _in_order),
    RewriteRule(
        "reshape_twice",
        of("reshape", of("reshape", "x")),
        lambda m: m.emit("reshape", m["x"], shape=m.root.attrs["shape"]),
    ),
    RewriteRule(
        "transpose_twice", of("transpose", of("transpose", "x", name="inner")), _transpose_twice
    ),
    RewriteRule(
        "slice_twice", of("slice", of("slice", "x", name="inner")), _slice_twice, _has_elements
    ),
    RewriteRule(
        "write_back", of("update", "x", of("slice", "x", name="part")), _same, _writes_back
    ),
    RewriteRule("write_in_parts", of("update", "x", "part"), updates.joined, _has_elements),
    RewriteRule("write_all", of("update", "x", "part"), _part, _covers),
)
