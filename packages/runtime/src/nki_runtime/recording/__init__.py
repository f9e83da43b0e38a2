"""What `nki-run --record` does, for a program that loads a file and calls its functions itself."""

from nki_runtime.recording.instrument import instrumented
from nki_runtime.recording.recorder import load, recorded

__all__ = ["instrumented", "load", "recorded"]
