"""Kernel programs as trees of statements: places, names, replacement, construction."""
