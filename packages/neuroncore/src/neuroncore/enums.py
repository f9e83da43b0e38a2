"""The closed sets of attribute values; codes as the 0.6 stubs print them."""

from __future__ import annotations

from enum import Enum
from functools import total_ordering

from neuroncore._closed import Closed


class DgeMode(Closed, Enum):
    """Who generates DMA descriptors."""

    unknown = 0
    swdge = 1
    hwdge = 2
    none = 3

    __hash__ = object.__hash__


class OobMode(Closed, Enum):
    """What a dynamic access out of bounds does."""

    error = 0
    skip = 1

    __hash__ = object.__hash__


class ReduceCmd(Closed, Enum):
    """What happens to an engine's accumulator registers."""

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
