"""The transforms by name; the steps that a program offers, and their application."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from neuroncore.program import Allocate, Call, Loop, Program
from nkigym.analysis.claims import StepResult
from nkigym.kernels.step import TransformError, TransformStep
from nkigym.kernels.tree import places, statement_at
from nkigym.transforms._transform import Transform


def _find() -> dict[str, Transform]:
    """Every transform of the modules of this folder, by name, in the order of their ranks."""
    names = (m.name for m in iter_modules([str(Path(__file__).parent)]))
    modules = [import_module(f"{__package__}.{n}") for n in names if not n.startswith("_")]
    found = {t for module in modules for t in vars(module).values() if isinstance(t, Transform)}
    return {t.name: t for t in sorted(found, key=lambda t: (t.rank, t.name))}


TRANSFORMS: dict[str, Transform] = _find()

_ON = {
    kind: tuple(t for t in TRANSFORMS.values() if kind in t.on) for kind in (Allocate, Call, Loop)
}


def opportunities(program: Program) -> tuple[TransformStep, ...]:
    """Every step whose form fits the program: by place, then by transform, in a fixed order.

    Whether one keeps the kernel's meaning is found when it is applied.
    """
    return tuple(_options(program))


def _options(program: Program) -> Iterator[TransformStep]:
    for at, statement in places(program):
        for transform in _ON[type(statement)]:
            yield from transform.options(program, at, statement)


def take(program: Program, step: TransformStep) -> StepResult:
    """The program after a step and what it claims. Raises TransformError with the reason."""
    transform = TRANSFORMS.get(step.transform)
    if transform is None:
        raise TransformError(f"unknown transform {step.transform}: {', '.join(TRANSFORMS)}", step)
    try:
        statement_at(program, step.at)
        return transform.take(program, step)
    except TransformError as rejected:
        rejected.step = step
        raise


def apply(program: Program, step: TransformStep) -> Program:
    """The program after a step; what the step does not concern is shared. Raises TransformError."""
    return take(program, step).program


def replay(program: Program, schedule: Iterable[TransformStep]) -> Program:
    """The program after all steps of a schedule. Raises TransformError at the first that fails."""
    for step in schedule:
        program = apply(program, step)
    return program
