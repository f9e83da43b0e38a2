"""register_load and register_store: one number between a tensor and a register.

The register is its cell (neuroncore.machine.registers), a tensor of one element that holds int32,
uint32 or float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neuroncore.enums import HBM, SBUF, Engine, MemorySpace
from neuroncore.errors import AttributeValueError, DTypeError, ShapeError
from neuroncore.instructions._cost import guessed
from neuroncore.instructions._numerics import like, reader, writer
from neuroncore.instructions._record import Call, Example, In, Instruction, Limit, Out
from neuroncore.instructions._rules import each, rule
from neuroncore.memory import View
from nki_dtypes import ALL, DType, Kind, float32, int32, uint32


def _is_real(dtype: DType) -> bool:
    """Whether elements are floats or block scales."""
    return dtype.is_float or dtype.kind is Kind.SCALE


def register_dtype(dtype: DType) -> DType:
    """The dtype of a register after a load of a number of this dtype: exactly that number."""
    if _is_real(dtype):
        return float32
    return uint32 if dtype is uint32 else int32


_NUMBERS = frozenset(d for d in ALL if not d.is_packed)
"""Any dtype except the packed ones [NKI 0.7: register_load]."""
_HELD = frozenset(map(register_dtype, _NUMBERS))


def register_load(c: Call) -> Callable[..., None]:
    """The register holds the number in src; raises nothing: each fits 32 bits exactly."""
    if c.dst.dtype is float32:
        read, write = reader(c.src, c.dst.shape), writer(c.dst)
        return lambda dst, src: write(dst, read(src))

    def load(dst: View, src: View) -> None:
        dst.array[...] = src.array.reshape(dst.shape)

    return load


def register_store(c: Call) -> Callable[..., None]:
    """dst = the number in the register; raises AttributeValueError for an int that dst cannot hold.

    A float is rounded to dst.
    """
    if c.src.dtype is float32:
        read, write = reader(c.src, c.dst.shape), writer(c.dst)
        return lambda dst, src: write(dst, read(src))
    bounds: Any = np.iinfo(c.dst.storage)

    def store(dst: View, src: View) -> None:
        value = src.array.item()
        if not bounds.min <= value <= bounds.max:
            raise AttributeValueError(
                f"the register holds {value}", expected=f"{bounds.min} to {bounds.max}, {c.dst}",
                got=str(value), operand="src", instruction="register_store",
                rule="NKI: register_store, dtypes",
            )  # fmt: skip
        dst.array[...] = value

    return store


def _one_element(name: str, **breaks: Any) -> Limit:
    return each(
        [name], lambda c, spec: spec.size == 1, ShapeError, "{name} has {it.size} elements",
        expected="one, of shape (1,) or (1, 1)", **breaks,
    )  # fmt: skip


REGISTER_LOAD = Instruction(
    name="register_load",
    engines=(Engine.sync,),
    operands={"dst": Out("1", HBM, dtypes=_HELD), "src": In("1", HBM | SBUF, dtypes=_NUMBERS)},
    limits=[
        _one_element("src", src="int32[1, 2] sbuf"),
        rule(
            lambda c: c.dst.dtype is register_dtype(c.src.dtype),
            DTypeError, "dst", "the register takes {c.dst.dtype}",
            expected=lambda c: str(register_dtype(c.src.dtype)), got="shape {c.src!r}",
            section="dtypes", src="float32[1, 1] sbuf",
        ),
    ],
    work=guessed,
    run=register_load,
    result=lambda c: (c.src.shape, register_dtype(c.src.dtype), MemorySpace.hbm),
    examples=[
        Example({"dst": "int32[1, 1] hbm", "src": ("sbuf int16", np.array([[-7]]))},
                {"dst": np.array([[-7]])}),
    ],
)  # fmt: skip

REGISTER_STORE = Instruction(
    name="register_store",
    engines=(Engine.sync,),
    operands={"dst": Out("1", HBM | SBUF, dtypes=_NUMBERS), "src": In("1", HBM, dtypes=_HELD)},
    limits=[
        _one_element("dst", dst="int32[1, 2] sbuf"),
        rule(
            lambda c: _is_real(c.dst.dtype) == c.src.dtype.is_float,
            DTypeError, "dst", "the register holds {c.src.dtype}, dst is {c.dst.dtype}",
            expected="a float of floats, an int of ints",
            hint="no document says whether the bits or the value are stored", section="dtypes",
            dst="float32[1, 1] sbuf",
        ),
    ],
    work=guessed,
    run=register_store,
    result=like("src"),
    examples=[
        Example({"dst": "uint8[1, 1] sbuf", "src": ("hbm int32", np.array([[200]]))},
                {"dst": np.array([[200]])}),
    ],
)  # fmt: skip
