"""The index of a file: imports, kernels, helpers and launches, built with the standard `ast`."""

from nki_migrate.index.builtin_names import is_shadowed, shadowed_call
from nki_migrate.index.file import FileIndex, Function, Launch
from nki_migrate.index.project import Project
from nki_migrate.index.source import Source, Span, apply_edits, python_lines
from nki_migrate.index.walking import bound_names, children, walk

__all__ = [
    "FileIndex",
    "Function",
    "Launch",
    "Project",
    "Source",
    "Span",
    "apply_edits",
    "bound_names",
    "children",
    "is_shadowed",
    "python_lines",
    "shadowed_call",
    "walk",
]
