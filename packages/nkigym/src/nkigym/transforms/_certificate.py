"""What a step rests on, as data that a checker replays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from neuroncore.program import Access, Program
from nkigym.analysis.accesses import CallAccess
from nkigym.analysis.disjointness import Disjoint
from nkigym.kernels.step import TransformStep
from nkigym.transforms._registry import take


@dataclass(frozen=True, slots=True)
class StepCertificate:
    """A step and the claims that make it legal: pairs of accesses that never meet."""

    step: TransformStep
    claims: tuple[Disjoint, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data; offsets, shapes and strides count elements."""
        return {"step": self.step.to_json(), "claims": [_claim(c) for c in self.claims]}


def certify(program: Program, step: TransformStep) -> StepCertificate:
    """The certificate of a step. Raises TransformError where the step is not shown to be legal."""
    return StepCertificate(step, take(program, step).claims)


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
