"""Reading operands for computing and writing results: float32 inside, rounded once at the end."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

import numpy as np

from neuroncore.memory import View
from neuroncore.spec import Spec
from nki_dtypes import Caster, DType, caster, float32, tfloat32, widener

Reader = Callable[[View], np.ndarray]
Widener = Callable[[np.ndarray], np.ndarray]
Writer = Callable[[View, np.ndarray], None]

FLOAT32 = np.dtype(np.float32)
_array = attrgetter("array")


def wide(spec: Spec) -> Widener | None:
    """How the stored elements become float32; None when they are already."""
    return None if spec.storage == FLOAT32 else widener(spec.dtype)


def reader(spec: Spec, shape: tuple[int, ...] | None = None) -> Reader:
    """The operand as float32 (the stored array itself where that is float32 already).

    With `shape`, elements are taken in row-major order of the view and given that shape.
    """
    widen = wide(spec)
    if widen is not None and spec.repeats:
        widen = _of_repeated(spec, widen)
        return lambda view: widen(view.array).reshape(shape or spec.shape)
    if shape is None or shape == spec.shape:
        if widen is None:
            return _array
        return lambda view: widen(view.array)
    if widen is None:
        return lambda view: view.array.reshape(shape)
    return lambda view: widen(view.array.reshape(shape))


def _of_repeated(spec: Spec, widen: Widener) -> Widener:
    """`widen` for a broadcast view: each stored element is converted once and copied as float32.

    A plain astype of such a view would also lay the result out after its strides, steps of 0
    innermost: 280 µs where this takes 20 (16-fold rows of (128, 64) in bfloat16).
    """
    sizes = zip(spec.shape, spec.strides, strict=True)
    once = tuple(slice(0, 1) if n > 1 and s == 0 else slice(None) for n, s in sizes)

    def repeat(array: np.ndarray) -> np.ndarray:
        out = np.empty(array.shape, FLOAT32)
        out[...] = widen(array[once])
        return out

    return repeat


def raw_reader(spec: Spec, shape: tuple[int, ...] | None = None) -> Reader:
    """The stored elements, unconverted."""
    if shape is None or shape == spec.shape:
        return _array
    return lambda view: view.array.reshape(shape)


def rounds(spec: Spec) -> bool:
    """Whether writing float32 results to `spec` has to round or convert."""
    return spec.storage != FLOAT32 or spec.dtype is tfloat32


def stored(spec: Spec) -> Callable[[np.ndarray], np.ndarray]:
    """float32 values as elements of `spec`, rounded once, in a new array."""
    convert = _converter(spec, float32)

    def store(values: np.ndarray) -> np.ndarray:
        elements = np.empty(values.shape, spec.storage)
        convert(values, elements)
        return elements

    return store


def _converter(spec: Spec, source: DType) -> Caster:
    """From `source` to what `spec` stores: float32 for low precision that options.precise keeps."""
    kept_wide = spec.storage == FLOAT32 and spec.dtype is not tfloat32
    return caster(source, float32 if kept_wide else spec.dtype)


def writer(spec: Spec, source: DType = float32) -> Writer:
    """Stores computed values of dtype `source` with one rounding, reshaped to the view's shape."""
    shape, convert = spec.shape, _converter(spec, source)

    def write(view: View, values: np.ndarray) -> None:
        convert(values if values.shape == shape else values.reshape(shape), view.array)

    return write
