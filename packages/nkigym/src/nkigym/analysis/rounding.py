"""Bounds of the difference between an output and its reference where both are right.

Instructions compute in float32 and round once to the dtype of what they write. An element y of a
kernel and its reference r, which may be exact or rounded itself, then satisfy

    |y - r|  <=  h · ulp(|r| + e)  +  e,        e = (64 · 2^-23 + n · u) · max|r|  +  2^-126

- h is 1 for an r that is rounded as y is, by half a unit each, and 3/2 for a function in float64: y
  is rounded by half a unit, and a constant that NumPy rounds to float16 is off by up to one;
  `ulp` is of the dtype of the output at that element;
- 64 · 2^-23 is for the roundings of float32: 128 half units, of sums in another order and of
  functions, relative to the terms, which the largest element represents;
- n is the number of buffers of floats narrower than float32 in which an instruction rounds what it
  computes, less one for each such result, and u half a unit of the coarsest of these: a value
  beside a tie rounds to another neighbour, once in each buffer. Copies in one dtype do not round.
  n · u is at most 1/4: half of an output, or one and a half times it, is far for every dtype;
- 2^-126 is the least normal float32: below it roundings are absolute, or to zero.

Inputs are the same for both, so their dtypes are not in it. Integers and booleans have to be equal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import numpy as np

from neuroncore.program import Buffer, Call, Program, calls
from nki_dtypes import DType, NumberInfo, cast, finfo, float32

FLOAT32 = 64 * 2.0**-23
MOST = 1 / 4
PART = 1 << 15
"""Elements that are compared at a time: what is between fits the processor's cache."""
COPIES = frozenset(["dma_copy", "tensor_copy", "nc_transpose"])


def relative_rounding(program: Program, formats: Collection[DType] | None = None) -> float:
    """64 · 2^-23 + n · u; formats: narrow floats to which the function rounds, where known."""
    dtypes = _rounding_dtypes(program)
    units = [finfo(d).eps / 2 for d in dtypes.values() if formats is None or d in formats]
    results = sum(_is_narrow(program.buffers()[name].dtype) for name in program.results)
    return FLOAT32 + min(MOST, max(0, len(units) - results) * max(units, default=0.0))


def rounded_dtypes(program: Program) -> set[DType]:
    """Narrow floats in which instructions round what others read: results are not among them."""
    dtypes = _rounding_dtypes(program)
    return {dtype for name, dtype in dtypes.items() if name not in program.results}


def _rounding_dtypes(program: Program) -> dict[str, DType]:
    """Of each buffer of narrow floats in which an instruction rounds what it computes."""
    buffers = program.buffers()
    rounded = {name for call in calls(program.body) for name in _rounded(call, buffers)}
    return {name: buffers[name].dtype for name in rounded}


def _rounded(call: Call, buffers: Mapping[str, Buffer]) -> Iterator[str]:
    """The buffers of narrow floats that a call rounds into."""
    dtypes = {name: buffers[access.buffer].dtype for name, access in call.accesses.items()}
    is_copy = call.instruction in COPIES and len({*dtypes.values()}) == 1
    for name in dtypes.keys() & {*call.record.outputs}:
        if _is_narrow(dtypes[name]) and not is_copy:
            yield call.accesses[name].buffer


def _is_narrow(dtype: DType) -> bool:
    return dtype.is_float and dtype.mantissa_bits < float32.mantissa_bits


def far(
    got: np.ndarray, reference: np.ndarray, relative: float, ulps: float, is_local: bool = False
) -> np.ndarray:
    """Where elements of an output are further from the reference than rounding explains; is_local:
    relative to each element instead of max|r|.
    """
    if got.dtype.kind in "iub":
        return got != reference
    largest = None if is_local else _largest(reference)
    info, values, exact = finfo(got.dtype), got.ravel(), reference.ravel()
    is_far = np.empty(values.shape, np.bool_)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        for part in (slice(n, n + PART) for n in range(0, values.size, PART)):
            a, r = values[part].astype(np.float64), exact[part].astype(np.float64)
            scale = np.abs(r) if largest is None else np.full(r.shape, largest)
            slack = relative * scale + finfo(float32).tiny
            beyond = ~(np.abs(a - r) <= slack)
            if beyond.any():
                rest = a[beyond], r[beyond], slack[beyond]
                beyond[beyond] = _beyond_units(*rest, info, ulps)
            is_far[part] = beyond
    return is_far.reshape(got.shape)


def _largest(reference: np.ndarray) -> float:
    r = np.abs(reference.astype(np.float64))
    return float(np.max(r, initial=0.0, where=np.isfinite(r)))


def _beyond_units(
    a: np.ndarray, r: np.ndarray, slack: np.ndarray, info: NumberInfo, ulps: float
) -> np.ndarray:
    """Where a is further from r than units in the last place of the dtype, and the slack."""
    beyond = np.isfinite(r) & (np.abs(r) > info.max)
    r = np.where(beyond, cast(r.astype(np.float32), info.dtype).astype(np.float64), r)
    binade = np.floor(np.log2(np.maximum(np.abs(r) + slack, info.tiny)))
    near = np.isfinite(r) & (np.abs(a - r) <= ulps * info.eps * 2.0**binade + slack)
    return ~near & ~((a == r) | (np.isnan(a) & np.isnan(r)))
