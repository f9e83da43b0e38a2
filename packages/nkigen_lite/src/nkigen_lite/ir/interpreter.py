"""Graphs executed on NumPy: the reference that every pass and every kernel is compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

from nki_dtypes import DType, bool_, cast, float32, tfloat32
from nkigen_lite.ir.nodes import Node
from nkigen_lite.ops import Kind
from nkigen_lite.tensors.errors import BroadcastError, SpecError
from nkigen_lite.tensors.spec import Spec, as_spec

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


def run_node(node: Node, operands: tuple[np.ndarray, ...], computing: np.dtype) -> np.ndarray:
    """One operation on stored values (floats wider than their dtype where computing in float64)."""
    record = node.record
    if record.kind is Kind.loop:
        return record.meaning(*operands, computing=computing, **node.attrs)
    if record.is_pure_move:
        bits = tuple(map(_narrowed, operands)) if node.op == "bitcast" else operands
        return widened(record.compute(bits, node.attrs), node.spec.dtype, computing)
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


def _is_float(array: np.ndarray) -> bool:
    return array.dtype.kind not in "iub"  # the narrow floats are of kind V


def _narrowed(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32) if array.dtype == FLOAT64 else array


def widened(array: np.ndarray, dtype: DType, computing: np.dtype) -> np.ndarray:
    """The array as `run_graph` computes with it."""
    return array.astype(computing) if dtype in (float32, tfloat32) else array


def _rounded(array: np.ndarray, dtype: DType, computing: np.dtype) -> np.ndarray:
    """The result of an operation, as its dtype: floats rounded once, integers modulo their range,
    floats to integers by truncation (NumPy's astype)."""
    if dtype is bool_:
        return array.astype(np.bool_)
    with np.errstate(all="ignore"):
        if dtype is float32:
            return array.astype(computing, copy=False)
        if not dtype.is_float or not _is_float(array):
            return widened(array.astype(dtype.storage), dtype, computing)
    return _converted(array, dtype, computing)


def _converted(array: np.ndarray, dtype: DType, computing: np.dtype) -> np.ndarray:
    """The machine's conversion: nearest even, saturating."""
    if dtype is float32 and array.dtype in (FLOAT32, FLOAT64):
        return array.astype(computing, copy=False)
    result = cast(_narrowed(array), dtype)
    return result.astype(np.bool_) if dtype is bool_ else widened(result, dtype, computing)
