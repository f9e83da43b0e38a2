"""Constants of nl: dtypes, buffers, sizes; names and modules that the language does not have.

`neuronxcc.nki._private…`, `neuronxcc.nki.kernels…` and `neuronxcc.starfish…` belong to one build of
the vendor's compiler; they are not documented: importing them is an error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType
from typing import Any, Never

import ml_dtypes
import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.errors import Place, UnsupportedError
from neuroncore.machine.backend import Choice
from neuroncore.machine.tile_size import TileSize
from neuroncore.spec import as_dtype
from nki_beta1.values.attributes import unknown_name
from nki_dtypes import NumberInfo, finfo, tfloat32

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


DTYPES: dict[str, Any] = {
    "bool_": np.bool_,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "float16": np.float16,
    "float32": np.float32,
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float8_e4m3": np.dtype(ml_dtypes.float8_e4m3),
    "float8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "tfloat32": tfloat32,  # NumPy has none; it takes this for the float32 that stores it
}
"""0.1's dtypes are NumPy's, so that host code can use them."""

BUFFERS = {space.name: space for space in MemorySpace}


class Limits:
    """`nl.fp32` and `nl.bfp16`: the ends of a float format."""

    def __init__(self, dtype: str) -> None:
        info = finfo(dtype)
        self.min = float(info.min)
        self.max = float(info.max)


def number_info(dtype: Any) -> NumberInfo:
    """`nl.finfo`: the limits of a number format, as np.finfo gives them."""
    return finfo(as_dtype(dtype))


def _no_size(_: TileSize, name: str) -> UnsupportedError:
    is_named = name.endswith("_min_align")
    return UnsupportedError(
        f"nl.tile_size.{name} (NKI 0.1) is not modelled",
        hint="its value is not printed in the documents" if is_named else None,
    )


TILE_SIZE = TileSize(Choice("beta1", "0.1"), _no_size)
"""Hardware sizes of the target in force [NKI 0.1: nl.tile_size]."""

REASONS: dict[str, dict[str, str]] = {
    "neuronxcc.nki.language": {
        "gemm_grid": "no document says what it holds: use nl.mgrid",
        "gemm_stationary_grid": "no document says what it holds: use nl.mgrid",
    },
    "neuronxcc.nki.isa": {"builtin_custom_op": "custom operators run only on the device"},
    "neuronxcc.nki.compiler": {
        "multi_buffer": "no document says what it changes: leave it out",
        "allocation_scope": "no document says what it changes: leave it out",
    },
    "neuronxcc.nki": {
        "trace": "is not modelled yet",
        "FrameworkKernel": "it is the base of framework integrations, which compile for the "
        "device: call the kernel with arrays",
    },
}
"""Per module: names of NKI 0.1 that are not supported, and why."""

_REJECTED_WHEN_CALLED = frozenset({"trace"})
"""Names that kernels import without using them: generated ones all begin so."""


def unsupported_names(module: ModuleType) -> Callable[[str], Any]:
    """A module's `__getattr__`: names of 0.1 that are not built, and names that never were."""
    reasons = REASONS.get(module.__name__, {})
    short = module.__name__.removeprefix("neuronxcc.nki").lstrip(".")
    prefix = {"language": "nl", "isa": "nisa", "typing": "nt", "": "nki"}.get(short, f"nki.{short}")

    def reject(name: str) -> Never:
        raise UnsupportedError(
            f"{prefix}.{name} (NKI 0.1) {_verb(reasons[name])}", hint=_advice(reasons[name])
        )

    def missing(name: str) -> Any:
        if name in reasons:
            if name in _REJECTED_WHEN_CALLED:
                return lambda *args, **kwargs: reject(name)
            reject(name)
        if name.startswith("_") and not name.startswith(("__", "_repr_", "_ipython_")):
            reject_module(f"{module.__name__}.{name}")
        owner = f"module {module.__name__!r} of NKI 0.1"
        if name.startswith("__"):
            raise AttributeError(f"{owner} has no attribute {name!r}")
        raise unknown_name(owner, name, vars(module))

    return missing


def _verb(reason: str) -> str:
    return reason if reason.startswith("is ") else "is not modelled yet"


def _advice(reason: str) -> str | None:
    return None if reason.startswith("is ") else reason
