"""Calls that repeat: from operands of known kinds straight to the instruction that they became.

Which instruction `x + y` is, in which dtype and with its operands in which order, depends on what
the operands are, not on what they hold. It is worked out once and kept with the core's plans.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neuroncore.memory import View
from nki_beta1._emit import Core, Waiting, wait
from nki_beta1._usage import Prepared, Usage, remember

if TYPE_CHECKING:
    from nki_beta1._tile import Tile


class Repeated:
    """An instruction whose operands are those of a call: `first`, `second`, others none or fixed.

    `places` are the indices of the first and the second operand among the instruction's.
    """

    __slots__ = ("operands", "places", "ready", "result", "used")

    def __init__(self, waiting: Waiting, ready: Prepared, places: tuple[int, int]) -> None:
        self.used: Usage = waiting.used
        self.ready, self.places = ready, places
        self.result = waiting.shape, waiting.dtype, waiting.space
        self.operands = list(waiting.operands)
        for place in places:
            self.operands[place] = None

    def again(self, core: Core, first: Any, second: Any) -> Tile:
        """The tile that the call gives for other operands of the same kinds."""
        operands = self.operands.copy()
        at, other = self.places
        operands[at], operands[other] = first, second
        return wait(Waiting(core, self.used, operands, self.result, None, False, self.ready))


def remember_calls(core: Core, key: Any, result: Tile, first: Any, second: Any) -> None:
    """Keep what a call of two operands became, where it is one instruction on just these."""
    waiting = result.waiting_call()
    if waiting is None or waiting.ready is None:
        return
    places = [
        [i for i, value in enumerate(waiting.operands) if value is operand]
        for operand in (first, second)
    ]
    if first is second or [len(p) for p in places] != [1, 1]:
        return
    (at,), (other,) = places
    rest = [v for i, v in enumerate(waiting.operands) if i not in (at, other)]
    if not any(isinstance(value, View) for value in rest):
        remember(core, key, Repeated(waiting, waiting.ready, (at, other)))
