"""memset: a constant everywhere."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from neuroncore.enums import ON_CHIP, Engine, MaskBehaviour
from neuroncore.errors import AttributeValueError
from neuroncore.instructions._convert import as_engine
from neuroncore.instructions._cost import copy_rate, one_pass
from neuroncore.instructions._numerics import like, rounds
from neuroncore.instructions._record import Attr, Call, Example, Instruction, Number, Out
from neuroncore.instructions._rules import free_dims, rule
from neuroncore.memory import View
from nki_dtypes import DType, cast


def memset(c: Call) -> Callable[..., None]:
    """Every element of dst becomes value, rounded to dst's dtype."""
    if not rounds(c.dst):

        def fill(dst: View, value: float) -> None:
            dst.array[...] = value

        return fill
    dtype, storage = c.dst.dtype, c.dst.storage

    def fill_rounded(dst: View, value: float) -> None:
        dst.array[...] = constant_in(value, dtype).astype(storage)

    return fill_rounded


def constant_in(value: float, dtype: DType) -> np.ndarray:
    """The constant in `dtype`: integers exactly, floats from float32; both saturate."""
    if dtype.is_packed:
        return _packed_zero(value, dtype)
    if isinstance(value, (int, np.integer)):
        number, rounded = int(value), float(value)  # OverflowError: see _immediate.py
        if dtype.is_integer:
            info = np.iinfo(dtype.storage)
            return np.asarray(min(max(number, int(info.min)), int(info.max)), dtype.storage)
        fits = -(2**63) <= number < 2**63
        exact = np.asarray(number, np.int64) if fits else np.asarray(rounded)
    else:
        exact = np.asarray(value)
    return cast(exact.astype(np.float32), dtype)


def _packed_zero(value: float, dtype: DType) -> np.ndarray:
    if value != 0:
        raise AttributeValueError(
            f"value {value} for {dtype} elements",
            expected="0, the only constant of packed dtypes",
            got=repr(value),
            operand="value",
            instruction="memset",
            rule="NKI: memset, packed dtypes",
        )
    return np.zeros((), dtype.storage)


def _value_fits(c: Call) -> bool:
    if c.dst.dtype.is_packed or c.version < (0, 3):
        return True
    return not (c.dst.dtype.is_integer and issubclass(c.value, (float, np.floating)))


MEMSET = Instruction(
    name="memset",
    engines=(Engine.vector, Engine.gpsimd),
    operands={"dst": Out("P F", ON_CHIP), "value": Number()},
    attrs={"engine": Attr(Engine.unknown, as_engine)},
    limits=[
        rule(
            _value_fits, AttributeValueError, "value", "a float value for {c.dst.dtype} elements",
            expected="an int literal for an integer tensor", got="{c.value.__name__}",
            section="NKI 0.3 migration guide: memset value matches the dtype",
            dst="int32[4, 8] sbuf", value=2.0,
        ),
        free_dims(4, "dst", dst="float32[2, 1, 1, 1, 1, 2] sbuf"),
    ],
    work=lambda c: one_pass(c, c.dst.free, rate=copy_rate(c, "dst")),
    run=memset,
    result=like("dst"),
    mask=MaskBehaviour.elementwise,
    moves_bits=lambda c: True,
    examples=[
        Example({"dst": "float32[4, 8] sbuf", "value": 1.5}, {"dst": np.full((4, 8), 1.5)}),
        Example({"dst": "uint8[2, 3] psum", "value": 7}, {"dst": np.full((2, 3), 7)}),
    ],
)  # fmt: skip
