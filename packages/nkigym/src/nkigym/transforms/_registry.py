"""The transforms by name; the steps that a program offers, and their application."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from neuroncore.program import Access, Allocate, Call, Loop, Program, print_program
from nkigym.analysis.accesses import CallAccess
from nkigym.analysis.claims import StepResult
from nkigym.analysis.disjointness import Disjoint
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


# -- certificates ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StepCertificate:
    """A step of a program and the claims that make it legal: pairs of accesses that never meet."""

    program: Program
    step: TransformStep
    claims: tuple[Disjoint, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data; offsets, shapes and strides count elements."""
        claims = [_claim(c) for c in self.claims]
        program = print_program(self.program)
        return {"program": program, "step": self.step.to_json(), "claims": claims}


def certify(program: Program, step: TransformStep) -> StepCertificate:
    """The certificate of a step. Raises TransformError where the step is not shown to be legal."""
    return StepCertificate(program, step, take(program, step).claims)


def _claim(claim: Disjoint) -> dict[str, Any]:
    return {
        "buffer": claim.buffer.name,
        "shape": list(claim.buffer.shape),
        "shared": [[*s.loop, s.relation] for s in claim.shared],
        "a": _touch(claim.a),
        "b": _touch(claim.b),
    }


def _touch(touch: CallAccess) -> dict[str, Any]:
    access = touch.access
    assert isinstance(access, Access)
    return {
        "kind": touch.kind,
        "offset": [access.offset.constant, dict(access.offset.terms)],
        "shape": list(access.shape),
        "strides": list(access.strides),
        "loops": [list(r) for r in touch.loops],
    }
