"""Universal functions that are formulas of others: operands and results in NumPy's types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nki_dtypes import float32
from nkigen_lite.frontend.arrays.array import TracedArray
from nkigen_lite.frontend.arrays.promotion import (
    as_value,
    cast_value,
    dtype_of,
    fresh,
    narrowed,
    resolved,
    shape_of,
)
from nkigen_lite.frontend.arrays.registry import implements_ufunc
from nkigen_lite.frontend.arrays.tape import Tape

Formula = Callable[..., Any]
_FLOAT32 = np.dtype(np.float32)


def in_float32(name: str, formula: Formula) -> None:
    """Implement the universal function: NumPy's types; the formula on float32, its result rounded
    once."""
    ufunc = getattr(np, name)

    def made(tape: Tape, given: tuple[Any, ...]) -> TracedArray:
        makes, xs = _operands(tape, ufunc, given)
        wide = [
            fresh(tape, cast_value(tape, x.value, float32), _FLOAT32, (x,), scalar=False)
            for x in xs
        ]
        return _rounded(tape, formula(*wide), makes, given)

    implements_ufunc(name)(made)


def in_common_dtype(name: str, formula: Formula) -> None:
    """Implement the universal function: NumPy's types; the formula on the operands' common one."""
    ufunc = getattr(np, name)

    def made(tape: Tape, given: tuple[Any, ...]) -> TracedArray:
        makes, xs = _operands(tape, ufunc, given)
        return _rounded(tape, formula(*xs), makes, given)

    implements_ufunc(name)(made)


def _operands(
    tape: Tape, ufunc: np.ufunc, given: tuple[Any, ...]
) -> tuple[np.dtype, list[TracedArray]]:
    name = f"np.{ufunc.__name__}"
    kinds = (*map(dtype_of, given), *(None,) * ufunc.nout)
    *takes, makes = resolved(name, lambda: ufunc.resolve_dtypes(kinds))
    arrays = [
        fresh(tape, as_value(tape, x, t, name), t, (x,), scalar=False)
        for x, t in zip(given, takes, strict=True)
    ]
    return makes, arrays


def _rounded(tape: Tape, x: TracedArray, makes: np.dtype, given: tuple[Any, ...]) -> TracedArray:
    value = cast_value(tape, x.value, narrowed(makes))
    shape = np.broadcast_shapes(*map(shape_of, given))
    if tape.spec(value).shape != shape:
        value = tape.emit("broadcast_to", value, shape=shape)
    return fresh(tape, value, makes, given)
