"""Comparisons and logical operations: 0.1 gives truth values, 0.2 what it is told to give."""

from __future__ import annotations

import importlib.util
import textwrap
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import nki_runtime
from nki_migrate.engine.migration import migrate_source
from nki_migrate.settings.request import Request

HEAD = """
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl

@nki.jit
def kernel(a):
    assert a.shape == (8, 16)
    out = nl.ndarray((8, 16), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.load(a, dtype={dtype})
    u = nl.load(a, dtype=nl.float32)
    column = nl.load(a[0:8, 3:4], dtype=nl.float32)
    row = nl.load(a[3:4, 0:16], dtype=nl.float32)
    big, odd = nl.greater(t, 2.0), nl.not_equal(t, 5.0)
"""


def source(body: str, dtype: str) -> str:
    text = textwrap.dedent(body).strip("\n") + "\nnl.store(out, value)\nreturn out\n"
    return HEAD.format(dtype=dtype) + textwrap.indent(text, "    ")


def run(path: Path, text: str, a: np.ndarray, **backend) -> np.ndarray:
    path.write_text(text)
    with nki_runtime.use(**backend):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)  # pyrefly: ignore
        spec.loader.exec_module(module)  # pyrefly: ignore
        return np.asarray(module.kernel(a.copy()))


def sample() -> np.ndarray:
    return (np.arange(8 * 16).reshape(8, 16) % 7 - 1).astype(ml_dtypes.bfloat16)


VALUES = {
    "a comparison": "value = nl.greater(t, 2)",
    "of two tiles": "value = nl.less_equal(t, u)",
    "of a tile and a column": "value = nl.less(u, column)",
    "of a tile and a row": "value = nl.greater_equal(row, u)",
    "a sum": "value = nl.add(big, odd)",
    "a sum by operator": "value = big + odd",
    "a sum in float32": "value = nl.add(big, odd, dtype=nl.float32)",
    "a sum of copies": "value = nl.copy(big, dtype=nl.float32) + nl.copy(odd, dtype=nl.float32)",
    "a difference": "value = nl.subtract(big, odd)",
    "a product": "value = nl.multiply(big, odd)",
    "a quotient of integers": "i = nl.load(a, dtype=nl.int32)\nvalue = nl.divide(i, nl.add(i, 9))",
    "a sum into floats": """
        value = nl.ndarray((8, 16), dtype=nl.float32, buffer=nl.sbuf)
        value[...] = nl.add(big, odd)
        """,
    "a quotient": "value = nl.divide(u, nl.add(odd, 1))",
    "a maximum": "value = nl.maximum(big, odd)",
    "times a number": "value = nl.multiply(big, 3)",
    "times a fraction": "value = nl.multiply(big, 0.3)",
    "plus a number": "value = big + 2",
    "two minus it": "value = 2 - big",
    "times a tile": "value = nl.multiply(u, big) * 0.3",
    "rounded to the other's dtype": """
        small = nl.load(a, dtype=nl.bfloat16)
        value = nl.multiply(small * 0.5, nl.greater(u, 2)) + nl.multiply(nl.copy(
            small * 0.3, dtype=nl.bfloat16), nl.greater(u, 2))
        """,
    "beside small integers": "value = nl.add(nl.load(a, dtype=nl.uint8), big)",
    "beside signed small integers": "value = nl.add(nl.load(a, dtype=nl.int8), big)",
    "both bits": "value = nl.bitwise_and(big, odd)",
    "either bit": "value = big | odd",
    "one bit": "value = nl.bitwise_xor(big, odd)",
    "both": "value = nl.logical_and(big, odd)",
    "both of numbers": "value = nl.logical_and(u, t)",
    "either and one": "value = nl.add(nl.logical_or(u, t), big)",
    "a total": "value = nl.multiply(u, nl.sum(big, axis=1))",
    "a total in float32": "value = nl.multiply(u, nl.sum(big, axis=1, dtype=nl.float32))",
    "the largest": "value = nl.multiply(u, nl.max(big, axis=1))",
    "a mean": "value = nl.multiply(u, nl.mean(nl.copy(big, dtype=nl.float32), axis=1))",
    "a choice": "value = nl.where(big, u, 0.25)",
    "a choice of truths": "value = nl.where(big, odd, big)",
    "a choice by a sum": "value = nl.where(nl.subtract(big, odd), u, 7.0)",
    "a tile like it": """
        value = nl.zeros((8, 16), dtype=big.dtype, buffer=nl.sbuf)
        value[...] = nl.multiply(u, 0.25)
        """,
    "a tile of its own dtype": """
        value = nl.ndarray((8, 16), dtype=nl.float32, buffer=nl.sbuf)
        value[...] = nl.greater(t, 2)
        value += nl.greater(t, 3)
        """,
    "gathered in a loop": """
        value = nl.zeros((8, 16), dtype=nl.float32, buffer=nl.sbuf)
        for i in range(3):
            value += nl.greater(t, i)
        """,
    "added to in place": """
        value = nl.greater(t, 2)
        value += odd
        """,
    "compared again": "value = nl.equal(big, odd)",
    "an operand of an instruction": """
        value = nisa.tensor_tensor(big, odd, op=nl.add)
        """,
    "an operand of an instruction with numbers": """
        value = nisa.tensor_scalar(big, op0=nl.add, operand0=1.0, op1=nl.multiply, operand1=0.3)
        """,
    "told to be bool": "value = nl.greater(t, 2, dtype=bool) + odd",
    "told to be bool_": "value = nl.greater(t, 2, dtype=nl.bool_) + odd",
    "told to be integers": """
        value = nl.greater(t, 2, dtype=nl.int32) + nl.copy(odd, dtype=nl.int32)
        """,
    "an operator": "value = (t > 2) + odd",
}


LEFT_TO_A_HUMAN = {
    "the negative": "value = nl.negative(big)",
    "the negative by operator": "value = -big",
    "a square root": "value = nl.sqrt(nl.add(big, odd))",
    "an exponential": "value = nl.exp(big)",
    "a mean of truths": "value = nl.multiply(u, nl.mean(big, axis=1))",
}


@pytest.mark.parametrize("dtype", ["nl.bfloat16", "a.dtype"])
@pytest.mark.parametrize("body", VALUES.values(), ids=VALUES)
def test_truth_values_stay_truth_values(body, dtype, tmp_path):
    text = source(body, dtype)
    result = migrate_source(text, "k.py", Request())
    assert [f.message for f in result.findings if not f.applied and f.severity != "note"] == []

    old = run(tmp_path / "old.py", text, sample(), backend="beta1")
    new = run(tmp_path / "new.py", result.after, sample(), backend="beta2", nki="0.6")

    np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("body", LEFT_TO_A_HUMAN.values(), ids=LEFT_TO_A_HUMAN)
def test_functions_that_make_a_truth_value_of_what_is_none_leave_a_todo(body):
    result = migrate_source(source(body, "nl.float32"), "k.py", Request())

    assert any("truth values is a truth value" in f.message for f in result.findings)
    assert not result.kernels[0].complete


@pytest.mark.parametrize("value", ["nl.divide(t, t)", "nl.multiply(t, big)"])
def test_beside_a_dtype_of_unknown_kind_the_result_rests_on_an_assumption(value):
    body = f"half = {value}\nvalue = nl.copy(nl.add(half, half), dtype=nl.float32)"
    result = migrate_source(source(body, "a.dtype"), "k.py", Request())

    assumptions = [f.assumption for f in result.findings if f.rule == "NKI1188"]
    assert "a.dtype is a floating dtype" in assumptions
