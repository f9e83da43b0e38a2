"""Schedules of kernel programs: steps that keep a kernel's meaning, each with its certificate."""

from nkigym.loops.certificate import StepCertificate, certify
from nkigym.loops.registry import TRANSFORMS, apply, opportunities, replay, take
from nkigym.loops.step import Refused, Step
from nkigym.loops.transform import Taken, Transform

__all__ = [
    "TRANSFORMS",
    "Refused",
    "Step",
    "StepCertificate",
    "Taken",
    "Transform",
    "apply",
    "certify",
    "opportunities",
    "replay",
    "take",
]
