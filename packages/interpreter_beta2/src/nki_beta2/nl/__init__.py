"""The module nki.language of a version."""
