"""Captured profiles: what a device measured, beside what the timeline predicts, line by line."""
