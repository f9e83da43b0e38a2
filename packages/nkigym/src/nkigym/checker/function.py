"""What a tile program has to compute, said without tiles' order or names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from nkigym.checker.operators import Number

Shape = tuple[int, ...]
Corner: TypeAlias = tuple[int, int]
Inputs = Mapping[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Function:
    """A function of two parameters (name and shape, in order) into outputs.

    `values` gives for each output the number of each atom by its first row and column; `inputs` are
    arrays whose products are exact and whose sums round, so that another order shows; `results` is
    what comes out of these, to the bit.
    """

    shapes: Callable[[Sequence[Shape]], Sequence[Shape]]
    values: Callable[[Sequence[tuple[str, Shape]], int, Number], Sequence[dict[Corner, int]]]
    inputs: Callable[[Sequence[tuple[str, Shape]], np.random.Generator], Inputs]
    results: Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]]


def atom(name: str, row: int, column: int) -> tuple[str, int, int]:
    """What the atom of a parameter that begins there is called."""
    return name, row, column
