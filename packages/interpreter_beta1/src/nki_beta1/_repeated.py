"""Calls that repeat: from operands of known kinds straight to the instruction that they became.

Which instruction `x + y` is, in which dtype and with its operands in which order, depends on what
the operands are, not on what they hold. It is worked out once and kept with the core's plans.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from neuroncore.memory import View
from nki_beta1._emit import Core, Waiting
from nki_beta1._mask import region_of
from nki_beta1._operands import refuse_kept
from nki_beta1._usage import remember

if TYPE_CHECKING:
    from nki_beta1._tile import Tile


class Repeated:
    """An instruction whose tensors are those of a call, each once; other operands are fixed.

    `places` are the indices of the call's values among the operands, `tensors` those of tensors,
    `over` the shape that a mask
    is about.
    """

    __slots__ = ("covers", "operands", "over", "places", "ready", "result", "tensors", "used")

    def __init__(self, waiting: Waiting, places: Sequence[int]) -> None:
        assert waiting.over is not None
        self.used, self.ready, self.over = waiting.used, waiting.ready, waiting.over
        self.result = waiting.shape, waiting.dtype, waiting.space
        self.covers, self.places = waiting.covers, places
        self.operands = list(waiting.operands)
        self.tensors = [place for place in places if isinstance(self.operands[place], View)]
        for place in places:
            self.operands[place] = None


def again(core: Core, key: Any, mask: Any, *values: Any) -> Tile | None:
    """What a call that was remembered under `key` gives for these values.

    None for another call, and where the mask leaves something out.
    """
    try:
        known: Repeated | None = core.plans.get(key)
    except TypeError:  # something that has no hash: nothing is remembered of such a call
        return None
    if known is None or (mask is not None and region_of(mask, known.over) is not None):
        return None
    operands = known.operands.copy()
    for place, value in zip(known.places, values):  # noqa: B905 - of equal length
        operands[place] = value
    for place in known.tensors:
        if operands[place].core is not core:
            refuse_kept(operands[place])
    tile: Any = _new(core.view_class)
    tile.core, core.waiting = core, tile
    covers, ready, over = known.covers, known.ready, known.over
    tile.wait(Waiting(core, known.used, operands, known.result, None, covers, ready, over))
    return tile


_new = View.__new__


def remember_call(core: Core, key: Any, result: Any, *values: Any) -> None:
    """Keep what a call of these values became, where it is one instruction on just these."""
    waiting = result.waiting_call() if isinstance(result, View) else None  # type: ignore[attr-defined]
    if waiting is None or waiting.ready is None or waiting.used.looks_at_values:
        return
    if waiting.over is None or core.options.activation_range == "refuse":
        return
    places = [[i for i, v in enumerate(waiting.operands) if v is value] for value in values]
    if any(len(found) != 1 for found in places) or len({i for (i,) in places}) != len(places):
        return
    fixed = [v for i, v in enumerate(waiting.operands) if [i] not in places]
    if any(isinstance(value, View) for value in fixed):
        return
    try:
        remember(core, key, Repeated(waiting, [i for (i,) in places]))
    except TypeError:
        return


def kinds(
    core: Core, function: Any, args: Sequence[Any], named: Mapping[str, Any]
) -> tuple[tuple[Any, ...], list[Any]]:
    """What tells a call from others: its tensors by what they are, all else by value; the tensors.

    `mask=` is left out.
    """
    tensor, parts, tensors = core.view_class, [function, *named], []
    for value in (*args, *[v for name, v in named.items() if name != "mask"]):
        kind = value.__class__
        if kind is tensor:
            tensors.append(value)
            parts.append(value.spec)
        elif kind is list:
            parts += (list, *map(type, value), *value)
        elif isinstance(value, _NUMBERS):
            parts += (kind, value or repr(value))  # 0.0 == -0.0
        else:
            parts += (kind, value)
    return tuple(parts), tensors


_NUMBERS = (float, np.generic)
