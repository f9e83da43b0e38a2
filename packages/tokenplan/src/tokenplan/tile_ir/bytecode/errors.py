"""What is wrong with a bytecode file or with a module that is to be written."""

from __future__ import annotations

from neuroncore.errors import LaunchError


class BytecodeError(LaunchError):
    """The file is not Tile IR bytecode of the supported subset, or the module does not fit it."""
