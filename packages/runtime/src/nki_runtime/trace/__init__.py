"""Timelines of the kernels of a run in one trace file."""
