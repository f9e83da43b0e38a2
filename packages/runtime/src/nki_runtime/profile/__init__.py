"""`nki-run --profile`: what a profiler captured on a device, beside the estimate."""

from nki_runtime.profile.files import read_profile
from nki_runtime.profile.profiler import Profiler

__all__ = ["Profiler", "read_profile"]
