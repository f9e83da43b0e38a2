"""`nki-run --trace`, and the pictures and traces of timelines."""

from nki_runtime.trace.svg import picture, write_svg

__all__ = ["picture", "write_svg"]
