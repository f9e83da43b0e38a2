"""`nl.tile_size`: hardware sizes, in elements of float32 where the name does not say bytes."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from neuroncore.machine.backend import CURRENT, Choice
from neuroncore.machine.launch import RUNNING
from neuroncore.options import Options
from neuroncore.surface import VERSIONS
from neuroncore.targets import Target, resolve_target

_PE_TRANSPOSE = "NKI_DMA_TRANSPOSE_AS_PE_TRANSPOSE"
"""The compiler's environment variable that costs a bank [NKI: nl.tile_size.psum_num_banks]."""

_FROM_0_4, _FROM_0_5 = VERSIONS[VERSIONS.index("0.4") :], VERSIONS[VERSIONS.index("0.5") :]


class Size(NamedTuple):
    """A size of a machine, and the versions that have its name [NKI: nl.tile_size, by version]."""

    of: Callable[[Target, Options], int]
    versions: tuple[str, ...] = VERSIONS


def _psum_num_banks(target: Target, options: Options) -> int:
    """PSUM banks per partition; from gen3 on one is the compiler's where it transposes by the
    tensor engine what DMAs are to transpose.
    """
    is_taken = target.generation >= 3 and os.environ.get(_PE_TRANSPOSE, "").lower() == "true"
    return target.psum_banks - is_taken


def _usable_sbuf_bytes(target: Target, options: Options) -> int:
    """Usable SBUF bytes per partition: the option usable_sbuf_bytes, or the generation's.

    No document prints it; neuroncore.targets says where ours comes from.
    """
    return options.usable_sbuf_bytes or target.usable_sbuf_bytes


SIZES: dict[str, Size] = {
    "pmax": Size(lambda target, _: target.partitions),
    "psum_fmax": Size(lambda target, _: target.psum_bank_bytes // 4),
    "psum_bank_fmax": Size(lambda target, _: target.psum_bank_bytes // 4, _FROM_0_5),
    "psum_bank_fmax_bytes": Size(lambda target, _: target.psum_bank_bytes, _FROM_0_5),
    "psum_fmax_bytes": Size(lambda target, _: target.psum_bank_bytes, ("0.4",)),
    "psum_num_banks": Size(_psum_num_banks, _FROM_0_4),
    "gemm_stationary_fmax": Size(lambda target, _: target.stationary_free_max),
    "gemm_moving_fmax": Size(lambda target, _: target.psum_bank_bytes // 4),
    "bn_stats_fmax": Size(lambda target, _: target.bn_stats_free_max),
    "sbuf_fmax_bytes": Size(_usable_sbuf_bytes, _FROM_0_4),
    "total_available_sbuf_size": Size(_usable_sbuf_bytes),
    "sbuf_fmax": Size(lambda target, given: _usable_sbuf_bytes(target, given) // 4, _FROM_0_4),
    "sbuf_size_bytes": Size(lambda target, _: target.sbuf_bytes * target.partitions, _FROM_0_4),
}
"""The sizes by name; a bank is a PSUM bank, in bytes or float32 elements per partition."""


class TileSize:
    """Hardware sizes, in elements of float32 where the name does not say bytes.

    Inside a kernel they are the sizes of its core; outside, of the target in force. `absent` gives
    the error for a name that the version of `choice` does not have.
    """

    def __init__(self, choice: Choice, absent: Callable[[TileSize, str], Exception]) -> None:
        self._choice, self._absent = choice, absent

    def __dir__(self) -> list[str]:
        return [name for name, size in SIZES.items() if self._choice.nki in size.versions]

    def __getattr__(self, name: str) -> int:
        if name.startswith("_"):
            raise AttributeError(name)
        size = SIZES.get(name)
        if size is None or self._choice.nki not in size.versions:
            raise self._absent(self, name)
        return size.of(*machine_in_force(self._choice))


def machine_in_force(otherwise: Choice) -> tuple[Target, Options]:
    """Target and options of the running kernel's core, else of the switch, else of `otherwise`."""
    launch = RUNNING.get()
    if launch is not None:
        return launch.core.target, launch.core.options
    choice = CURRENT.get() or otherwise
    return resolve_target(choice.target), choice.options
