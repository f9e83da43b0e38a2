"""The closed sets of the machine and its instructions: engines, memories, modes.

Codes are as the 0.6 stubs print them.
"""

from __future__ import annotations

from enum import Enum
from functools import total_ordering
from typing import ClassVar, NoReturn

from neuroncore.errors import absent_name


class Closed:
    """Beside Enum: a member has a name and a value, and says so where it is asked for more."""

    _elsewhere: ClassVar[dict[str, str]] = {
        "ptr": "regions of a memory are of NKI 0.2 and not modelled: nl.ndarray places a tensor, "
        "at an address= where it is given one",
        "gpsimd_dma": "nisa.dma_engine is an enum of its own from 0.3 on",
    }
    """What NKI has under a name in some version, and this machine does not."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):  # also while Enum makes the member, which has no name yet
            raise AttributeError(name)
        raise absent_name(repr(self), name, ("name", "value"), Closed._elsewhere.get(name))


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


class MemorySpace(Closed, Enum):
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
        return self is MemorySpace.sbuf or self is MemorySpace.psum

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


SBUF = frozenset({MemorySpace.sbuf})
PSUM = frozenset({MemorySpace.psum})
ON_CHIP = SBUF | PSUM
HBM = frozenset({MemorySpace.hbm, MemorySpace.private_hbm, MemorySpace.shared_hbm})

REACH: dict[Engine, frozenset[MemorySpace]] = {
    Engine.tensor: ON_CHIP,  # reads SBUF, writes PSUM: each tensor instruction says so itself
    Engine.vector: ON_CHIP,
    Engine.scalar: ON_CHIP,
    Engine.gpsimd: SBUF,
    Engine.sync: HBM | SBUF,  # its sequencer loads and stores registers
    Engine.dma: HBM | ON_CHIP,  # PSUM as a source, up to 0.2: dma_copy itself says so
}
"""Which memories each engine reads and writes [NKI architecture guide, engine reach]."""


class DgeMode(Closed, Enum):
    """The generator of DMA descriptors."""

    unknown = 0
    swdge = 1
    hwdge = 2
    none = 3

    __hash__ = object.__hash__


class OobMode(Closed, Enum):
    """The result of a dynamic access out of bounds."""

    error = 0
    skip = 1

    __hash__ = object.__hash__


class ReduceCmd(Closed, Enum):
    """The effect on an engine's accumulator registers."""

    idle = 0
    reset = 1
    reduce = 2
    reset_reduce = 3
    load_reduce = 4

    __hash__ = object.__hash__


class MatmulPerfMode(Closed, Enum):
    """Faster matmul modes; double_row takes two fp8 rows a cycle (gen3 and later)."""

    none = "none"
    double_row = "double_row"

    __hash__ = object.__hash__


@total_ordering
class NcVersion(Closed, Enum):
    """Generations of NeuronCore, from the oldest on: `get_nc_version() >= nc_version.gen3`."""

    gen2 = 2
    gen3 = 3
    gen4 = 4

    __hash__ = object.__hash__

    def __lt__(self, other: object) -> bool:
        return self.value < other.value if isinstance(other, NcVersion) else NotImplemented


class DmaEngine(Closed, Enum):
    """Kinds of DMA engines (0.3 and later)."""

    dma = 1
    gpsimd_dma = 2

    __hash__ = object.__hash__


class MaskBehaviour(Enum):
    """The meaning of 0.1's `mask=` on an instruction."""

    elementwise = "elementwise"  # masked elements of dst keep their value
    reduction = "reduction"  # masked inputs count as the identity
    rectangular = "rectangular"  # the mask must shrink the tile to a rectangle
    unsupported = "unsupported"
