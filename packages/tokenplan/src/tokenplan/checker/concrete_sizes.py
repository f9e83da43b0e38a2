"""A function executed by the independent checker at several sizes, before its tokens are used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokenplan.checker.memory import DYNAMIC
from tokenplan.checker.tile_arithmetic import CONVERSIONS
from tokenplan.checker.tile_blocks import Execution, ExecutionError

MOST_STEPS = 20_000
"""Operations of one execution, at most."""
ARRAY_BYTES = 2**36
_DTYPES = {"bf16": np.uint16, "f8e4m3fn": np.uint8, "f8e5m2": np.uint8, "f8e8m0fnu": np.uint8}
_SETTINGS = ((3, False, (0, 0, 0)), (0, False, (0, 0, 0)), (1, True, (0, 0, 0)),
             (2, False, (3, 2, 1)))  # fmt: skip
"""The value of scalars that are neither extents nor strides; whether extents are 1; the block."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The checker's verdict: an order that no token has, or why a size was not executed."""

    executed: int
    lost: str = ""
    reason: str = ""

    @property
    def text(self) -> str:
        """For the report."""
        if self.lost:
            return f"not rewritten: at concrete sizes the checker finds that {self.lost}"
        if self.executed:
            return f"checked at {self.executed} concrete sizes: every order has a token"
        return f"not checked at concrete sizes: {self.reason}"


def checked_at_sizes(function: Any, may_alias: Sequence[tuple[str, str]] = ()) -> Checked:
    """Executes the function, with loops that have no iteration, too.

    Dynamic extents and strides describe dense arrays, of a tile or more: what the orders assume.
    """
    parameters = function.body.arguments
    pointers = [n for n, value in enumerate(parameters) if _is_pointer(value)]
    at = {f"p{n}": number for number, n in enumerate(pointers)}
    aliases = [(at[a], at[b]) for a, b in may_alias if a in at and b in at]
    arrays = [np.broadcast_to(np.uint8(0), (ARRAY_BYTES,))] * len(pointers)
    executed: list[int] = []
    reason = ""
    for number, is_small, block in _SETTINGS:
        sizes = dict(_dimensions(function, is_small))
        scalars = [sizes.get(value, number) for value in parameters if not _is_pointer(value)]
        run = Execution(arrays, block, _DTYPES, most_steps=MOST_STEPS, footprints_only=True)
        try:
            lost = next(run.run(function, scalars).lost(aliases), None)
        except (ExecutionError, OverflowError) as wrong:
            reason = str(wrong)
            continue
        if lost:
            return Checked(len(executed), lost)
        executed.append(number)
    # Of 0 alone, no loop may have had an iteration.
    return Checked(len(executed) if any(executed) else 0, reason=reason)


def _is_pointer(parameter: Any) -> bool:
    return parameter.type["element"].kind == "ptr"


def _dimensions(function: Any, is_small: bool) -> Iterator[tuple[Any, int]]:
    """Extents and strides that are parameters."""
    sources: dict[Any, Any] = {}
    tiles = dict(_tiles(function))
    for op in function.body.walk():
        if op.name in CONVERSIONS:
            (source,) = op.inputs
            sources[op.results[0]] = sources.get(source, source)
        elif op.name == "make_tensor_view":
            shape, strides = op.results[0].type["shape"], op.results[0].type["strides"]
            free = 1 if is_small else 1 << max(4, min(16, 24 // max(1, len(shape))))
            least = tiles.get(op.results[0], [1] * len(shape))
            sizes = [max(n, _fitting(free, stride, strides)) if extent == DYNAMIC
                     else max(1, extent)
                     for extent, stride, n in zip(shape, strides, least, strict=True)]  # fmt: skip
            yield from _numbers(op.operands["shape"], shape, sizes, sources)
            dense = [1]
            for size in reversed(sizes[1:]):
                dense.append(dense[-1] * size)
            yield from _numbers(op.operands["strides"], strides, dense[::-1], sources)


def _tiles(function: Any) -> Iterator[tuple[Any, list[int]]]:
    """The extents of a tile in each tensor view."""
    for op in function.body.walk():
        if op.operands.get("tensor_view"):
            kind, (tensor,) = op.results[0].type, op.operands["tensor_view"]
            if kind.kind != "gather_scatter_view":
                yield (
                    tensor,
                    [n for _, n in sorted(zip(kind["dim_map"], kind["tile"], strict=True))],
                )


def _fitting(free: int, stride: int, strides: Sequence[int]) -> int:
    """The extent, or less where a greater static stride ends the dimension before."""
    return min([free, *(other // stride for other in strides if 0 < stride < other)])


def _numbers(
    operands: Sequence[Any], static: Sequence[int], values: Sequence[int],
    sources: Mapping[Any, Any],
) -> Iterator[tuple[Any, int]]:  # fmt: skip
    free = [value for value, known in zip(values, static, strict=True) if known == DYNAMIC]
    for operand, value in zip(operands, free, strict=True):
        yield sources.get(operand, operand), value
