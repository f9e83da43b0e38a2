"""Rewrites before instruction selection: constants are folded, narrow matrices stay narrow, scales
are moved to smaller arrays.

`canonicalize` and `decompose` have rewritten the graph to operations of the engines; these rules
use further properties of the machine.
"""

from __future__ import annotations

import numpy as np

from nki_dtypes import bfloat16, float16, float32
from nkigen_lite.ir import Graph
from nkigen_lite.ir.builder import renumbered
from nkigen_lite.ir.interpreter import FLOAT32, run_node
from nkigen_lite.legalization.row_flattening import flatten
from nkigen_lite.ops import Kind
from nkigen_lite.passes.rewriting import Constant_, Match, RewriteRule, of, rewrite


def in_machine_terms(graph: Graph) -> Graph:
    """The graph where no rule fits any more.

    v2 = multiply(x0, 0.125); v3 = max(v2)   →   v2 = max(x0); v3 = multiply(v2, 0.125)
    v1 = matmul(…); where(m, multiply(v1, 0.125), -1e9)   →   multiply(where(m, v1, -8e9), 0.125)
    """
    return flatten(renumbered(rewrite(graph, RULES)))


# ----------------------------------------------------------------------- constants


def _is_of_numbers(m: Match) -> bool:
    nodes = [m.build.by_name.get(o) for o in m.root.operands]
    numbers = [n.attrs["value"].uniform for n in nodes if n is not None and n.op == "constant"]
    kinds = (Kind.elementwise, Kind.select, Kind.view, Kind.reduce)
    computed = m.root.record.kind in kinds and m.root.spec.size > 0
    known = 0 < len(numbers) == len(nodes) and all(n is not None for n in numbers)
    return computed and known


def _number(m: Match) -> str:
    numbers = [np.asarray(m.build.by_name[o].attrs["value"].uniform) for o in m.root.operands]
    if m.root.record.kind is Kind.view and m.root.op != "bitcast":
        return m.fill(numbers[0], m.dtype, m.root.spec.shape)
    if m.root.record.kind is Kind.reduce:
        return _reduced_number(m, numbers[0])
    return m.fill(run_node(m.root, tuple(numbers), FLOAT32), m.dtype, m.root.spec.shape)


def _reduced_number(m: Match, number: np.ndarray) -> str:
    attrs, shape = m.root.attrs, m.spec(m.root.operands[0]).shape
    axes = attrs.get("axes") or (attrs["axis"],)
    many = np.full([n if d in axes else 1 for d, n in enumerate(shape)], number)
    result = run_node(m.root, (many,), FLOAT32)
    return m.fill(np.asarray(result).reshape(()), m.dtype, m.root.spec.shape)


# ------------------------------------------------------------------------ products


def _narrow(m: Match) -> str:
    return m.emit("matmul", m["a"], m["b"], dtype=float32)


def _is_narrow(m: Match) -> bool:
    """TensorE takes 16-bit floats as they are and sums in float32, where their products are
    exact."""
    kinds = {m.spec(m[v]).dtype for v in ("a", "b")}
    return kinds in ({bfloat16}, {float16}) and m.dtype is float32


# -------------------------------------------------------------------------- scales


def _is_positive(m: Match) -> bool:
    return m.dtype.is_float and float(m.number("c")) > 0


def _scale_after_max(m: Match) -> str:
    return m.shaped(m.emit("multiply", m.emit(m.root.op, m["x"], **m.root.attrs), m["c"]))


def _unscaled(m: Match) -> np.float32 | None:
    """The number that scaled is the other choice, without a rounding; None where there is none:
    fused with an addition, one would show in rows of which all is masked."""
    wanted, scale = np.float64(m.number("n")), np.float64(m.number("c"))
    with np.errstate(all="ignore"):
        found = np.float32(wanted / scale)
    return found if np.float64(found) * scale == wanted else None


def _is_scaled_product(m: Match) -> bool:
    """The same values come of it, and TensorE made what is scaled: no instruction reads it before
    the choice."""
    made = m.build.by_name.get(m["x"])
    product = made is not None and made.op == "matmul" and made.spec.shape == m.root.spec.shape
    return product and m.dtype is float32 and _is_positive(m) and _unscaled(m) is not None


def _scale_after_choice(m: Match) -> str:
    number = m.fill(_unscaled(m), m.dtype)
    return m.emit("multiply", m.emit("where", m["m"], m["x"], number), m["c"])


def _scale_after_product(m: Match) -> str:
    return m.emit("multiply", m.emit("matmul", m["e"], m["v"], dtype=m.dtype), m["r"])


def _is_per_row(m: Match) -> bool:
    """One number for each row, of which the product has no more elements than its left side."""
    (*_, rows, terms), scale = m.spec(m["e"]).shape, m.spec(m["r"]).shape
    lies = len(scale) == len(m.root.spec.shape) and scale[-1] == 1 < terms
    return lies and m.root.spec.shape[-1] <= terms and m.dtype is float32 and rows > 0


_EXPONENTIALS = (
    of("exp", of("subtract", "x", of("max", "x")), name="e"),
    of(
        "exp",
        of("subtract", of("multiply", "x", Constant_("c")),
           of("multiply", of("max", "x"), Constant_("c"))), name="e",
    ),
)  # fmt: skip
"""At most 1, so that nothing overflows that did not before."""


def _bounded(m: Match) -> bool:
    m.values["e"] = m.nodes["e"].name
    return _is_per_row(m)


RULES: tuple[RewriteRule, ...] = (
    RewriteRule("operation_on_numbers", of("*"), _number, _is_of_numbers),
    *(
        RewriteRule(f"matmul_of_{op}", of("matmul", of(op, "a"), of(op, "b")), _narrow, _is_narrow)
        for op in ("cast", "convert")
    ),
    RewriteRule(
        "max_of_scaled", of("max", of("multiply", "x", Constant_("c"))), _scale_after_max,
        _is_positive,
    ),
    RewriteRule(
        "choice_of_scaled", of("where", "m", of("multiply", "x", Constant_("c")), Constant_("n")),
        _scale_after_choice, _is_scaled_product,
    ),
    *(
        RewriteRule(
            "matmul_of_scaled_rows", of("matmul", of("multiply", e, "r"), "v"),
            _scale_after_product, _bounded,
        )
        for e in _EXPONENTIALS
    ),
)  # fmt: skip
