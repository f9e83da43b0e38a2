"""Loops over time steps: a graph that is executed for each step, on what the last one left."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nki_dtypes import DType
from nkigen_lite.ops._record import INT, Attr, Kind, Op, mismatch
from nkigen_lite.tensors.spec import Shape, Spec


@dataclass(frozen=True, slots=True)
class Body:
    """The graph of one step; equal to another when their texts are.

    Inputs are the carried values, then elements of the stacked arrays, then what is the same in
    every step; outputs the carried values' next ones, then what each step leaves.
    """

    text: str
    inputs: tuple[Spec, ...] = field(compare=False)
    outputs: tuple[Spec, ...] = field(compare=False)
    graph: Any = field(compare=False)
    run: Callable[[Sequence[np.ndarray], np.dtype], list[np.ndarray]] = field(compare=False)

    def __repr__(self) -> str:
        return repr(self.text)


def _body(given: Any) -> Body:
    if not isinstance(given, Body):
        raise TypeError("the graph of a step is needed")
    return given


def _operands(attrs: Mapping[str, Any]) -> list[Shape]:
    """The shapes of the operands."""
    first, last = attrs["carries"], attrs["carries"] + attrs["stacked"]
    steps = (attrs["steps"],)
    shapes = [spec.shape for spec in attrs["body"].inputs]
    return [s if not first <= n < last else steps + s for n, s in enumerate(shapes)]


def _shape(shapes: tuple[Shape, ...], attrs: Mapping[str, Any]) -> Shape:
    body, number = attrs["body"], attrs["result"]
    if list(shapes) != _operands(attrs):
        raise mismatch("operands of other shapes", expected=str(_operands(attrs)))
    if attrs["steps"] < 1 or not 0 <= number < len(body.outputs):
        raise mismatch(f"result {number} of {attrs['steps']} steps")
    if body.inputs[: attrs["carries"]] != body.outputs[: attrs["carries"]]:
        raise mismatch("a step changes the specs of carried values")
    shape = body.outputs[number].shape
    return shape if number < attrs["carries"] else (attrs["steps"], *shape)


def _dtype(dtypes: tuple[DType, ...], attrs: Mapping[str, Any]) -> DType:
    expected = tuple(spec.dtype for spec in attrs["body"].inputs)
    if dtypes != expected:
        raise mismatch("operands of other dtypes", expected=", ".join(map(str, expected)))
    return attrs["body"].outputs[attrs["result"]].dtype


def _loop(
    *arrays: np.ndarray, computing: np.dtype, body: Body, carries: int, stacked: int, steps: int,
    result: int,
) -> np.ndarray:  # fmt: skip
    """Step after step."""
    state, left = list(arrays[:carries]), []
    elements, same = arrays[carries : carries + stacked], arrays[carries + stacked :]
    for step in range(steps):
        made = body.run([*state, *(e[step] for e in elements), *same], computing)
        state = made[:carries]
        left.append(made[carries:])
    return state[result] if result < carries else np.stack([m[result - carries] for m in left])


LOOP = Op(
    "loop", Kind.loop, ("*values",), _loop, _shape, _dtype,
    {"body": Attr(_body), "carries": INT, "stacked": INT, "steps": INT, "result": INT},
)  # fmt: skip
"""`body` executed `steps` times: carried values, then `stacked` arrays whose first axis is the
step, then what is the same in all steps. Result number `result`: a carried value after the last
step, or what every step leaves, stacked."""
