"""uint32 beside signed integers: NumPy computes in int64, here are 32 bits and what is below 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from nki_dtypes import bool_, int32, uint32
from nkigen_lite.frontend.arrays.array import TracedArray
from nkigen_lite.frontend.arrays.promotion import as_value, cast_value, dtype_of, fresh, shape_of
from nkigen_lite.frontend.arrays.tape import Tape
from nkigen_lite.ops import OPS

BEYOND = {  # operation → what a comparison with a number above, below the array's range gives
    "equal": (False, False), "not_equal": (True, True), "less": (True, False),
    "less_equal": (True, False), "greater": (False, True), "greater_equal": (False, True),
}  # fmt: skip
_WIDE = (np.dtype(np.int64), np.dtype(np.uint64))


def are_mixed(given: tuple[Any, ...], takes: list[np.dtype]) -> bool:
    """Whether NumPy takes 64 bits because one operand is uint32 here and the other signed."""
    if len(given) != 2 or any(t not in _WIDE for t in takes):
        return False
    unsigned = [isinstance(x, TracedArray) and x.spec.dtype is uint32 for x in given]
    return sum(unsigned) == 1 and _is_signed(given[unsigned.index(False)])


def _is_signed(x: Any) -> bool:
    return not isinstance(dtype_of(x), type) and dtype_of(x).kind == "i"


def compare(tape: Tape, op: str, given: tuple[Any, ...]) -> TracedArray:
    """The bits compared as uint32; what is below 0, or above 2³² - 1, is so for every uint32."""
    signed = next(n for n, x in enumerate(given) if _is_signed(x))
    other = given[1 - signed]
    above, below = BEYOND[op if signed == 1 else OPS[op].mirrored or op]
    bits, is_below, is_above = _parts(tape, given[signed])
    pair = (other.value, bits) if signed == 1 else (bits, other.value)
    answer = tape.emit(op, *pair)
    for known, truth in ((is_below, below), (is_above, above)):
        if known is not None:
            answer = tape.emit("where", known, tape.fill(truth, bool_), answer)
    return fresh(tape, answer, np.dtype(bool), given)


def _parts(tape: Tape, x: Any) -> tuple[str, str | None, str | None]:
    """The low 32 bits; whether it is below 0; whether it is above 2³² - 1 (None: nowhere)."""
    if isinstance(x, TracedArray):
        below = tape.emit("less", x.value, tape.fill(0, x.spec.dtype))
        return cast_value(tape, x.value, uint32), below, None
    array = np.asarray(x)
    beyond = [
        tape.constant(truth, bool_) if truth.any() else None
        for truth in (array < 0, array > uint32.max)
    ]
    return tape.constant(array.astype(np.uint32), uint32), beyond[0], beyond[1]


def power(tape: Tape, given: tuple[Any, ...]) -> TracedArray:
    """The low 32 bits of a power depend on the base's low 32 bits and the exponent alone."""
    base = cast_value(tape, as_value(tape, given[0], np.dtype(np.int64), "multiply"), uint32)
    exponent = as_value(tape, given[1], np.dtype(np.uint32), "np.power")
    shape = np.broadcast_shapes(*map(shape_of, given))
    value = cast_value(tape, tape.emit("power", base, exponent), int32)
    assert tape.spec(value).shape == shape
    return fresh(tape, value, np.dtype(np.int64), given)
