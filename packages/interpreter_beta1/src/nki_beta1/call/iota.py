"""Index expressions and predicates as tiles, the operands of nl functions."""

from __future__ import annotations

from typing import Any

from neuroncore.enums import MemorySpace
from neuroncore.errors import SignatureError
from neuroncore.instructions import INSTRUCTIONS
from nki_beta1.call.apply import on_chip_shape
from nki_beta1.execution.core import core_of
from nki_beta1.execution.emission import emit
from nki_beta1.execution.plans import usage
from nki_beta1.index.expression import Index
from nki_beta1.index.mask import Mask
from nki_dtypes import int32


def affine_pattern(
    expr: Any, operand: str, instruction: str, shape: tuple[int, ...] | None = None
) -> dict[str, Any]:
    """An index expression as [[step, count], …], offset and channel_multiplier.

    Raises SignatureError where the expression is not affine.
    """
    if not isinstance(expr, Index) or expr.steps is None:
        raise SignatureError(
            f"{operand} is not an affine index expression",
            expected="sums of nl.arange axes times ints",
            got=repr(expr)[:80],
            operand=operand,
            instruction=instruction,
        )
    extents = expr.shape if shape is None else shape
    free = [[step, count] for step, count in zip(expr.steps[1:], extents[1:], strict=True)]
    return {
        "pattern": free or [[0, 1]],
        "offset": expr.const,
        "channel_multiplier": expr.steps[0] if extents[0] > 1 else 0,
    }


def index_tile(expr: Index, name: str) -> Any:
    """The values of an affine index expression as an int32 tile: a function of tiles takes it."""
    record, what = INSTRUCTIONS["iota"], f"nl.{name}"
    core = core_of(name)
    used = usage(core, record, affine_pattern(expr, "an operand", what))
    shape = on_chip_shape(expr.shape)
    return emit(core, used, {}, (shape, int32, MemorySpace.sbuf))


def compared(predicate: Mask, name: str) -> tuple[Any, str]:
    """A predicate as a tile, and the comparison of that tile with 0 that is true where it holds."""
    if predicate.comparison is not None:
        difference, op = predicate.comparison
        return index_tile(difference, name), op
    core, holds = core_of(name), predicate.dense()
    tile = core.allocate(on_chip_shape(holds.shape), int32, MemorySpace.sbuf)
    tile.initialize()
    tile.array[...] = holds.reshape(tile.shape)
    core.moved(tile)
    return tile, "not_equal"
