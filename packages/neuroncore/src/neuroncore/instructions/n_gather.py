"""nc_n_gather: elements of the same partition, picked by an index tile, on GpSimdE."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

import numpy as np

from neuroncore.enums import SBUF, Engine, MemorySpace
from neuroncore.instructions._cost import one_pass
from neuroncore.instructions._numerics import raw_reader
from neuroncore.instructions._record import Call, Example, In, Instruction, Out
from neuroncore.instructions._rules import same_dtype, same_free, same_partitions
from neuroncore.instructions.gather import reject_outside
from neuroncore.memory import View
from neuroncore.work import MicroOp
from nki_dtypes import uint32


def nc_n_gather(c: Call) -> Callable[..., None]:
    """dst[p, i] = data[p, indices[p, i]], free dimensions flattened; raises AccessError outside."""
    read = raw_reader(c.data, (c.data.partitions, c.data.free))
    places = raw_reader(c.indices, (c.data.partitions, c.indices.free))

    def gather(dst: View, data: View, indices: View) -> None:
        found = places(indices)
        reject_outside(c, "indices", int(found.max()), c.data.free - 1)
        taken = np.take_along_axis(read(data), found.astype(np.intp), axis=1)
        dst.array[...] = taken.reshape(dst.shape)

    return gather


def _n_work(c: Call) -> list[MicroOp]:
    """ceil(F / 512) groups of instructions [NKI: nc_n_gather]; their cost is not published: N."""
    return one_pass(c, c.dst.free) * ceil(c.dst.free / 512)


NC_N_GATHER = Instruction(
    name="nc_n_gather",
    engines=(Engine.gpsimd,),
    operands={
        "dst": Out("P I", SBUF),
        "data": In("P F", SBUF),
        "indices": In("P I", SBUF, dtypes=frozenset({uint32})),
    },
    limits=[
        same_partitions("dst", "data", "indices", data="float32[8, 4] sbuf"),
        same_free("dst", "indices", indices="uint32[2, 4] sbuf"),
        same_dtype("data", dst="bfloat16[2, 3] sbuf"),
    ],
    work=_n_work,
    run=nc_n_gather,
    result=lambda c: (c.indices.shape, c.data.dtype, MemorySpace.sbuf),
    moves_bits=lambda c: True,
    examples=[
        Example({"dst": "float32[2, 3] sbuf", "data": np.arange(8.0).reshape(2, 4),
                 "indices": ("sbuf uint32", np.array([[3, 3, 0], [1, 2, 0]]))},
                {"dst": np.array([[3.0, 3, 0], [5, 6, 4]])}),
    ],
)  # fmt: skip
