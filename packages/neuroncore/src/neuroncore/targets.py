"""The generations of NeuronCore: sizes as the architecture guides print them."""

from __future__ import annotations

from dataclasses import dataclass

from neuroncore.errors import OptionError

PARTITIONS = 128
"""Partitions of SBUF and PSUM of every generation [NKI architecture guides]."""
QUADRANT = 32
"""Partitions of a quadrant: engines start at 0, 32, 64 and 96 [NKI architecture guide: start
partition]."""
GPSIMD_PARTITIONS = 16
"""Partitions that each of GpSimdE's eight processors is connected to [NKI: local_gather]."""
NUM_PSUM_BANKS = 8
BANK_BYTES = 2 * 1024
"""Bytes of a PSUM bank in each partition, of every generation [NKI architecture guides]."""
BANK_ELEMS = BANK_BYTES // 4
"""float32 elements of a PSUM bank in each partition: moving columns of one matmul."""


@dataclass(frozen=True, slots=True)
class Target:
    """One generation.

    Sizes are bytes per partition. Sources: NKI architecture guides for Trainium/Inferentia2,
    Trainium2 and Trainium3.
    """

    name: str
    generation: int
    sbuf_bytes: int
    usable_sbuf_bytes: int
    moving_free_max: int
    """Largest moving free size of one matmul into float32 PSUM, in elements."""
    psum_bytes: int = 16 * 1024
    psum_banks: int = NUM_PSUM_BANKS
    psum_bank_bytes: int = BANK_BYTES
    partitions: int = PARTITIONS
    stationary_free_max: int = PARTITIONS
    bn_stats_free_max: int = 512
    """Largest F of one bn_stats [NKI: tile_size.bn_stats_fmax]."""
    search_free_max: int = 16_384
    """Largest F of max8, nc_find_index8 and nc_match_replace8 [NKI: max8, tile size]."""

    @property
    def nc_version(self) -> str:
        return f"gen{self.generation}"


# No document prints the usable SBUF size. For gen3 the public kernel library keeps 16,384 + 8 bytes
# per partition back; the same reserve is assumed for the others (check: allocate until it fails).
_RESERVED_SBUF_BYTES = 16_384 + 8

TARGETS = {
    t.name: t
    for t in (
        Target("trn1", 2, 192 * 1024, 192 * 1024 - _RESERVED_SBUF_BYTES, BANK_ELEMS),
        Target("trn2", 3, 224 * 1024, 224 * 1024 - _RESERVED_SBUF_BYTES, BANK_ELEMS),
        Target("trn3", 4, 256 * 1024, 256 * 1024 - _RESERVED_SBUF_BYTES, 4096),
    )
}

_ALIASES = {"inf2": "trn1", "gen2": "trn1", "gen3": "trn2", "gen4": "trn3"}


def resolve_target(name: str) -> Target:
    """The generation called `name` (trn1, inf2, gen2, trn2, gen3, trn3, gen4).

    Raises OptionError for any other name.
    """
    found = TARGETS.get(_ALIASES.get(name, name))
    if found is None:
        known = ", ".join([*TARGETS, *_ALIASES])
        raise OptionError(f"unknown target {name!r}", expected=f"one of {known}", got=repr(name))
    return found
