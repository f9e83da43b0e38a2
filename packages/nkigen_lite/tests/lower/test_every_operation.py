"""Every operation on every dtype: its kernel gives what the graph gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nki_dtypes import DType, cast, resolve
from nkigen_lite.errors import GraphError
from nkigen_lite.ir import Builder, Graph
from nkigen_lite.ops import OPS
from nkigen_lite.ops.create import Constant
from nkigen_lite.spec import Spec

FORMATS = (
    "f32", "f16", "bf16", "tf32", "e4m3", "e4m3fn", "e5m2", "int8", "int16", "int32", "uint8",
    "uint16", "uint32", "bool",
)  # fmt: skip
ROWS, COLUMNS = 130, 12
_ROW = {"axes": (1,), "keepdims": True}
_PLACE = {"axis": 1, "keepdims": False}
ATTRS: dict[str, dict[str, Any]] = {
    "sum": _ROW, "prod": _ROW, "mean": _ROW, "max": _ROW, "min": _ROW, "any": _ROW, "all": _ROW,
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
    expected = graph.run(*arrays)
    expected = expected if isinstance(expected, tuple) else (expected,)
    specs = [graph.specs[v] for v in graph.outputs]
    for ours, graphs, spec in zip(written, expected, specs, strict=True):
        found = np.asarray(ours).reshape(graphs.shape).view(graphs.dtype)
        assert is_close(found, graphs), f"{op} of {name} to {spec.dtype}"
