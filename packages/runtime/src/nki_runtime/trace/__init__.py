"""`nki-run --trace`, and the pictures and traces of timelines."""

from nki_runtime.trace.instruction_table import write_instruction_table
from nki_runtime.trace.launches import LaunchRecorder
from nki_runtime.trace.svg import picture, write_svg

__all__ = ["LaunchRecorder", "picture", "write_instruction_table", "write_svg"]
