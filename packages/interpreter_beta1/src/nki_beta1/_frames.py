"""Whose code a frame runs: the kernel's, ours, or that of Python's library and NumPy."""

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
    """Whether a frame runs NumPy's code, or what is written in Python of Python's own library."""
    return _package(frame) == "numpy" or _is_pythons(frame.f_code.co_filename)


@lru_cache(maxsize=1024)
def _is_pythons(file: str) -> bool:
    return file.startswith(_LIBRARY) and not file.startswith(_INSTALLED)


def _package(frame: FrameType) -> str:
    return frame.f_globals.get("__name__", "").partition(".")[0]
