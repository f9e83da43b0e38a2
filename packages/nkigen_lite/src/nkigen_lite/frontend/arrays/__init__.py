"""Traced arrays: the views of a memory whose values are recorded on a tape."""
