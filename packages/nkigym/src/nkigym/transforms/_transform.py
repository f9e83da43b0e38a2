"""Transforms: their sites, their preconditions, their results."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from neuroncore.program import Loop, Program
from nkigym.analysis.claims import StepResult
from nkigym.kernels.step import Path, TransformStep


@dataclass(frozen=True, slots=True)
class Transform:
    """A kind of step.

    `options` lists the steps whose form fits a statement at a place, which is one of `on`; `take`
    applies one, or raises TransformError with the reason.
    """

    name: str
    does: str
    options: Callable[[Program, Path, Any], Iterable[TransformStep]]
    take: Callable[[Program, TransformStep], StepResult]
    on: tuple[type, ...] = (Loop,)
    rank: int = 100
    """Place in the list of opportunities. A seeded search finds the same as long as it stays; new
    transforms come last, by name.
    """
