"""What is to be tuned: a kernel program, or a NumPy function whose naive kernel it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from neuroncore.errors import KernelError
from neuroncore.program import Program, calls, check
from nkigym.search import ConstraintError

ENGINES = ("tensor", "vector", "scalar", "gpsimd")
"""Those that constraints can name; DMA queues are always there."""
TILES = (2, 3, 4, 8, 16)
"""Tiles along an axis of smaller kernels, of 512 or 128."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The kernel to begin with; `function` and `specs` where it was made from NumPy."""

    root: Program
    function: Callable[..., Any] | None = None
    specs: tuple[Any, ...] = ()

    def smaller(self) -> Iterator[tuple[str, Program]]:
        """The same function's naive kernel at fewer tiles, the fewest first."""
        if self.function is None:
            return
        from nkigym.naive import naive

        tried = set()
        for tiles in TILES:
            specs = [replace(spec, shape=_fewer(spec.shape, tiles)) for spec in self.specs]
            sizes = ", ".join(map(str, specs))
            if sizes in tried or specs == list(self.specs):
                continue
            tried.add(sizes)
            try:
                root = naive(self.function, *specs, target=self.root.target, nki=self.root.nki)
            except KernelError:
                continue  # sizes that only make sense together, such as heads of an attention
            yield sizes, root


def _fewer(shape: tuple[int, ...], tiles: int) -> tuple[int, ...]:
    """Axes of more tiles than that, of 512 where that divides them, with fewer."""
    return tuple(
        next((tiles * tile for tile in (512, 128) if n % tile == 0 and n > tiles * tile), n)
        for n in shape
    )


def problem(
    given: Program | Callable[..., Any],
    specs: Sequence[Any],
    target: str | None,
    nki: str | None,
) -> Problem:
    """The kernel to begin with, for a target and a version (None: the program's, or the newest).

    Raises ConstraintError for a program and specs, or a program that this target or version does
    not take; what `nkigym.naive` raises for functions.
    """
    if not isinstance(given, Program):
        from nkigen_lite import as_spec
        from nkigym.naive import naive

        wanted = tuple(as_spec(spec) for spec in specs)
        root = naive(given, *wanted, target=target or "trn2", nki=nki or "0.6")
        return Problem(root, given, wanted)
    if specs:
        raise ConstraintError("a kernel program says its shapes itself", expected="no specs")
    asked = replace(given, target=target or given.target, nki=nki or given.nki)
    try:
        check(asked)
    except KernelError as wrong:
        raise ConstraintError(
            f"{given.name} is no kernel for {asked.target} and NKI {asked.nki}", got=str(wrong)
        ) from None
    return Problem(asked)


def allowed(root: Program, engines: Sequence[str] | None) -> frozenset[str] | None:
    """The engines that a schedule may use; None are all.

    Raises ConstraintError for one that there is not, and where a call of the root has none left.
    """
    if engines is None:
        return None
    unknown = [name for name in engines if name not in ENGINES]
    if unknown or not engines:
        raise ConstraintError(
            f"{unknown[0]!r} is no engine" if unknown else "no engine is left",
            expected=f"some of {', '.join(ENGINES)}",
        )
    for call in calls(root.body):
        possible = {engine.name for engine in call.record.engines} - {"dma", "sync"}
        if possible and possible.isdisjoint(engines):
            raise ConstraintError(
                "these constraints contradict the kernel",
                expected=f"one of {', '.join(sorted(possible))} for {call.instruction}",
                got=f"engines {', '.join(engines)}", place=call.origin,
            )  # fmt: skip
    return frozenset(engines)
