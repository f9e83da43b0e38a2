"""Reading operands for computing and writing results: float32 inside, rounded once at the end."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np

from neuroncore.alu import AluOp
from neuroncore.enums import MemorySpace
from neuroncore.errors import AttributeValueError
from neuroncore.instructions._record import Call
from neuroncore.memory import View
from neuroncore.spec import Spec
from nki_dtypes import ALL, Caster, DType, caster, float32, tfloat32, widener

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


def copying(dst: Spec, src: Spec) -> Callable[[View, View], None]:
    """dst = src in row-major order: bit exact for equal dtypes, otherwise through float32."""
    if dst.dtype is not src.dtype:
        read, write = reader(src), writer(dst)
        return lambda dst, src: write(dst, read(src))
    shape = dst.shape

    def same(dst: View, src: View) -> None:
        dst.array[...] = src.array

    def reshaped(dst: View, src: View) -> None:
        dst.array[...] = src.array.reshape(shape)

    return same if shape == src.shape else reshaped


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


Result = tuple[tuple[int, ...], DType, MemorySpace]


def like(name: str) -> Callable[[Call], Result]:
    """0.1's inferred destination: shape and dtype of operand `name`, in SBUF."""

    def result(call: Call) -> Result:
        spec: Spec = getattr(call, name)
        return spec.shape, spec.dtype, MemorySpace.sbuf

    return result


def common_shape(*specs: Spec) -> tuple[int, ...]:
    """The shape in which element-wise operands meet: their own if all agree, else (P, F)."""
    first = specs[0]
    if all(s.shape == first.shape for s in specs):
        return first.shape
    return first.partitions, first.free


def per_partition(shape: tuple[int, ...]) -> tuple[int, ...]:
    """(P, 1, …, 1): one value per partition against a tile of `shape`."""
    return (shape[0],) + (1,) * (len(shape) - 1)


ONLY_FLOAT32 = frozenset({float32})
FLOATS = frozenset(d for d in ALL if d.is_float and not d.is_packed)

Stage = Callable[[np.ndarray, Any, np.ndarray], np.ndarray]
"""stage(x, y, out): one operation on float32, into the float32 array `out`."""


def stage(op: AluOp, reverse: bool = False) -> Stage:
    """`op` as a stage: op(x, y), or op(y, x) when reversed; unary operations ignore y."""
    function = op.function
    if op.is_unary:
        return lambda x, y, out: function(x, out=out)
    if reverse:
        return lambda x, y, out: function(y, x, out=out)
    by_name = function in (np.maximum, np.minimum)  # NumPy deprecates their third by position
    if isinstance(function, np.ufunc) and not by_name:  # `out` by position costs less
        return function
    return lambda x, y, out: function(x, y, out=out)


def lane_value(given: Spec | type | None, shape: tuple[int, ...]) -> Callable[[Any], Any]:
    """How an operand that is a number or a (P, 1) tile becomes float32 against a tile of `shape`.

    None stays None.
    """
    if given is None:
        return lambda nothing: None
    if isinstance(given, Spec):
        return reader(given, per_partition(shape))
    return np.float32


def scalar_stage(c: Call, shape: tuple[int, ...]) -> Stage:
    """op0(x, operand0) into `out`; a unary operation takes None or 0."""
    compute, value = stage(c.op0, c.reverse0), lane_value(c.operand0, shape)
    if not c.op0.is_unary:
        return lambda x, operand0, out: compute(x, value(operand0), out)

    def unary(x: np.ndarray, operand0: Any, out: np.ndarray) -> np.ndarray:
        _zero_for_unary(c, operand0)
        return compute(x, None, out)

    return unary


def _zero_for_unary(c: Call, number: Any) -> None:
    """A unary operation's operand is None or 0; raises AttributeValueError otherwise."""
    if number is None or (isinstance(number, (int, float, np.number)) and number == 0):
        return
    raise AttributeValueError(
        f"{c.op0.name} takes one operand, operand0 is given", expected="None or 0",
        got=repr(number)[:80], operand="operand0", instruction=c.record.name,
        rule=f"NKI: {c.record.name}, unary operations",
    )  # fmt: skip


_SMALL = 2048  # elements; below, np.where's one call is cheaper than five


def choose(mask: np.ndarray, chosen: np.ndarray, other: Any) -> np.ndarray:
    """A new array: `chosen` where `mask` (bool), else `other`, which is of the same dtype.

    All broadcast. np.where branches on every element: random masks of (128, 512) take 250 us, the
    bits 40 us.
    """
    if mask.size < _SMALL:
        return np.where(mask, chosen, other)
    bits, signed = (np.dtype(f"{kind}{chosen.itemsize}") for kind in "ui")
    ones = mask.view(np.int8).astype(signed)
    keep = np.negative(ones, out=ones).view(bits)
    rest = np.asarray(other, chosen.dtype).view(bits)
    picked = chosen.view(bits) ^ rest
    picked = np.bitwise_and(picked, keep, out=picked if picked.shape == keep.shape else None)
    return np.bitwise_xor(picked, rest, out=picked).view(chosen.dtype)


FEW = 32
CLOSE_BYTES = 512
BLOCK = 64
"""Columns transposed at once: with 128 partitions, two such blocks stay in the nearest cache."""


def transpose_into(out: np.ndarray, values: np.ndarray) -> None:
    """out[f, p] = values[p, f], for values (P, F) and out (F, P) of one dtype."""
    rows, columns = values.shape
    row = values.strides[0]
    if min(rows, columns) >= FEW and row >= CLOSE_BYTES and not row % 256:
        padded = np.empty((rows, columns + 64 // (4 * values.itemsize)), values.dtype)[:, :columns]
        padded[...] = values
        values = padded
    out[...] = values.T


def columns(values: np.ndarray) -> np.ndarray:
    """(P, F) as F contiguous rows of P: one row per step of a scan."""
    found = np.empty(values.shape[::-1], values.dtype)
    for at in range(0, len(found), BLOCK):
        transpose_into(found[at : at + BLOCK], values[:, at : at + BLOCK])
    return found
