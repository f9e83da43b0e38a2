"""Positional parameters of 0.1 functions (stubs of SDK 2.26)."""

from __future__ import annotations

import ast
from dataclasses import dataclass

__all__ = ["SIGNATURES", "CallSite", "bind"]

_UNARY = "x"
_BINARY = "x y"
_TABLE = {
    "nl.load": "src",
    "nl.load_transpose2d": "src",
    "nl.store": "dst value",
    "nl.copy": "src",
    "nl.shared_identity_matrix": "n dtype",
    "nl.ndarray": "shape dtype",
    "nl.zeros": "shape dtype",
    "nl.ones": "shape dtype",
    "nl.full": "shape fill_value dtype",
    "nl.zeros_like": "a dtype",
    "nl.empty_like": "a dtype",
    "nl.broadcast_to": "src shape",
    "nl.transpose": "x",
    "nl.loop_reduce": "x op loop_indices",
    "nl.matmul": "x y transpose_x",
    "nl.where": "condition x y",
    "nl.expand_dims": "data axis",
    "nisa.activation": "op data",
    "nisa.activation_reduce": "op data",
    "nisa.affine_select": "pred on_true_tile on_false_value",
    "nisa.bn_aggr": "data",
    "nisa.bn_stats": "data",
    "nisa.dma_copy": "dst src",
    "nisa.dma_transpose": "src",
    "nisa.dropout": "data prob",
    "nisa.iota": "expr dtype",
    "nisa.local_gather": "src_buffer index num_elem_per_idx num_valid_indices",
    "nisa.max8": "src",
    "nisa.memset": "shape value dtype",
    "nisa.nc_find_index8": "data vals",
    "nisa.nc_match_replace8": "data vals imm dst_idx",
    "nisa.nc_matmul": "stationary moving",
    "nisa.nc_stream_shuffle": "src dst shuffle_mask",
    "nisa.nc_transpose": "data",
    "nisa.range_select": "on_true_tile comp_op0 comp_op1 bound0 bound1",
    "nisa.reciprocal": "data",
    "nisa.scalar_tensor_tensor": "data op0 operand0 op1 operand1",
    "nisa.select_reduce": "dst predicate on_true on_false",
    "nisa.sequence_bounds": "segment_ids",
    "nisa.tensor_copy": "src",
    "nisa.tensor_copy_predicated": "src dst predicate",
    "nisa.tensor_partition_reduce": "op data",
    "nisa.tensor_reduce": "op data axis",
    "nisa.tensor_scalar": "data op0 operand0 reverse0 op1 operand1 reverse1",
    "nisa.tensor_scalar_reduce": "data op0 operand0 reduce_op reduce_res reverse0",
    "nisa.tensor_tensor": "data1 data2 op",
    "nisa.tensor_tensor_scan": "data0 data1 initial op0 op1 reverse0 reverse1",
}
SIGNATURES: dict[str, tuple[str, ...]] = {k: tuple(v.split()) for k, v in _TABLE.items()}
_REDUCTIONS = ("sum", "max", "min", "prod", "mean", "var", "all")
SIGNATURES |= {f"nl.{n}": ("x", "axis") for n in (*_REDUCTIONS, "softmax")}


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call with its arguments by parameter name, in the order written."""

    name: str
    node: ast.Call
    arguments: dict[str, ast.expr]

    def get(self, name: str) -> ast.expr | None:
        """An argument, or None if it was not given or is the literal None."""
        node = self.arguments.get(name)
        if isinstance(node, ast.Constant) and node.value is None:
            return None
        return node


def bind(name: str, node: ast.Call, positional: tuple[str, ...]) -> CallSite | None:
    """The call's arguments by name; None if it cannot be told (`*args`, too many)."""
    if any(isinstance(a, ast.Starred) for a in node.args) or len(node.args) > len(positional):
        return None
    if any(k.arg is None for k in node.keywords):
        return None
    bound = dict(zip(positional, node.args, strict=False))
    bound |= {k.arg: k.value for k in node.keywords if k.arg}
    return CallSite(name, node, bound)
