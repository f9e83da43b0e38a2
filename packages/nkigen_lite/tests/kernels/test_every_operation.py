"""Every operation on every dtype: its kernel gives what NumPy gives in 64 bits, rounded once."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from nki_dtypes import DType, cast, resolve
from nkigen_lite import compile
from nkigen_lite.ir import Builder, Graph
from nkigen_lite.ops import OPS
from nkigen_lite.tensors.constant import Constant
from nkigen_lite.tensors.errors import GraphError
from nkigen_lite.tensors.spec import Spec

FORMATS = (
    "f32", "f16", "bf16", "tf32", "e4m3", "e4m3fn", "e5m2", "int8", "int16", "int32", "uint8",
    "uint16", "uint32", "bool",
)  # fmt: skip
ROWS, COLUMNS = 130, 12
_ROW = {"axes": (1,), "keepdims": True}
_PLACE = {"axis": 1, "keepdims": False}
ATTRS: dict[str, dict[str, Any]] = {
    "sum": _ROW, "prod": _ROW, "mean": _ROW, "max": _ROW, "min": _ROW, "any": _ROW, "all": _ROW,
    **{name: {"axis": 1} for name in ("cumsum", "cumprod", "cummax", "cummin")},
    "argmax": _PLACE, "argmin": _PLACE, "softmax": {"axis": 1},
    "rms_norm": {"axis": 1, "epsilon": 1e-6}, "transpose": {"axes": (1, 0)},
    "reshape": {"shape": (ROWS * COLUMNS,)}, "broadcast_to": {"shape": (3, ROWS, COLUMNS)},
    "slice": {"starts": (1, 2), "sizes": (9, 5), "steps": (2, 2)}, "concatenate": {"axis": 1},
    "tril": {"k": 0}, "triu": {"k": 1}, "update": {"starts": (3, 0), "steps": (2, 1)},
}  # fmt: skip
CAST_TO = {"cast": FORMATS, "convert": ("f32", "f16", "e4m3"), "low_bits": ("int8", "uint16")}


def graph_of(op: str, dtype: DType) -> Graph | None:
    """That operation alone (casts to several dtypes); None where it does not take the dtype."""
    build, record = Builder("one"), OPS[op]
    if "index" in record.operands:
        return None  # test_computed_indices
    shapes = [(ROWS, COLUMNS)] * max(1, len(record.operands))
    dtypes, attrs = [dtype] * len(shapes), dict(ATTRS.get(op, {}))
    if op == "where":
        dtypes[0] = resolve("bool")
    elif op == "matmul":
        shapes, attrs = [(ROWS, COLUMNS), (COLUMNS, 20)], {"dtype": dtype}
    elif op == "bitcast":
        attrs = {"dtype": f"uint{dtype.bits}"}
    elif op == "update":
        shapes = [(ROWS, COLUMNS), (20, COLUMNS)]
    elif op == "concatenate":
        shapes, dtypes = shapes * 2, dtypes * 2
    elif op == "iota":
        shapes, attrs = [], {"shape": (ROWS, COLUMNS), "axis": 1, "dtype": dtype}
    elif op == "constant":
        numbers = np.arange(COLUMNS).astype(Spec((), dtype).storage)
        shapes, attrs = [], {"value": Constant(numbers, dtype)}
    values = [build.input(Spec(s, d)) for s, d in zip(shapes, dtypes[: len(shapes)], strict=True)]
    made = []
    for target in CAST_TO.get(op, ("",)):
        try:
            to: dict[str, Any] = {"dtype": target} if target else attrs
            made.append(build.emit(op, *values, **to))
        except GraphError:
            continue
    return build.finish(tuple(made)) if made else None


CASES = [(o, f) for o in OPS for f in FORMATS if graph_of(o, resolve(f)) is not None]


def values_for(spec: Spec, seed: int) -> np.ndarray:
    """Small numbers, a few equal ones among them; no negative ones where there are none."""
    rng = np.random.default_rng(seed)
    low = 0 if spec.dtype.min == 0 else -9
    numbers = rng.integers(low, 10, spec.shape)
    if spec.dtype is resolve("bool"):
        return np.asarray(numbers > 3)
    return cast(np.asarray(numbers, np.float32) / (4 if spec.dtype.is_float else 1), spec.dtype)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _erf(x: Any) -> Any:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def _updated(x: Any, part: Any) -> Any:
    made = x.copy()
    made[3 : 3 + 2 * len(part) : 2] = part
    return made


UNLIKE: dict[str, Callable[..., Any]] = {
    "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: 1 / x, "sin_reduced": np.sin,
    "sigmoid": _sigmoid, "silu": lambda x: x * _sigmoid(x), "erf": _erf,
    "gelu": lambda x: x * (1 + _erf(x / math.sqrt(2))) / 2,
    "exact_add": np.add, "exact_subtract": np.subtract, "exact_multiply": np.multiply,
    "cast": lambda x: x, "convert": lambda x: x, "low_bits": lambda x: x,
    **{
        name: partial(getattr(np, name), axis=1, keepdims=True)
        for name in ("sum", "prod", "mean", "max", "min", "any", "all")
    },
    **{
        name: partial(getattr(np, name), axis=1)
        for name in ("argmax", "argmin", "cumsum", "cumprod")
    },
    "cummax": partial(np.maximum.accumulate, axis=1), "cummin": partial(
        np.minimum.accumulate, axis=1
    ),
    "reshape": np.ravel, "broadcast_to": lambda x: np.stack([x] * 3), "slice": (
        lambda x: x[1:19:2, 2:12:2]
    ),
    "concatenate": lambda x, y: np.hstack([x, y]), "update": _updated,
    "triu": lambda x: np.triu(x, 1), "softmax": _softmax,
    "rms_norm": lambda x: x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6),
    "constant": lambda: np.arange(COLUMNS),
    "iota": lambda: np.tile(np.arange(COLUMNS), (ROWS, 1)),
}  # fmt: skip
"""Operation → NumPy's expression, where it is not NumPy's function of the same name."""


def numpys(op: str, arrays: list[np.ndarray], spec: Spec) -> np.ndarray:
    """In float64 and int64, then as the result's dtype: integers wrap, floats are rounded."""
    if op == "bitcast":
        return arrays[0].view(spec.storage)
    wide = [a if a.dtype == bool else a.astype(_wide(a)) for a in arrays]
    with np.errstate(all="ignore"):
        found = np.asarray((UNLIKE[op] if op in UNLIKE else getattr(np, op))(*wide))
        if spec.dtype.name == "bool_":
            return found.astype(bool)
        if spec.dtype.is_integer:
            return found.astype(np.int64).astype(spec.storage)
        return cast(found.astype(np.float32), spec.dtype)


