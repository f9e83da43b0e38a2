"""Recording, as `nki-run --record` does, for programs that load a file and call its functions."""

from nki_runtime.recording.instrument import instrumented
from nki_runtime.recording.recorder import load, recorded

__all__ = ["instrumented", "load", "recorded"]
