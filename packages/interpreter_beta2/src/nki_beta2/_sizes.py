"""`nl.tile_size`: the sizes of the generation that runs."""

from __future__ import annotations

from typing import NoReturn

from neuroncore.backend import CURRENT
from neuroncore.errors import absent_name
from neuroncore.launch import RUNNING
from neuroncore.options import Options
from neuroncore.targets import Target, resolve_target
from nki_beta2._jit import Language

_NOT_PRINTED = ("psum_min_align", "sbuf_min_align")  # of every version [NKI: nl.tile_size]


class TileSize:
    """Hardware sizes, in elements of float32 where the name does not say bytes.

    Inside a kernel they are those of the core that runs it; outside, of the target in force.
    """

    def __init__(self, language: Language) -> None:
        self._language = language

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
        return self.psum_bank_fmax_bytes

    @property
    def psum_num_banks(self) -> int:
        """PSUM banks per partition."""
        return self._target.psum_banks

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
        target, options = self._machine
        return options.usable_sbuf_bytes or target.usable_sbuf_bytes

    @property
    def total_available_sbuf_size(self) -> int:
        """The same as sbuf_fmax_bytes, under its name before 0.4."""
        return self.sbuf_fmax_bytes

    @property
    def sbuf_fmax(self) -> int:
        """Usable float32 elements per partition of SBUF."""
        return self.sbuf_fmax_bytes // 4

    @property
    def sbuf_size_bytes(self) -> int:
        """All of SBUF in bytes."""
        return self._target.sbuf_bytes * self._target.partitions

    def __getattr__(self, name: str) -> NoReturn:
        sizes = [n for n in dir(type(self)) if not n.startswith("_")]
        hint = "NKI has it, and no document prints its value" if name in _NOT_PRINTED else None
        raise absent_name("nl.tile_size", name, sizes, hint)
