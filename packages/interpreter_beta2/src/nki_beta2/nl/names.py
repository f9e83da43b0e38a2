"""`nki.language` of a version: tensors, dtypes, buffers, loops, program ids, operation names."""

from __future__ import annotations

import os
from types import FunctionType
from typing import Any, NoReturn

from neuroncore.enums import MemorySpace
from neuroncore.errors import (
    absent_name,
)
from neuroncore.machine.backend import CURRENT
from neuroncore.machine.launch import RUNNING
from neuroncore.memory import ds
from neuroncore.options import Options
from neuroncore.surface import VERSIONS, span, version_tuple
from neuroncore.targets import Target, resolve_target
from nki_beta2.kernel.jit import Language
from nki_beta2.kernel.tensor import tensor_class
from nki_beta2.nl.creation import BUFFERS, creation_functions
from nki_beta2.nl.loops import loops, program_functions, python_loop
from nki_beta2.nl.operations import operations
from nki_dtypes import ALL, DType


class NKIObject:
    """Base of the classes that kernel code may define."""


def language_contents(language: Language) -> dict[str, Any]:
    """Everything `nki.language` offers in this version and the machine models."""
    contents = operations(language)
    contents |= {d.name: d for d in ALL if version_tuple(d.since) <= language.version}
    contents |= BUFFERS
    contents |= creation_functions(language)
    contents |= program_functions() | loops(language)
    contents |= {
        name: python_loop(name) for name in ("affine_range", "sequential_range", "static_range")
    }
    contents |= {
        "ds": ds,
        "tile_size": tile_size(language),
        "NKIObject": NKIObject,
        "NkiTensor": tensor_class(language.choice.nki),
        "MemoryRegion": MemorySpace,
    }
    if language.version == (0, 3):
        contents["range"] = python_loop("range")
    if language.version >= (0, 6):
        contents["DType"] = DType
    for name, value in contents.items():
        if isinstance(value, FunctionType) and value is not ds:
            value.__qualname__ = f"nl.{name}"  # the name in Python's errors
    return contents


# -- sizes ---------------------------------------------------------------------------------------

_PE_TRANSPOSE = "NKI_DMA_TRANSPOSE_AS_PE_TRANSPOSE"
"""The compiler's environment variable that costs a bank [NKI: nl.tile_size.psum_num_banks]."""

_NOT_PRINTED = ("psum_min_align", "sbuf_min_align")  # of every version [NKI: nl.tile_size]

_FROM_0_4, _FROM_0_5 = VERSIONS[VERSIONS.index("0.4") :], VERSIONS[VERSIONS.index("0.5") :]
_VERSIONS: dict[str, tuple[str, ...]] = {
    "psum_num_banks": _FROM_0_4, "sbuf_fmax": _FROM_0_4, "sbuf_fmax_bytes": _FROM_0_4,
    "sbuf_size_bytes": _FROM_0_4, "psum_fmax_bytes": ("0.4",),
    "psum_bank_fmax": _FROM_0_5, "psum_bank_fmax_bytes": _FROM_0_5,
}  # fmt: skip
"""The versions of the sizes that not all have [NKI: nl.tile_size, by version]."""


class TileSize:
    """Hardware sizes, in elements of float32 where the name does not say bytes.

    Inside a kernel they are the sizes of its core; outside, of the target in force.
    """

    def __init__(self, language: Language) -> None:
        self._language = language

    def __dir__(self) -> list[str]:
        nki = self._language.choice.nki
        sizes = (name for name in vars(TileSize) if not name.startswith("_"))
        return [name for name in sizes if nki in _VERSIONS.get(name, VERSIONS)]

    @property
    def _machine(self) -> tuple[Target, Options]:
        launch = RUNNING.get()
        if launch is not None:
            return launch.core.target, launch.core.options
        choice = CURRENT.get() or self._language.choice
        return resolve_target(choice.target), choice.options

    @property
    def _target(self) -> Target:
        return self._machine[0]

    @property
    def _usable_sbuf_bytes(self) -> int:
        target, options = self._machine
        return options.usable_sbuf_bytes or target.usable_sbuf_bytes

    @property
    def pmax(self) -> int:
        """Partitions of SBUF and PSUM."""
        return self._target.partitions

    @property
    def psum_fmax(self) -> int:
        """float32 elements per partition of one PSUM bank."""
        return self._target.psum_bank_bytes // 4

    @property
    def psum_bank_fmax(self) -> int:
        """The same as psum_fmax, under its later name."""
        return self.psum_fmax

    @property
    def psum_bank_fmax_bytes(self) -> int:
        """Bytes per partition of one PSUM bank."""
        return self._target.psum_bank_bytes

    @property
    def psum_fmax_bytes(self) -> int:
        """The same as psum_bank_fmax_bytes, under the name that the 0.4 page prints."""
        return self._target.psum_bank_bytes

    @property
    def psum_num_banks(self) -> int:
        """PSUM banks per partition; from gen3 on one is the compiler's where it transposes by the
        tensor engine what DMAs are to transpose.
        """
        target = self._target
        is_taken = target.generation >= 3 and os.environ.get(_PE_TRANSPOSE, "").lower() == "true"
        return target.psum_banks - is_taken

    @property
    def gemm_stationary_fmax(self) -> int:
        """Largest free size of a stationary matrix."""
        return self._target.stationary_free_max

    @property
    def gemm_moving_fmax(self) -> int:
        """Largest free size of a moving matrix into one PSUM bank."""
        return self.psum_fmax

    @property
    def bn_stats_fmax(self) -> int:
        """Largest free size of bn_stats."""
        return 512

    @property
    def sbuf_fmax_bytes(self) -> int:
        """Usable SBUF bytes per partition: the option usable_sbuf_bytes, or the generation's.

        No document prints it; neuroncore.targets says where ours comes from.
        """
        return self._usable_sbuf_bytes

    @property
    def total_available_sbuf_size(self) -> int:
        """The same as sbuf_fmax_bytes, under the name that every version has."""
        return self._usable_sbuf_bytes

    @property
    def sbuf_fmax(self) -> int:
        """Usable float32 elements per partition of SBUF."""
        return self.sbuf_fmax_bytes // 4

    @property
    def sbuf_size_bytes(self) -> int:
        """All of SBUF in bytes."""
        return self._target.sbuf_bytes * self._target.partitions

    def __getattr__(self, name: str) -> NoReturn:
        hint = "NKI has it, and no document prints its value" if name in _NOT_PRINTED else None
        if name in _VERSIONS:
            nki = self._language.choice.nki
            hint = f"it is part of NKI {span(_VERSIONS[name])}, and this is {nki}"
        raise absent_name("nl.tile_size", name, sorted(dir(self)), hint)


def tile_size(language: Language) -> TileSize:
    """The sizes that a version has; reading another says which versions have it."""
    nki = language.choice.nki
    absent = {name: _ABSENT for name, having in _VERSIONS.items() if nki not in having}
    return type("TileSize", (TileSize,), absent | {"__doc__": TileSize.__doc__})(language)


def _absent(self: TileSize) -> NoReturn:
    raise AttributeError  # Python then calls __getattr__, which raises the error


_ABSENT = property(_absent)
