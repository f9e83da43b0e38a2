"""Finds violations of a program without running it."""
