"""tensor_copy_dynamic_src and tensor_copy_dynamic_dst: 0.1's names of dynamic copies.

From 0.2 on they are tensor_copy with a scalar offset on one side; both are that here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from neuroncore.enums import MaskBehaviour, MemorySpace
from neuroncore.errors import AccessError
from neuroncore.instructions._record import Call, Example, Limit
from neuroncore.instructions._rules import rule
from neuroncore.instructions.elementwise import TENSOR_COPY, tensor_copy
from neuroncore.memory import View


def tensor_copy_dynamic_src(c: Call) -> Callable[..., None]:
    """dst = src, whose place along a free dimension an int32 or uint32 in SBUF says."""
    return tensor_copy(c)


def tensor_copy_dynamic_dst(c: Call) -> Callable[..., None]:
    """dst = src, where an int32 or uint32 in SBUF says the place along a free dimension of dst."""
    return tensor_copy(c)


def _is_dynamic(name: str, **breaks: Any) -> Limit:
    """The operand is indexed by a scalar in SBUF, along a free dimension."""

    def legal(c: Call) -> bool:
        indirect = c.tiles[name].indirect
        return indirect is not None and indirect.kind == "scalar" and indirect.dim > 0

    return rule(
        legal, AccessError, name, f"{name} is not indexed by a scalar along a free dimension",
        expected="a dynamic view: one index in SBUF, on a free dimension",
        hint="tensor_copy copies at fixed places", section="NKI: {c.record.name}", **breaks,
    )  # fmt: skip


def _third_column(core: Any) -> View:
    """Columns 2 and 3 of a (2, 4) tile of 0 to 7, by an index tile."""
    base = core.adopt(np.arange(8, dtype=np.float32).reshape(2, 4), MemorySpace.sbuf)
    index = core.adopt(np.full((1, 1), 2, np.int32), MemorySpace.sbuf)
    return base.ap([[4, 2], [1, 2]], scalar_offset=index, indirect_dim=1)


TENSOR_COPY_DYNAMIC_SRC = replace(
    TENSOR_COPY,
    name="tensor_copy_dynamic_src",
    source="NKI 0.1 reference: nki.isa.tensor_copy_dynamic_src",
    limits=[*TENSOR_COPY.limits, _is_dynamic("src", src="float32[2, 2] sbuf")],
    run=tensor_copy_dynamic_src,
    mask=MaskBehaviour.rectangular,
    gathers=(),
    examples=[
        Example({"dst": "float32[2, 2] sbuf", "src": _third_column},
                {"dst": np.array([[2.0, 3.0], [6.0, 7.0]])}),
    ],
)  # fmt: skip

TENSOR_COPY_DYNAMIC_DST = replace(
    TENSOR_COPY,
    name="tensor_copy_dynamic_dst",
    source="NKI 0.1 reference: nki.isa.tensor_copy_dynamic_dst",
    limits=[*TENSOR_COPY.limits, _is_dynamic("dst", dst="float32[2, 2] sbuf")],
    run=tensor_copy_dynamic_dst,
    mask=MaskBehaviour.rectangular,
    gathers=(),
    covers=lambda c: False,
    examples=[Example({"dst": _third_column, "src": np.ones((2, 2))}, {})],
)
