"""Tile IR: described kernels as bytecode, with the memory orders that they need as tokens."""

from tokenplan.tile_ir.description import DescriptionError, TileKernel
from tokenplan.tile_ir.emission import emit
from tokenplan.tile_ir.model import Order, Orders
from tokenplan.tile_ir.orders import orders_of, total_orders

__all__ = [
    "DescriptionError",
    "Order",
    "Orders",
    "TileKernel",
    "emit",
    "orders_of",
    "total_orders",
]
