"""Integer arithmetic in float32 pieces: NumPy's integers, also where they wrap."""

from __future__ import annotations

import numpy as np
import pytest

from nkigen_lite import Graph, trace
from nkigen_lite.ir.graph import verify_graph
from nkigen_lite.passes import decompose

TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
OPERATIONS = {
    "add": lambda x, y: x + y, "subtract": lambda x, y: x - y, "multiply": lambda x, y: x * y,
    "negative": lambda x, y: -x, "abs": lambda x, y: np.abs(x), "square": lambda x, y: x**2,
    "cube": lambda x, y: x**3, "sign": lambda x, y: np.sign(x),
    "right_shift": lambda x, y: x >> (y & 31), "left_shift": lambda x, y: x << (y & 7),
    "maximum": np.maximum, "minimum": np.minimum, "equal": np.equal, "not_equal": np.not_equal,
    "less": np.less, "less_equal": np.less_equal, "greater": np.greater,
    "greater_equal": np.greater_equal,
}  # fmt: skip
COMPUTING = {"add", "subtract", "multiply", "negative", "abs", "square", "sum"}


def pairs(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of edges, and random ones."""
    info = np.iinfo(dtype)
    near = {0, 1, 2, 255, 256, 65535, 65536, 2**24, 2**24 + 1, info.max // 2}
    edges = {info.min, info.min + 1, info.max - 1, info.max, *near, *(-n for n in near)}
    known = np.array(sorted(e for e in edges if info.min <= e <= info.max), dtype)
    rng = np.random.default_rng(11)
    x, y = (rng.integers(info.min, info.max, 2000, dtype, endpoint=True) for _ in range(2))
    all_pairs = np.repeat(known, known.size), np.tile(known, known.size)
    return np.concatenate([all_pairs[0], x, y]), np.concatenate([all_pairs[1], y, y])


def computes_on_integers(graph: Graph) -> list[str]:
    """Operations whose operands float32 would have to hold and may not."""
    return [n.op for n in graph.nodes if n.op in COMPUTING and n.spec.dtype.is_integer]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("function", OPERATIONS.values(), ids=OPERATIONS)
def test_integers_wrap_and_compare_as_numpys(function, dtype):
    x, y = pairs(dtype)
    graph = verify_graph(decompose(trace(function, x, y)))
    with np.errstate(over="ignore"):
        expected = function(x, y)

    found = graph.run(x, y)

    assert computes_on_integers(graph) == []
    assert found.dtype == expected.dtype
    assert (found == expected).all()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("axis", [0, 1, None])
def test_sums_of_integers_wrap(dtype, axis):
    x = pairs(dtype)[0][:2000].reshape(40, 50)
    graph = verify_graph(decompose(trace(lambda x: x.sum(axis=axis), x)))

    assert computes_on_integers(graph) == []
    expected = np.asarray(x.sum(axis=axis)).astype(np.uint64).astype(np.uint32)
    assert (np.asarray(graph.run(x)).view(np.uint32) == expected).all()


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
@pytest.mark.parametrize("op", ["add", "subtract", "multiply"])
def test_every_float32_of_an_integer_operation_is_exact(op, dtype):
    """Run again in float64: a number that float32 rounded would now be another."""
    from nkigen_lite.ir import run_graph
    from nkigen_lite.ir.interpreter import FLOAT64

    x, y = pairs(dtype)
    graph = decompose(trace(OPERATIONS[op], x, y))

    assert (run_graph(graph, (x, y), FLOAT64)[0] == graph.run(x, y)).all()
