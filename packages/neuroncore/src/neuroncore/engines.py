"""The engines of a NeuronCore and the memories they reach."""

from __future__ import annotations

from enum import Enum

from neuroncore._closed import Closed


class Engine(Closed, Enum):
    """An instruction stream of the core. Codes as the 0.6 stubs print them."""

    unknown = 0
    tensor = 1
    scalar = 2
    gpsimd = 3
    dma = 4
    vector = 5
    sync = 6

    __hash__ = object.__hash__  # members are singletons; Enum's own hash costs 100 ns per look-up

    def __repr__(self) -> str:
        return f"engine.{self.name}"


class Space(Closed, Enum):
    """A memory in which a tensor lives."""

    hbm = "hbm"
    private_hbm = "private_hbm"
    shared_hbm = "shared_hbm"
    sbuf = "sbuf"
    psum = "psum"

    __hash__ = object.__hash__

    @property
    def on_chip(self) -> bool:
        """Whether dimension 0 is the partition dimension."""
        return self is Space.sbuf or self is Space.psum

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


SBUF = frozenset({Space.sbuf})
PSUM = frozenset({Space.psum})
ON_CHIP = SBUF | PSUM
HBM = frozenset({Space.hbm, Space.private_hbm, Space.shared_hbm})

REACH: dict[Engine, frozenset[Space]] = {
    Engine.tensor: ON_CHIP,  # reads SBUF, writes PSUM: each tensor instruction says so itself
    Engine.vector: ON_CHIP,
    Engine.scalar: ON_CHIP,
    Engine.gpsimd: SBUF,
    Engine.sync: HBM | SBUF,  # its sequencer loads and stores registers
    Engine.dma: HBM | ON_CHIP,  # PSUM as a source, up to 0.2: dma_copy itself says so
}
"""Which memories each engine reads and writes [NKI architecture guide, engine reach]."""
