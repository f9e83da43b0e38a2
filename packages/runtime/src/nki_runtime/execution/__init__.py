"""Kernels called on arrays: simulated, recorded as programs, timed."""
