"""How far the quantisation to fp8 of the library lies from the formula in float64, as JSON.

Run by `../fp8.py` in a process of its own: `nki` is ours, and the library's kernel runs on it.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

import ml_dtypes
import nki_library_stand_ins
import numpy as np

import nki_runtime

RANGE = 240.0  # the largest float8_e4m3
EPS = 1e-6
SHAPE = (1, 160, 2048)
CASES = [  # quantisation, normalised, dtype, bound on what is quantised (0: none)
    ("ROW", True, "bfloat16", 0.0),
    ("ROW", True, "float16", 0.0),
    ("ROW", True, "bfloat16", 0.5),
    ("ROW", False, "bfloat16", 0.0),
    ("ROW", False, "float16", 0.5),
    ("STATIC", True, "bfloat16", 0.0),
    ("STATIC", False, "float16", 0.0),
]


def formula(x: np.ndarray, gamma: np.ndarray, case: Any, scale: float, store: Any) -> Any:
    """Codes, and the factor of every row that undoes the quantisation, computed in float64.

    `store` is applied where the kernel keeps a tile in its compute dtype.
    """
    kind, normalised, _, bound = case
    values = store(x.astype(np.float64))
    if normalised:
        inverse = 1 / np.sqrt(np.mean(values**2, axis=-1, keepdims=True) + EPS)
        values = store(values * inverse * gamma.astype(np.float64))
    if kind == "STATIC":
        return np.clip(store(values / scale), -RANGE, RANGE).astype(ml_dtypes.float8_e4m3), None
    most = np.abs(values).max(axis=-1, keepdims=True)
    if bound:
        most, values = np.minimum(most, bound), np.clip(values, -bound, bound)
    factor = most / RANGE
    return (values / factor).astype(ml_dtypes.float8_e4m3), factor


def as_bfloat16(values: np.ndarray) -> np.ndarray:
    """The values rounded to bfloat16, in float64 again."""
    return values.astype(ml_dtypes.bfloat16).astype(np.float64)


def ordered(array: np.ndarray) -> np.ndarray:
    """Floats as integers in the same order: neighbours differ by 1, both zeros are 0."""
    signed = {1: np.int8, 4: np.int32}[array.itemsize]
    bits = np.ascontiguousarray(array).view(signed).astype(np.int64)
    return np.where(bits < 0, -(bits & np.iinfo(signed).max), bits)


def measured(case: Any) -> dict[str, Any]:
    """Run the kernel on two cores; how its codes and factors differ from `exact`, in ulps."""
    library = importlib.import_module("nkilib_src.nkilib.core.rmsnorm.rmsnorm_quant")
    types = importlib.import_module("nkilib_src.nkilib.core.utils.common_types")
    kind, normalised, dtype, bound = case
    rng = np.random.default_rng(7)
    storage = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    x = rng.standard_normal(SHAPE).astype(storage)
    gamma = rng.standard_normal((1, SHAPE[-1])).astype(storage)
    scale = np.full((128, 1), 0.04, np.float32) if kind == "STATIC" else None
    arguments = library.RmsNormQuantKernelArgs(
        quantization_type=types.QuantizationType[kind], lower_bound=bound, eps=EPS,
        norm_type=types.NormType.RMS_NORM if normalised else types.NormType.NO_NORM,
    )  # fmt: skip
    out = nki_runtime.simulate(library.rmsnorm_quant_kernel)[2](x, gamma, arguments, scale)
    found = np.asarray(out).view(ml_dtypes.float8_e4m3)
    given = (x, gamma, case, 1.0 if scale is None else float(scale[0, 0]))
    return {
        "case": case,
        "once": _difference(found, *formula(*given, store=lambda values: values)),
        "stored": _difference(found, *formula(*given, store=as_bfloat16)),
    }


def _difference(found: np.ndarray, codes: np.ndarray, factor: np.ndarray | None) -> dict[str, Any]:
    ulps = np.abs(ordered(found[..., : SHAPE[-1]]) - ordered(codes))
    rows = None
    if factor is not None:
        got = np.ascontiguousarray(found[..., SHAPE[-1] :]).view(np.float32)
        rows = int(np.abs(ordered(got) - ordered(factor.astype(np.float32))).max())
    return {"different": int((ulps != 0).sum()), "ulps": int(ulps.max()), "factor_ulps": rows}


if __name__ == "__main__":
    nki_library_stand_ins.set_up()
    json.dump([measured(case) for case in CASES], sys.stdout)
