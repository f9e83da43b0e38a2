"""Plays micro-ops on lanes and resources."""
