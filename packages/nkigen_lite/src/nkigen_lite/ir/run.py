"""Graphs executed on NumPy: the reference that every pass and every kernel is compared with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from nki_dtypes import DType, bool_, cast, float32, tfloat32
from nkigen_lite.errors import BroadcastError, SpecError
from nkigen_lite.ir.nodes import Graph, Node
from nkigen_lite.spec import Spec, as_spec

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


def run_graph(graph: Graph, arrays: Iterable[Any], computing: np.dtype = FLOAT32) -> list[Any]:
    """The results (`graph.results`) for these inputs, each in its storage dtype.

    `computing` float32: as the machine does, each operation in float32 and rounded once to its
    dtype. float64: each operation in float64, and what is float32 in the graph stays float64, so
    that the result is the meaning of the program up to 2⁻⁵³; narrower types are still rounded to.
    """
    values = values_of(graph, arrays, computing)
    return [values[name] for name in graph.results]


def values_of(
    graph: Graph, arrays: Iterable[Any], computing: np.dtype = FLOAT32
) -> dict[str, np.ndarray]:
    """Every value of the graph by name."""
    given = list(arrays)
    if len(given) != len(graph.inputs):
        raise SpecError(
            f"{graph.name} takes {len(graph.inputs)} arrays",
            expected=", ".join(map(str, (v.spec for v in graph.inputs))), got=f"{len(given)}",
        )  # fmt: skip
    values = {
        v.name: _widened(as_input(array, v.spec, v.name), v.spec.dtype, computing)
        for v, array in zip(graph.inputs, given, strict=True)
    }
    for node in graph.nodes:
        values[node.name] = run_node(node, tuple(values[o] for o in node.operands), computing)
    return values


def run_node(node: Node, operands: tuple[np.ndarray, ...], computing: np.dtype) -> np.ndarray:
    """One operation on stored values (floats wider than their dtype where computing in float64)."""
    record = node.record
    if record.is_pure_move:
        bits = tuple(map(_narrowed, operands)) if node.op == "bitcast" else operands
        return _widened(record.compute(bits, node.attrs), node.spec.dtype, computing)
    if node.op == "convert":
        return _converted(operands[0], node.spec.dtype, computing)
    wide = tuple(o.astype(computing) if _is_float(o) else o for o in operands)
    return _rounded(record.compute(wide, node.attrs), node.spec.dtype, computing)


def as_input(given: Any, spec: Spec, name: str) -> np.ndarray:
    """The array in the storage of `spec`; 64-bit arrays are converted to 32 bits.

    Raises BroadcastError for another shape, SpecError for another dtype.
    """
    array, found = (
        np.asarray(given),
        as_spec(given if hasattr(given, "dtype") else np.asarray(given)),
    )
    if found.shape != spec.shape:
        raise BroadcastError(f"{name} has another shape", expected=str(spec), got=str(found))
    if array.dtype == spec.dtype.storage or array.dtype == spec.storage:
        stored = array
    elif found.dtype is spec.dtype:
        with np.errstate(all="ignore"):
            stored = array.astype(spec.storage)
    else:
        raise SpecError(f"{name} has another dtype", expected=str(spec), got=str(found))
    if spec.dtype is tfloat32:
        return cast(np.ascontiguousarray(stored), tfloat32, from_=float32)
    return stored.astype(spec.storage, copy=False)


def run_in_place(graph: Graph, arrays: tuple[Any, ...]) -> Any:
    """`Graph.run`."""
    results = run_graph(graph, arrays)
    outputs, written = results[: len(graph.outputs)], results[len(graph.outputs) :]
    numbers = {v.name: number for number, v in enumerate(graph.inputs)}
    outputs = [np.array(o) for o in outputs]
    for (name, _), value in zip(graph.writes, written, strict=True):
        arrays[numbers[name]][...] = value
    return outputs[0] if len(outputs) == 1 else tuple(outputs) or None


def _is_float(array: np.ndarray) -> bool:
    return array.dtype.kind not in "iub"  # the narrow floats are of kind V


def _narrowed(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32) if array.dtype == FLOAT64 else array


def _widened(array: np.ndarray, dtype: DType, computing: np.dtype) -> np.ndarray:
    return array.astype(computing) if dtype in (float32, tfloat32) else array


def _rounded(array: np.ndarray, dtype: DType, computing: np.dtype) -> np.ndarray:
    """What an operation computed, as its dtype: floats rounded once, integers modulo their range,
    floats to integers by truncation (NumPy's astype)."""
    if dtype is bool_:
        return array.astype(np.bool_)
    with np.errstate(all="ignore"):
        if dtype is float32:
            return array.astype(computing, copy=False)
        if not dtype.is_float or not _is_float(array):
            return _widened(array.astype(dtype.storage), dtype, computing)
    return _converted(array, dtype, computing)


def _converted(array: np.ndarray, dtype: DType, computing: np.dtype) -> np.ndarray:
    """The machine's conversion: nearest even, saturating."""
    if dtype is float32 and array.dtype in (FLOAT32, FLOAT64):
        return array.astype(computing, copy=False)
    result = cast(_narrowed(array), dtype)
    return result.astype(np.bool_) if dtype is bool_ else _widened(result, dtype, computing)
