"""The module nki.isa of a version."""
