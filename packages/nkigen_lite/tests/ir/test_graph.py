"""Graphs: built, printed and read back, verified, run."""

from __future__ import annotations

import numpy as np
import pytest

from nki_dtypes import ALL, bfloat16, bool_, float32, tfloat32
from nkigen_lite import as_spec
from nkigen_lite.ir import Builder, Graph, parse_graph, verify_graph
from nkigen_lite.tensors.errors import BroadcastError, GraphError, GraphTextError, SpecError

LINE = """\
def line(x0: float32[4, 8]):
    v0 = constant(2.0, float32[()])  # float32[()]
    v1 = multiply(x0, v0)  # float32[4, 8]
    v2 = sum(v1, axes=(1,), keepdims=True)  # float32[4, 1]
    v3 = cast(v2, dtype=bfloat16)  # bfloat16[4, 1]
    return v3
"""


def line() -> Graph:
    build = Builder("line")
    x = build.input(as_spec("f32[4, 8]"))
    doubled = build.emit("multiply", x, build.fill(2.0, float32))
    total = build.emit("sum", doubled, axes=[1], keepdims=True)
    return build.finish((build.emit("cast", total, dtype="bf16"),))


def test_a_graph_prints_as_python():
    assert str(line()) == LINE


def test_what_prints_parses_back():
    assert parse_graph(LINE) == line()


@pytest.mark.parametrize("dtype", [d for d in ALL if not d.is_packed], ids=str)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)], ids=str)
def test_constants_of_any_bits_print_and_parse_back(dtype, shape):
    spec = as_spec(f"{dtype}[{', '.join(map(str, shape))}]")
    width = spec.storage.itemsize
    raw = np.random.default_rng(8).bytes(spec.size * width)
    array = np.frombuffer(raw, f"u{width}").reshape(shape)
    array = np.array(array > 99) if dtype is bool_ else array.view(spec.storage)
    build = Builder("constants")
    graph = build.finish((build.constant(array, dtype),))

    assert parse_graph(str(graph)) == graph
    assert np.asarray(graph.run()).tobytes() == array.tobytes()


@pytest.mark.parametrize("value", [0.0, -0.0, np.inf, -np.inf, np.nan, 0.1, -3e38], ids=str)
def test_one_number_prints_and_parses_back_to_the_bit(value):
    build = Builder("number")
    graph = build.finish((build.fill(value, float32, (128, 512)),))

    assert parse_graph(str(graph)) == graph
    assert len(str(graph)) < 120


def test_equal_operations_are_made_once():
    build = Builder("twice")
    x = build.input(as_spec("f32[4]"))

    assert build.emit("exp", x) == build.emit("exp", x)
    assert build.fill(0.0, float32) != build.fill(-0.0, float32)


def test_what_no_result_needs_is_left_out():
    build = Builder("unused")
    x = build.input(as_spec("f32[4]"))
    build.emit("exp", x)

    assert str(build.finish((build.emit("tanh", x),))).count("=") == 1


def test_a_run_rounds_each_result_once():
    (x,) = [np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)]

    result = line().run(x)

    assert result.dtype == bfloat16.storage
    expected = (2 * x.astype(np.float64)).sum(1, keepdims=True)
    assert np.abs(result.astype(np.float64) - expected).max() <= np.abs(expected).max() * 2**-8


def test_tfloat32_inputs_lose_their_low_bits():
    build = Builder("keep")
    graph = build.finish((build.input(as_spec("tf32[2]")),))

    assert graph.inputs[0].spec.dtype is tfloat32
    assert graph.run(np.array([1 + 2**-12, 1 + 2**-9], np.float32)).tolist() == [1, 1 + 2**-9]


def test_a_written_argument_is_updated():
    graph = parse_graph(
        "def f(x0: int32[2]):\n    v0 = negative(x0)\n    x0[...] = v0\n    return x0"
    )
    x = np.array([1, -2], np.int32)

    assert graph.run(x).tolist() == [1, -2]
    assert x.tolist() == [-1, 2]


@pytest.mark.parametrize(
    ("arrays", "error", "said"),
    [
        ((), SpecError, "line takes 1 arrays"),
        ((np.zeros((4, 7), np.float32),), BroadcastError, "x0 has another shape"),
        ((np.zeros((4, 8), np.int32),), SpecError, "x0 has another dtype"),
    ],
)
def test_other_arrays_than_the_specs_are_rejected(arrays, error, said):
    with pytest.raises(error, match=said):
        line().run(*arrays)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("v0 = exp(x1)", "uses x1 before it is made"),
        ("v0 = explode(x0)", "calls explode, which is not an operation"),
        ("v0 = exp(x0, x0)", "exp takes other operands"),
        ("v0 = exp(x0, axis=1)", "exp has other attributes"),
        ("v0 = sum(x0, axes=(2,), keepdims=True)", r"sum: axes \(2,\)"),
        ("v0 = sum(x0, axes=(0.5,), keepdims=True)", r"sum: axes=\(0.5,\)"),
        ("v0 = reshape(x0, shape=(3,))", "expected: 32 elements"),
        ("v0 = bitwise_and(x0, x0)", "float32 operands"),
        ("v0 = slice(x0, starts=(0, 5), sizes=(4, 2), steps=(1, 3))", "start 5, size 2, step 3"),
        ("for v0 in x0: pass", "is not a statement of a graph"),
        ("v0 = constant(1.0, f99[2])", "is not a spec"),
    ],
)
def test_text_that_is_no_graph_says_where_and_why(body, said):
    with pytest.raises((GraphTextError, GraphError), match=said):
        parse_graph(f"def f(x0: float32[4, 8]):\n    {body}\n    return v0")


def test_a_verifier_lists_all_violations():
    wrong = Graph("f", (), (), ("v0", "v1"))

    with pytest.raises(GraphError, match="returns v0") as rejected:
        verify_graph(wrong)

    assert "also: the graph returns v1" in str(rejected.value)
