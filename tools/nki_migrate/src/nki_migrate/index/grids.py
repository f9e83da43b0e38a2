"""Reads of the launch grid in a kernel."""

from __future__ import annotations

import ast

from nki_migrate.index.file import FileIndex, Function
from nki_migrate.index.walking import walk

CORES = 2  # the most that a launch of 0.2 and later has on current parts; trap T7
_CALLS = {"nl.program_id", "nl.num_programs", "nl.program_ndim"}


def uses_grid(index: FileIndex, function: Function) -> bool:
    """Whether the kernel reads its place in the grid."""
    return any(is_grid_call(index, n) for n in walk(function.node))


def is_grid_call(index: FileIndex, node: ast.AST) -> bool:
    """Whether a node is a call that the grid answers."""
    return isinstance(node, ast.Call) and index.canonical(node.func) in _CALLS
