"""Runs programs on the machine."""
