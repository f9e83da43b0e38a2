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
from neuroncore.instructions._rules import free_dims
from neuroncore.memory import View
from neuroncore.notes import note_without_effect
from nki_dtypes import DType, cast

RULE = "NKI 0.3 migration guide: memset value matches the dtype"


def memset(c: Call) -> Callable[..., None]:
    """Every element of dst becomes value, rounded to dst's dtype."""
    if not rounds(c.dst):

        def fill(dst: View, value: float) -> None:
            dst.array[...] = value

        return fill
    dtype, storage = c.dst.dtype, c.dst.storage
    if _checks_value(c):

        def fill_whole(dst: View, value: float) -> None:
            dst.array[...] = constant_in(_whole(value, dtype), dtype)

        return fill_whole

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


def _checks_value(c: Call) -> bool:
    """Whether a float for an integer tensor has to be whole: cast up to 0.2, typed from 0.3 on."""
    is_float = issubclass(c.value, (float, np.floating))
    return is_float and c.dst.dtype.is_integer and c.version >= (0, 3)


def _whole(value: float, dtype: DType) -> int:
    """A whole float as an int: 0.0 writes what 0 does. Raises AttributeValueError for any other."""
    if value == np.trunc(value) and np.isfinite(value):
        note_without_effect(f"nisa.memset of {dtype} with {value}", f"it writes {int(value)}", RULE)
        return int(value)
    raise AttributeValueError(
        f"a float value for {dtype} elements", expected="an int literal for an integer tensor",
        got=repr(value), operand="value", instruction="memset", rule=RULE,
    )  # fmt: skip


MEMSET = Instruction(
    name="memset",
    engines=(Engine.vector, Engine.gpsimd),
    operands={"dst": Out("P F", ON_CHIP), "value": Number()},
    attrs={"engine": Attr(Engine.unknown, as_engine)},
    limits=[
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
