"""scalar_load and scalar_store: one integer between a tensor and a scalar of the device.

The scalar is its cell (neuroncore.machine.scalars), a tensor of one element, int32 or int64.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from neuroncore.enums import HBM, SBUF, Engine, MemorySpace
from neuroncore.errors import DTypeError, ShapeError
from neuroncore.instructions._cost import guessed
from neuroncore.instructions._numerics import copying, like
from neuroncore.instructions._record import Call, Example, In, Instruction, Limit, Out
from neuroncore.instructions._rules import each, rule
from neuroncore.memory import View
from nki_dtypes import int32, int64

SCALARS = frozenset({int32, int64})


def copied(c: Call) -> Callable[[View, View], None]:
    """dst = src, bit by bit."""
    return copying(c.dst, c.src)


def _one_element(name: str) -> Limit:
    return each(
        [name], lambda c, spec: spec.shape == (1, 1), ShapeError, "{name} has shape {it.shape}",
        expected="(1, 1)", **{name: "int32[1, 2] sbuf"},
    )  # fmt: skip


_SAME_WIDTH = rule(
    lambda c: c.dst.dtype is c.src.dtype,
    DTypeError, "dst", "the scalar holds {c.src.dtype}, dst is {c.dst.dtype}",
    expected="{c.src.dtype}", hint="a scalar is stored in its own width", section="dtypes",
    dst="int64[1, 1] sbuf",
)  # fmt: skip


SCALAR_LOAD = Instruction(
    name="scalar_load",
    engines=(Engine.sync,),
    operands={
        "dst": Out("1", HBM, dtypes=SCALARS),
        "src": In("1", HBM | SBUF, dtypes=SCALARS),
    },
    limits=[
        _one_element("src"),
        rule(
            lambda c: c.dst.dtype is c.src.dtype,
            DTypeError, "dst", "the scalar is {c.dst.dtype}, src {c.src.dtype}",
            expected="{c.src.dtype}", section="dtypes", dst="int64[1, 1] hbm",
        ),
    ],
    work=guessed,
    run=copied,
    result=lambda c: (c.src.shape, c.src.dtype, MemorySpace.hbm),
    examples=[
        Example({"dst": "int32[1, 1] hbm", "src": ("sbuf int32", np.array([[-7]]))},
                {"dst": np.array([[-7]])}),
    ],
)  # fmt: skip

SCALAR_STORE = Instruction(
    name="scalar_store",
    engines=(Engine.sync,),
    operands={
        "dst": Out("1", HBM | SBUF, dtypes=SCALARS),
        "src": In("1", HBM, dtypes=SCALARS),
    },
    limits=[_one_element("dst"), _SAME_WIDTH],
    work=guessed,
    run=copied,
    result=like("src"),
    examples=[
        Example({"dst": "int32[1, 1] sbuf", "src": ("hbm int32", np.array([[200]]))},
                {"dst": np.array([[200]])}),
    ],
)  # fmt: skip
