"""The fastest schedule of a kernel: searched, proved, as source."""

from nkigym.tuning.tune import Tuned, tune
from nkigym.tuning.verification import Check, VerificationError, replayed, verify_winner
from nkigym.tuning.workload import problem

__all__ = [
    "Check",
    "Tuned",
    "VerificationError",
    "problem",
    "replayed",
    "tune",
    "verify_winner",
]
