"""Schedules of kernel programs: steps that keep a kernel's meaning, each with its certificate."""

from nkigym.analysis.claims import StepResult
from nkigym.kernels.step import TransformError, TransformStep
from nkigym.transforms._registry import (
    TRANSFORMS,
    StepCertificate,
    apply,
    certify,
    opportunities,
    replay,
    take,
)
from nkigym.transforms._transform import Transform

__all__ = [
    "TRANSFORMS",
    "StepCertificate",
    "StepResult",
    "Transform",
    "TransformError",
    "TransformStep",
    "apply",
    "certify",
    "opportunities",
    "replay",
    "take",
]
