"""Detects the steady state of loops and extrapolates it."""
