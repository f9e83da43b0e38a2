"""Bounds of the difference between an output and its reference where both are right.

Instructions compute in float32 and round once to the dtype of what they write. An element y of a
kernel and its reference r, which may be exact or rounded itself, then satisfy

    |y - r|  <=  h · ulp(|r| + e)  +  e,        e = (64 · 2^-23 + n · u) · max|r|

- h is 1 for an r that is rounded as y is, by half a unit each, and 3/2 for a function in float64: y
  is rounded by half a unit, and a constant that NumPy rounds to float16 is off by up to one;
  `ulp` is of the dtype of the output at that element;
- 64 · 2^-23 is for the roundings of float32: 128 half units, of sums in another order and of
  functions, relative to the terms, which the largest element represents;
- n is the number of buffers of floats narrower than float32 in which an instruction rounds what it
  computes, less one for each such result, and u half a unit of the coarsest of these: a value
  beside a tie rounds to another neighbour, once in each buffer. Copies in one dtype do not round.
  n · u is at most 1/4: half of an output, or one and a half times it, is far for every dtype.

Inputs are the same for both, so their dtypes are not in it. Integers and booleans have to be equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from neuroncore.program import Buffer, Call, Program, calls
from nki_dtypes import DType, cast, finfo, float32

FLOAT32 = 64 * 2.0**-23
MOST = 1 / 4
COPIES = frozenset(["dma_copy", "tensor_copy", "nc_transpose"])


def relative_rounding(program: Program) -> float:
    """64 · 2^-23 + n · u."""
    buffers = program.buffers()
    rounded = {name for call in calls(program.body) for name in _rounded(call, buffers)}
    units = [finfo(buffers[name].dtype).eps / 2 for name in rounded]
    results = sum(_is_narrow(buffers[name].dtype) for name in program.results)
    return FLOAT32 + min(MOST, max(0, len(units) - results) * max(units, default=0.0))


def _rounded(call: Call, buffers: Mapping[str, Buffer]) -> Iterator[str]:
    """The buffers of narrow floats that a call rounds into."""
    dtypes = {name: buffers[access.buffer].dtype for name, access in call.accesses.items()}
    is_copy = call.instruction in COPIES and len({*dtypes.values()}) == 1
    for name in dtypes.keys() & {*call.record.outputs}:
        if _is_narrow(dtypes[name]) and not is_copy:
            yield call.accesses[name].buffer


def _is_narrow(dtype: DType) -> bool:
    return dtype.is_float and dtype.mantissa_bits < float32.mantissa_bits


def far(got: np.ndarray, reference: np.ndarray, relative: float, ulps: float) -> np.ndarray:
    """Where elements of an output are further from the reference than rounding explains."""
    if got.dtype.kind in "iub":
        return got != reference
    info = finfo(got.dtype)
    a, r = got.astype(np.float64), reference.astype(np.float64)
    beyond = np.isfinite(r) & (np.abs(r) > info.max)
    r = np.where(beyond, cast(r.astype(np.float32), info.dtype).astype(np.float64), r)
    scale = np.max(np.abs(r), initial=0.0, where=np.isfinite(r))
    slack = relative * scale
    with np.errstate(invalid="ignore", divide="ignore"):
        binade = np.floor(np.log2(np.maximum(np.abs(r) + slack, info.tiny)))
        near = np.isfinite(r) & (np.abs(a - r) <= ulps * info.eps * 2.0**binade + slack)
    return ~near & ~((a == r) | (np.isnan(a) & np.isnan(r)))
