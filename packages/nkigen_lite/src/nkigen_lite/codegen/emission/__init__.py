"""Statements of a kernel program, and the choice among candidates by predicted time."""
