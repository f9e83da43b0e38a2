"""Random small graphs, constants among them: no pass changes their values, none ends in an error of
the generator's own, and each has a kernel or a reason why not."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

from nki_dtypes import bool_, float32, int32
from nkigen_lite.compiler.compile import lowered, rewritten
from nkigen_lite.ir import Builder, Graph, values_of
from nkigen_lite.ops import OPS, Kind
from nkigen_lite.passes import check_pass
from nkigen_lite.selection.unsupported import CodegenError
from nkigen_lite.tensors.errors import GraphError
from nkigen_lite.tensors.spec import Spec

UNDRAWN = (Kind.composite, Kind.constant, Kind.loop)
NAMES = sorted(n for n, o in OPS.items() if o.kind not in UNDRAWN)
LEFT_OUT = {"bitcast", "convert", "low_bits", "sin_reduced", "power", "left_shift", "right_shift"}
"""What only passes make, and what is undefined for many operands."""
OFTEN = ("add", "multiply", "where", "max", "sum", "exp", "matmul", "broadcast_to")
"""What patterns of rewrite rules begin with."""
SHAPES = ((), (4,), (3, 4), (3, 1), (1, 4), (2, 3, 4), (1,), (4, 4))
NUMBERS = (0.0, 0.25, 0.5, 1.0, -1.0, 2.0, 3.0)


def attrs_for(rng: np.random.Generator, op: str, shape: tuple[int, ...]) -> dict[str, Any]:
    """Attributes that often fit an operand of this shape."""
    rank = len(shape)
    axes = tuple(sorted(rng.permutation(rank)[: rng.integers(0, rank + 1)].tolist()))
    starts = tuple(int(rng.integers(0, n)) for n in shape)
    special: dict[str, dict[str, Any]] = {
        "transpose": {"axes": tuple(rng.permutation(rank).tolist())},
        "reshape": {"shape": ((prod(shape),), (1, *shape), shape[::-1])[rng.integers(3)]},
        "broadcast_to": {"shape": (2, *shape)},
        "slice": {"sizes": tuple(n - s for n, s in zip(shape, starts, strict=True))},
    }
    known = {
        "axes": axes, "keepdims": bool(rng.integers(2)), "axis": int(rng.integers(0, rank + 1)),
        "starts": starts, "steps": (1,) * rank, "k": int(rng.integers(-1, 3)), "mode": "wrap",
        "dtype": (float32, int32, bool_)[rng.integers(3)], "descending": bool(rng.integers(2)),
    }  # fmt: skip
    known |= special.get(op, {})
    return {name: known[name] for name in OPS[op].attrs if name in known}


def random_graph(seed: int) -> Graph:
    """A few operations on one or two inputs and on constants of one number or several."""
    rng = np.random.default_rng(seed)
    build = Builder("random_graph")
    values = [
        build.input(Spec(SHAPES[rng.integers(len(SHAPES))], float32))
        for _ in range(rng.integers(1, 3))
    ]
    for _ in range(rng.integers(2, 8)):
        shape = SHAPES[rng.integers(len(SHAPES))]
        number = NUMBERS[rng.integers(len(NUMBERS))]
        values.append(build.fill(number, float32, shape if rng.integers(2) else ()))
        if rng.integers(4) == 0:
            array = rng.choice(NUMBERS, shape).astype(np.float32)
            values.append(build.constant(array, float32))
        for _ in range(4):  # tries
            op = rng.choice(OFTEN if rng.integers(2) else NAMES)
            operands = [values[-1 - min(len(values) - 1, int(rng.geometric(0.4)) - 1)]
                        for _ in OPS[op].operands]  # fmt: skip
            if op in LEFT_OUT:
                continue
            try:
                attrs = attrs_for(rng, op, build.specs[operands[0]].shape)
                values.append(build.emit(op, *operands, **attrs))
                break
            except GraphError:
                continue
    made = [node.name for node in build.nodes if node.op != "constant"]
    return build.finish(tuple(made[-2:] or values[-1:]))


def is_modest(graph: Graph, arrays: list[np.ndarray]) -> bool:
    """Whether every value is: what 1 / -0.0 and floats beyond an integer's range become is not
    defined."""
    values = values_of(graph, arrays, np.dtype(np.float64)).values()
    return all((np.abs(v.astype(np.float64)) < 2.0**24).all() for v in values)


def check_graph(seed: int) -> bool:
    """Whether the graph has a kernel."""
    graph = random_graph(seed)
    rng = np.random.default_rng([seed, 1])
    arrays = [rng.integers(-6, 7, v.spec.shape).astype(np.float32) / 4 for v in graph.inputs]
    passes = rewritten(graph)
    for name in ("canonicalized", "in machine terms") if is_modest(graph, arrays) else ():
        check_pass(name, graph, passes[name], arrays)
    try:
        lowered(passes, "trn2", "0.7")
    except CodegenError:
        return False
    return True


def check_graphs(first: int, count: int) -> float:
    """The share of the graphs that have a kernel; the seed is in the error."""
    made = 0
    for seed in range(first, first + count):
        try:
            made += check_graph(seed)
        except Exception as wrong:
            raise AssertionError(f"seed {seed}: {random_graph(seed)}") from wrong
    return made / count


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_random_graphs_pass_every_pass():
    assert check_graphs(0, 150) > 0.97


@pytest.mark.thorough
@pytest.mark.timeout(7200)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_many_random_graphs_pass_every_pass():
    assert check_graphs(1000, 100_000) > 0.97
