"""Tile IR: described kernels as bytecode, with the memory orders that they need as tokens."""

from tokenplan.tile_ir.bytecode_report import explain as explain_bytecode
from tokenplan.tile_ir.bytecode_report import is_bytecode
from tokenplan.tile_ir.description import DescriptionError, Index
from tokenplan.tile_ir.emission import emit
from tokenplan.tile_ir.kernel_builder import TileKernel
from tokenplan.tile_ir.model import Order, Orders
from tokenplan.tile_ir.neuroncore_program import neuroncore_program
from tokenplan.tile_ir.orders import orders_of, total_orders
from tokenplan.tile_ir.tile_views import lower

__all__ = [
    "DescriptionError",
    "Index",
    "Order",
    "Orders",
    "TileKernel",
    "emit",
    "explain_bytecode",
    "is_bytecode",
    "lower",
    "neuroncore_program",
    "orders_of",
    "total_orders",
]
