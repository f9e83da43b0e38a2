"""Writes programs as NKI source."""
