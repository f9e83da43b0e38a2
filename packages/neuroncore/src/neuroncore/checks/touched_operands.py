"""Operands that a call reads and writes, as its record declares them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from neuroncore.effects import Touch
from neuroncore.instructions import Call
from neuroncore.machine.observe import Event
from neuroncore.memory import View


@dataclass(frozen=True, slots=True)
class AccessedOperands:
    """Names of operands; an index tile is "<operand>.index".

    `covers`: every element of the outputs is written without being read.
    """

    reads: tuple[str, ...]
    writes: tuple[str, ...]
    covers: bool


def touched_by(call: Call) -> AccessedOperands:
    """Operands that this call reads, index tiles first (they determine the rest), and writes."""
    memory = [effect for effect in call.effects if not effect.is_register]
    reads = [
        effect.operand
        for effect in memory
        if effect.touch is not Touch.write and not _begins(call, effect.touch)
    ]
    reads.sort(key=lambda name: "." not in name)
    writes = [effect.operand for effect in memory if effect.touch is not Touch.read]
    return AccessedOperands(tuple(reads), tuple(writes), call.record.covers(call))


def _begins(call: Call, touch: Touch) -> bool:
    """Whether an accumulation overwrites what was not written before, so that it reads nothing."""
    return touch is Touch.accumulate and call.attrs.get("accumulate", True) is None


def operand_of(call: Call, views: Mapping[str, Any], name: str) -> Any:
    """The accessed part of the operand of that name, or the index tile of a dynamic one: its poison
    is looked up here and by the instruction alike.
    """
    if name in views:
        return call.touched_part(name, views[name])
    operand, _, _ = name.partition(".")
    tile = views[operand].dynamic.index
    tile.initialize()
    return tile


def tensors_read(
    event: Event, touched: AccessedOperands, chosen: np.ndarray | None
) -> Iterator[tuple[str, View]]:
    """The tensors that an instruction reads, by operand; of results that it writes only where
    `chosen`, nothing.
    """
    for name in touched.reads:
        view = operand_of(event.call, event.views, name)
        if isinstance(view, View) and (chosen is None or name not in touched.writes):
            yield name, view


def chosen_by(event: Event, touched: AccessedOperands) -> np.ndarray | None:
    """Where an instruction writes its results, which other operands decide; None: everywhere."""
    return None if touched.covers else event.call.record.chooses(event.call, event.views)


def kept(mask: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray | None:
    """Where elements of an operand of this shape count, if only `mask` of the result is kept."""
    if mask is None or shape == mask.shape:
        return mask
    if shape[0] == mask.shape[0] and all(n == 1 for n in shape[1:]):
        return np.any(mask.reshape(len(mask), -1), axis=1).reshape(shape)
    return np.ones(shape, np.bool_)
