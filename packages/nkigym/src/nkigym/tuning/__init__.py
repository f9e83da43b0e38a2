"""The fastest schedule of a kernel: searched, proved, as source."""

from nkigym.tuning.errors import ProofError
from nkigym.tuning.problem import problem
from nkigym.tuning.proof import Check, prove, replayed
from nkigym.tuning.tune import Tuned, tune

__all__ = ["Check", "ProofError", "Tuned", "problem", "prove", "replayed", "tune"]
