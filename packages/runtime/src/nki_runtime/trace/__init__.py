"""`nki-run --trace`, and the pictures and traces of timelines."""

from nki_runtime.trace.launches import LaunchRecorder
from nki_runtime.trace.svg import picture, write_svg

__all__ = ["LaunchRecorder", "picture", "write_svg"]
