"""Errors in bytecode files and in modules that are to be written."""

from __future__ import annotations

from neuroncore.errors import LaunchError


class BytecodeError(LaunchError):
    """The file is not Tile IR bytecode of the supported subset, or the module does not fit it."""
