"""Tile IR bytecode: written, read and shown as text."""

from tokenplan.tile_ir.bytecode.attributes import Bounded, DivBy, Number
from tokenplan.tile_ir.bytecode.errors import BytecodeError
from tokenplan.tile_ir.bytecode.module import Block, Function, Module, Operation, Value
from tokenplan.tile_ir.bytecode.operations import MAGIC
from tokenplan.tile_ir.bytecode.reader import read
from tokenplan.tile_ir.bytecode.text import text
from tokenplan.tile_ir.bytecode.types import Type
from tokenplan.tile_ir.bytecode.writer import write

__all__ = [
    "MAGIC",
    "Block",
    "Bounded",
    "BytecodeError",
    "DivBy",
    "Function",
    "Module",
    "Number",
    "Operation",
    "Type",
    "Value",
    "read",
    "text",
    "write",
]
