"""Indirect accesses: numbers of an index tile have to stay inside the indexed dimension.

The machine only checks that an access stays inside its tensor. 0.1 indexes dimensions: an access
past the end of a row is an error, not the beginning of the next row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from neuroncore.enums import OobMode
from neuroncore.errors import AccessError
from neuroncore.memory import Dynamic, View
from neuroncore.spec import Indirection


class Renewable(Protocol):
    """A copy of an index tile, which is renewed after the tile was written."""

    def renew(self) -> None:
        """Copy the numbers of the tile again if they may have changed."""


RULE = "NKI 0.1: indirect memory access"


@dataclass(frozen=True, slots=True)
class IndirectOffset(Dynamic):
    """As Dynamic: an access that reaches `reach` elements beyond each number in its dimension.

    `limit` is the first number that is too large, `shape` that of the indexed tensor. `followed` is
    the tile whose numbers `index` has in a copy.
    """

    reach: int
    shape: tuple[int, ...]
    copied: Renewable | None = None


def check_indirect(
    instruction: str, operands: Sequence[Any], moving: Sequence[int], attrs: Mapping[str, Any]
) -> None:
    """Renew the copied numbers of indirect operands and check their range.

    `moving` are the positions of indirect operands. Raises AccessError for the first number with
    which one leaves its dimension, unless the attributes skip such numbers or nothing is computed.
    """
    for at in moving:
        view = operands[at]
        if not isinstance(view.dynamic, IndirectOffset):
            continue
        if view.dynamic.copied is not None:
            view.dynamic.copied.renew()
        if view.core.computes and attrs.get("oob_mode") is not OobMode.skip:
            _check_numbers(instruction, view, view.dynamic)


def _check_numbers(instruction: str, view: View, moved: IndirectOffset) -> None:
    numbers = moved.index.array.reshape(-1).astype(np.int64)
    outside = np.flatnonzero((numbers < 0) | (numbers >= moved.limit))
    if not outside.size:
        return
    assert view.spec.indirect is not None
    at, dim = int(outside[0]), view.spec.indirect.dim
    first, size = int(numbers[at]), moved.shape[dim]
    found = f"index {first}" if not moved.reach else f"indices {first} to {first + moved.reach}"
    row = f" (row {at} of the index tile)" if numbers.size > 1 else ""
    tensor = f"{view.name}, a tensor" if view.name else "a tensor"
    raise AccessError(
        f"index out of range in dimension {dim}",
        expected=f"0 <= index < {size}",
        got=f"{found}{row} on {tensor} of shape {moved.shape}",
        hint="the numbers come from a tile, and mask= names positions, not numbers: bring them "
        "into range first, or skip bad rows: nisa.dma_copy(…, oob_mode=nisa.oob_mode.skip)",
        instruction=instruction,
        rule=RULE,
    )


def derived_indirection(view: View, array: np.ndarray) -> tuple[IndirectOffset, Indirection]:
    """The offset of a further view `array` of an indirect view.

    Raises AccessError for rows that a tile names one by one, and for elements of another size that
    the number does not count.
    """
    moved, indirect = view.dynamic, view.spec.indirect
    assert isinstance(moved, IndirectOffset) and indirect is not None
    if indirect.kind != "scalar":
        raise rows_named_by_a_tile(view.shape)
    distance = moved.stride * view.array.itemsize
    stride, rest = divmod(distance, array.itemsize)
    if rest:
        raise AccessError(
            f"elements of {array.itemsize} bytes in an access that a tile moves by {distance}",
            expected=f"steps of a multiple of {array.itemsize} bytes",
            got=repr(view),
            hint="view the tensor first, then index it",
            rule=RULE,
        )
    return replace(moved, stride=stride), replace(indirect, stride=stride)


def rows_named_by_a_tile(shape: tuple[int, ...]) -> AccessError:
    return AccessError(
        "a view of rows that an index tile names",
        got=f"an access of shape {shape}",
        hint="gather them first: tile = nl.load(x[rows, i_f]), then a view of the tile, or "
        "nl.transpose(tile)",
        rule=RULE,
    )
