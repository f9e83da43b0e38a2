"""Finds loops in straight-line statements."""
