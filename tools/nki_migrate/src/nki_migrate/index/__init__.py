"""The index of a file: imports, kernels, helpers and launches, built with the standard `ast`."""

from nki_migrate.index.file import FileIndex, Function, Launch
from nki_migrate.index.project import Project
from nki_migrate.index.source import Source, Span, apply_edits, python_lines
from nki_migrate.index.walking import children, walk

__all__ = [
    "FileIndex",
    "Function",
    "Launch",
    "Project",
    "Source",
    "Span",
    "apply_edits",
    "children",
    "python_lines",
    "walk",
]
