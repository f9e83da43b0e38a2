"""The owner of a frame's code: the kernel, this project, Python's library or NumPy."""

from __future__ import annotations

import sysconfig
from functools import lru_cache
from types import FrameType

from neuroncore.errors import OUR_PACKAGES

_LIBRARY = sysconfig.get_path("stdlib")
_INSTALLED = sysconfig.get_path("purelib")


def is_ours(frame: FrameType) -> bool:
    """Whether a frame runs this project's code."""
    return _package(frame) in OUR_PACKAGES


def is_of_a_library(frame: FrameType) -> bool:
    """Whether a frame runs code of NumPy or of Python's standard library."""
    return _package(frame) == "numpy" or _is_pythons(frame.f_code.co_filename)


@lru_cache(maxsize=1024)
def _is_pythons(file: str) -> bool:
    return file.startswith(_LIBRARY) and not file.startswith(_INSTALLED)


def _package(frame: FrameType) -> str:
    return frame.f_globals.get("__name__", "").partition(".")[0]