def _wide(array: np.ndarray) -> type:
    return np.int64 if array.dtype.kind in "iu" else np.float64


TOLERANCE = {
    "float32": 2.0**-17, "float16": 2.0**-9, "bfloat16": 2.0**-6, "float8_e4m3": 2.0**-2,
    "float8_e4m3fn": 2.0**-2, "float8_e5m2": 2.0**-1,
}  # fmt: skip
"""Of the result: a last place and, in float32, the rounding of formulas."""


def is_close(found: np.ndarray, exact: np.ndarray) -> bool:
    """Integers equal; floats within the tolerance of their format."""
    if exact.dtype.kind in "iub":
        return bool((found == exact).all())
    a, b = found.astype(np.float64), exact.astype(np.float64)
    near = np.abs(a - b) <= TOLERANCE[exact.dtype.name] * np.abs(b) + 2e-6
    return bool((near | (a == b) | (np.isnan(a) & np.isnan(b))).all())


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("op", "name"), CASES)
def test_one_operation(op, name, of_graph, source_results, tmp_path):
    graph, dtype = graph_of(op, resolve(name)), resolve(name)
    assert graph is not None
    arrays = [values_for(v.spec, n) for n, v in enumerate(graph.inputs)]
    if op == "cast":  # C leaves open what a negative float is as an unsigned integer
        arrays = [a if a.dtype == bool else np.abs(a) for a in arrays]
    if dtype.is_integer and op in ("left_shift", "right_shift", "power"):
        arrays[1] = (np.abs(arrays[1].astype(np.int32)) % 5).astype(arrays[1].dtype)
    written = source_results(of_graph(graph), tmp_path, tuple(arrays))
    specs = [graph.specs[v] for v in graph.outputs]
    for ours, spec in zip(written, specs, strict=True):
        exact = numpys(op, arrays, spec)
        found = np.asarray(ours).reshape(exact.shape).view(exact.dtype)
        assert exact.shape == spec.shape
        assert is_close(found, exact), f"{op} of {name} to {spec.dtype}"


@pytest.mark.parametrize("function", [np.rint, np.trunc, np.floor, np.ceil])
def test_rounded_zeros_keep_their_sign(function):
    x = np.array([-0.0, 0.0, -0.3, 0.3, -0.5, 0.5, -1.5, 2.5, -(2.0**24), np.nan], np.float32)
    found = compile(function, x)(x)

    np.testing.assert_array_equal(found, function(x))
    np.testing.assert_array_equal(np.signbit(found[:-1]), np.signbit(function(x[:-1])))
