"""`nki.language` of a version: tensors, dtypes, buffers, loops, program ids, operation names."""

from __future__ import annotations

from functools import partial
from types import FunctionType
from typing import Any

from neuroncore.enums import MemorySpace
from neuroncore.errors import absent_name
from neuroncore.machine.tile_size import SIZES, TileSize
from neuroncore.memory import ds
from neuroncore.surface import span, version_tuple
from nki_beta2.grids.creation import grid_functions
from nki_beta2.kernel.jit import Language
from nki_beta2.kernel.objects import object_class
from nki_beta2.kernel.tensor import tensor_class
from nki_beta2.nl.creation import BUFFERS, creation_functions
from nki_beta2.nl.loops import loops, program_functions, python_loop
from nki_beta2.nl.operations import operations
from nki_dtypes import ALL, WIDE, DType


def language_contents(language: Language) -> dict[str, Any]:
    """Everything `nki.language` offers in this version and the machine models."""
    contents = operations(language)
    contents |= {d.name: d for d in (*ALL, *WIDE) if version_tuple(d.since) <= language.version}
    contents |= BUFFERS
    contents |= creation_functions(language)
    contents |= program_functions() | loops(language)
    contents |= {
        name: python_loop(name, language)
        for name in ("affine_range", "sequential_range", "static_range")
    }
    contents |= {
        "ds": ds,
        "tile_size": TileSize(language.choice, partial(_no_size, nki=language.choice.nki)),
        "NKIObject": object_class(language.choice.nki),
        "NkiTensor": tensor_class(language.choice.nki),
        "MemoryRegion": MemorySpace,
    }
    if language.version == (0, 3):
        contents["range"] = python_loop("range", language)
    if language.version >= (0, 6):
        contents["DType"] = DType
    if language.version >= (0, 7):
        contents |= grid_functions(contents["ndarray"])
    for name, value in contents.items():
        if isinstance(value, FunctionType) and value is not ds:
            value.__qualname__ = f"nl.{name}"  # the name in Python's errors
    return contents


_NOT_PRINTED = ("psum_min_align", "sbuf_min_align")  # of every version [NKI: nl.tile_size]


def _no_size(sizes: TileSize, name: str, nki: str) -> AttributeError:
    hint = "NKI has it, and no document prints its value" if name in _NOT_PRINTED else None
    if name in SIZES:
        hint = f"it is part of NKI {span(SIZES[name].versions)}, and this is {nki}"
    return absent_name("nl.tile_size", name, sorted(dir(sizes)), hint)
