"""Accesses by index expressions and index tiles."""
