"""Loops, and the grid of programs that a launch runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from neuroncore.errors import LaunchError, UnsupportedError
from neuroncore.machine.launch import RUNNING, running
from neuroncore.notes import note_without_effect
from nki_beta1.loops.ranges import LoopRange
from nki_beta1.loops.single_trace import iterations

RULE = "NKI 0.1: SPMD launch grid"

_BOUNDS = frozenset({"start", "stop", "step"})


def _scheduled(name: str) -> Any:
    def loop(*args: int, **kwargs: Any) -> Iterable[int]:
        if bounds := kwargs.keys() & _BOUNDS:
            raise UnsupportedError(
                f"nl.{name} takes {min(bounds)} by position",
                expected=f"nl.{name}(start, stop, step)",
                rule="NKI 0.1: loops",
            )  # fmt: skip
        for hint, value in kwargs.items():  # documented as **kwargs: hints for the scheduler
            note_without_effect(
                f"nl.{name}({hint}={value!r})", "it changes when things happen", "NKI 0.1: loops"
            )
        numbers = _numbers(name, args)
        launch = RUNNING.get()
        if launch is None:
            return numbers
        known: Any = LoopRange(name, numbers, launch.core.iterations)  # type: ignore[attr-defined]
        return iterations(name, known) if launch.core.options.traced_once == "error" else known

    loop.__name__ = loop.__qualname__ = name
    loop.__doc__ = (
        "The numbers of `range`. 0.1 ran a loop's body once with a symbolic index; here it is "
        "executed for every one, so Python state in the body behaves as Python."
    )
    return loop


affine_range = _scheduled("affine_range")
sequential_range = _scheduled("sequential_range")


def static_range(*args: int) -> range:
    """The numbers of `range`, in a loop that 0.1 unrolled."""
    return _numbers("static_range", args)


def _numbers(name: str, bounds: tuple[int, ...]) -> range:
    try:
        return range(*bounds)
    except TypeError:
        raise LaunchError(
            f"nl.{name} takes one to three compile-time ints",
            got=repr(bounds),
            rule="NKI 0.1: loops",
        ) from None


@dataclass(frozen=True, slots=True)
class GridDim:
    """One axis of a launch grid: `count` programs, shared between `cores` physical cores.

    Programs run one after another here, so the number of cores changes nothing.
    """

    count: int
    cores: int = 1

    def __mul__(self, factor: int) -> GridDim:
        return spmd_dim(self, factor)

    __rmul__ = __mul__


def nc(cores: int) -> GridDim:
    """A grid axis of physical cores."""
    if not _is_count(cores):
        raise LaunchError("nl.nc takes a positive int", got=repr(cores), rule=RULE)
    return GridDim(int(cores), int(cores))


def spmd_dim(outer: int | GridDim, inner: int | GridDim) -> GridDim:
    """A grid axis over cores, with several programs on every one; one of both is nl.nc(n).

    The order decides which programs share a core; they run one after another here.
    """
    cores, count = (outer, inner) if isinstance(outer, GridDim) else (inner, outer)
    if not isinstance(cores, GridDim) or isinstance(count, GridDim) or not _is_count(count):
        raise LaunchError(
            "nl.spmd_dim takes the cores and how many programs each of them has",
            expected="nl.spmd_dim(n, nl.nc(m)) or nl.spmd_dim(nl.nc(m), n)",
            got=f"{outer!r} and {inner!r}",
            rule=RULE,
        )
    return GridDim(int(count) * cores.count, cores.cores)


def grid_shape(grid: Any) -> tuple[int, ...]:
    """The extents of `kernel[grid]`.

    Raises LaunchError for anything but positive ints, nl.nc and nl.spmd_dim.
    """
    axes = grid if isinstance(grid, tuple) else (grid,)
    shape = tuple(a.count if isinstance(a, GridDim) else a for a in axes)
    if any(not _is_count(n) for n in shape):
        raise LaunchError(
            "a launch grid is made of positive ints, nl.nc(n) and nl.spmd_dim(n, nl.nc(m))",
            got=repr(grid),
            hint="unpack it: kernel[n, m] or kernel[tuple(grid)]"
            if isinstance(grid, list)
            else None,
            rule=RULE,
        )
    return tuple(int(n) for n in shape)


def _is_count(n: Any) -> bool:
    return isinstance(n, (int, np.integer)) and not isinstance(n, bool) and bool(n > 0)


def program_id(axis: int) -> int:
    """The position of this program on a grid axis."""
    launch = running("nl.program_id")
    _check_axis("program_id", axis, launch.grid)
    return launch.program[axis]


def num_programs(axes: Any = None) -> int:
    """Programs along one axis or several; all of the grid without `axes`."""
    grid = running("nl.num_programs").grid
    if axes is None:
        return prod(grid)
    chosen = axes if isinstance(axes, (tuple, list)) else (axes,)
    for axis in chosen:
        _check_axis("num_programs", axis, grid)
    return prod(grid[a] for a in chosen)


def program_ndim() -> int:
    """The number of grid axes; 0 for a kernel launched without a grid."""
    return len(running("nl.program_ndim").grid)


def _check_axis(what: str, axis: int, grid: tuple[int, ...]) -> None:
    if not 0 <= axis < len(grid):
        raise LaunchError(
            f"nl.{what}({axis}): the kernel was launched "
            + (f"with a grid of {len(grid)} axes" if grid else "without a grid"),
            expected="a launch with a grid, such as kernel[n, m](…), and one of its axes",
            got=f"grid {grid}",
            rule=RULE,
        )
