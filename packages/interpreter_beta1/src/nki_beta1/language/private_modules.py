"""Modules of the vendor's package outside the language NKI 0.1: errors where they are imported.

`neuronxcc.nki._private…`, `neuronxcc.nki.kernels…` and `neuronxcc.starfish…` belong to one build of
the vendor's compiler; they are not documented.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Never

from neuroncore.errors import Place, UnsupportedError

RULE = "NKI 0.1: nki, nki.language, nki.isa, nki.typing and nki.compiler are its public modules"


class PrivateModuleError(UnsupportedError, ModuleNotFoundError):
    """An import of a module that NKI 0.1's language does not have."""


class NoSubmodules(list[str]):
    """A package's `__path__` without submodules: a search raises PrivateModuleError."""

    def __iter__(self) -> Iterator[str]:
        reject_module(_sought())


def reject_module(name: str) -> Never:
    """Raise PrivateModuleError at the kernel's import statement."""
    raise PrivateModuleError(
        f"{name} is not part of the NKI 0.1 language",
        expected="the public modules neuronxcc.nki, .language, .isa, .typing and .compiler",
        got=name,
        hint="private modules change with every build of the vendor's compiler: copy the kernel "
        "that you need from its public source, or import it only where a device is",
        rule=RULE,
        place=_importing(),
    )


def _sought() -> str:
    """The module that Python's import system is looking for."""
    frame: FrameType | None = sys._getframe(1)
    found = "a submodule"
    while frame is not None and not _is_user(frame):
        found = str(frame.f_locals.get("fullname", found))
        frame = frame.f_back
    return found


def _importing() -> Place | None:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not _is_user(frame):
        frame = frame.f_back
    return None if frame is None else Place(frame.f_code.co_filename, frame.f_lineno)


def _is_user(frame: FrameType) -> bool:
    """Neither ours nor Python's import machinery."""
    top = frame.f_globals.get("__name__", "").partition(".")[0]
    return top not in ("importlib", "nki_beta1", "neuroncore", "nki_runtime")
