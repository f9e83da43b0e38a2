"""The fastest schedule of a kernel: searched, proved, as source."""

from nkigym.tuning.task import problem
from nkigym.tuning.tune import Tuned, tune
from nkigym.tuning.verification import Check, VerificationError, replayed, verify_winner

__all__ = [
    "Check",
    "Tuned",
    "VerificationError",
    "problem",
    "replayed",
    "tune",
    "verify_winner",
]
