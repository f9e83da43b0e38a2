"""The accumulator registers of ScalarE and VectorE: 128 float32 lanes each, kept between calls.

Row p of an operand uses lane p, or lane start + p (Options.accumulator_lanes). What a command does
with the registers, r being the reduction of this call's results over the free axes:

    reset         identity                  (ScalarE)
    idle          as they were (ScalarE) or NaN: VectorE leaves them unspecified
    reset_reduce  op(identity, r)
    reduce        op(registers, r)
    load_reduce   op(given initial, r)      (VectorE)

Source: NKI reference, activation, select_reduce, tensor_scalar_reduce: accumulator behavior.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neuroncore.alu import AluOp
from neuroncore.effects import Effect, Touch, register
from neuroncore.enums import ReduceCmd
from neuroncore.instructions._numerics import writer
from neuroncore.instructions._record import Call
from neuroncore.memory import Core, View
from neuroncore.spec import Spec

SCALAR = "scalar.accumulators"
VECTOR = "vector.accumulators"

_RESETS = (ReduceCmd.reset, ReduceCmd.reset_reduce)
_FIRST = {SCALAR: 0.0, VECTOR: np.nan}  # VectorE's content before the first reset is unspecified

Fold = Callable[[Core, np.ndarray, Any], np.ndarray]


def registers(core: Core, name: str) -> np.ndarray:
    """The 128 registers called `name` of this core."""
    found = core.accumulators.get(name)
    if found is None:
        found = core.accumulators[name] = np.full(128, _FIRST[name], np.float32)
    return found


def lanes(c: Call, data: Spec) -> slice:
    """The lanes that the rows of `data` use."""
    first = data.start if c.options.accumulator_lanes == "partition" else 0
    return slice(first, first + data.partitions)


def folding(c: Call, name: str, data: Spec, op: AluOp) -> Fold:
    """fold(core, results, initial): carry out `reduce_cmd`; gives the lanes' registers, shape (P,).

    `results` (P, F…) are float32 before they are rounded; `initial` is a number or float32 (P, 1).
    """
    used, command = lanes(c, data), c.reduce_cmd
    identity = np.float32(op.identity if op.identity is not None else 0)
    rows = data.partitions
    reduce, total = op.function, _total(op)

    def fold(core: Core, results: np.ndarray, initial: Any) -> np.ndarray:
        held = registers(core, name)
        if command in _RESETS:
            held[...] = identity
        elif command is ReduceCmd.load_reduce:
            held[used] = np.reshape(initial, -1)
        elif command is ReduceCmd.idle and name == VECTOR:
            held[...] = np.nan
        if command not in (ReduceCmd.reset, ReduceCmd.idle):
            held[used] = reduce(held[used], total(results.reshape(rows, -1)))
        return held[used]

    return fold


def unspecified(core: Core, results: np.ndarray, initial: Any) -> np.ndarray:
    """VectorE's registers after an instruction of which no document says what it does to them."""
    held = registers(core, VECTOR)
    held[...] = np.nan
    return held


def _total(op: AluOp) -> Callable[[np.ndarray], np.ndarray]:
    """Reduces float32 (P, F) to (P,)."""
    function: Any = op.function
    if isinstance(function, np.ufunc):
        return lambda results: function.reduce(results, axis=1, dtype=np.float32)
    pick = {"abs_max": np.argmax, "abs_min": np.argmin}[op.name]

    def last_of_its_magnitude(results: np.ndarray) -> np.ndarray:
        backward = results[:, ::-1]  # of equal magnitudes the last counts: a tie gives the second
        place = pick(np.abs(backward), axis=1)[:, None]
        return np.take_along_axis(backward, place, axis=1)[:, 0]

    return last_of_its_magnitude


def giving(reduce_res: Spec | None, negate: bool = False) -> Callable[[View | None, Any], None]:
    """give(view, registers): write them to `reduce_res` (P, 1), where there is one."""
    if reduce_res is None:
        return lambda view, held: None
    write, sign = writer(reduce_res), np.float32(-1 if negate else 1)
    return lambda view, held: write(view, held * sign)  # type: ignore[arg-type]


def register_effects(c: Call, name: str) -> list[Effect]:
    """The effects of `reduce_cmd` on the registers; a result that is written is read from them."""
    if c.reduce_cmd is ReduceCmd.reduce:
        touched = register(name, Touch.accumulate)
    elif c.reduce_cmd is ReduceCmd.idle and name == SCALAR:
        touched = []
    else:
        touched = register(name, Touch.write)
    if c.specs.get("reduce_res") is not None and c.reduce_cmd is not ReduceCmd.reset:
        touched += register(name, Touch.read)
    return touched
