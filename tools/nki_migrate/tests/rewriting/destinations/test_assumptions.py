"""Edits that rest on an assumption are hidden until asked for."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import nki_runtime
from neuroncore.findings import Safety
from nki_migrate.engine.migration import migrate_source
from nki_migrate.settings.request import Assumption, Request

FLOATS = "(nl.bfloat16, nl.float16, nl.float32)"
TEXT = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

@nki.jit
def kernel(a, b):
    x = nl.load(a[0:128, 0:512])
    y = nl.load(b[0:128, 0:512])
    z = x + y
    w = nl.exp(z)
"""


def test_assumption_is_named_and_nothing_is_edited():
    result = migrate_source(TEXT, "k.py", Request())

    (hidden,) = [f for f in result.findings if f.safety is Safety.UNSAFE]
    assert hidden.assumption == "a.dtype == b.dtype"
    assert not hidden.applied
    assert "    z = x + y\n" in result.after


def test_unsafe_fixes_apply_it():
    result = migrate_source(TEXT, "k.py", Request(unsafe_fixes=True))

    assert "z = nl.ndarray((128, 512), dtype=a.dtype, buffer=nl.sbuf)" in result.after
    assert result.kernels[0].complete


def test_assertion_proves_it():
    text = TEXT.replace("    x =", "    assert a.dtype == b.dtype\n    x =")

    assert migrate_source(text, "k.py", Request()).kernels[0].complete


def test_assumed_dtypes_prove_it():
    given = tuple(Assumption("kernel", n, dtype="bfloat16", text=f"kernel.{n}") for n in "ab")
    result = migrate_source(TEXT, "k.py", Request(assumptions=given))

    assert "z = nl.ndarray((128, 512), dtype=a.dtype, buffer=nl.sbuf)" in result.after


def test_assumed_shape_gives_the_rank():
    text = TEXT.replace("x = nl.load(a[0:128, 0:512])", "x = nl.load(a[0])")
    given = (Assumption("*", "a", shape=("4", "128", "512"), text="a: shape=(4, 128, 512)"),)
    result = migrate_source(text, "k.py", Request(assumptions=given))

    assert "x = nl.ndarray((128, 512), dtype=a.dtype, buffer=nl.sbuf)" in result.after


ASSUMED = {
    "two": ("x + y", ["assert a.dtype == b.dtype"]),
    "quotient": ("x / y", ["assert a.dtype == b.dtype", f"assert a.dtype in {FLOATS}"]),
    "integer": ("x + 1", [f"assert a.dtype in {FLOATS}"]),
    "known": ("x + nl.copy(y, dtype=nl.int32)", ["assert a.dtype == nl.int32"]),
    "number": ("x * scale", ["assert isinstance(scale, float) or a.dtype == nl.float32"]),
    "number-beside-bfloat16": (
        "nl.copy(x, dtype=nl.bfloat16) * scale",
        ["assert isinstance(scale, float)"],
    ),
    "truths": ("x * nl.less(y, 0.0)", [f"assert a.dtype in {FLOATS}"]),
}


@pytest.mark.parametrize(("value", "asserts"), ASSUMED.values(), ids=ASSUMED)
def test_an_assumed_dtype_is_asserted_in_the_kernel(value, asserts):
    text = TEXT.replace("(a, b)", "(a, b, scale)").replace("x + y", value)
    text = text.replace("w = nl.exp(z)", "again = z + z")
    after = migrate_source(text, "k.py", Request(unsafe_fixes=True)).after

    lines = [line.strip() for line in after.splitlines()]
    assert [line for line in lines if line.startswith("assert")] == asserts
    where = next(i for i, line in enumerate(lines) if line.startswith("z = "))
    assert all(lines.index(a) < where for a in asserts)
    assert "assert" not in migrate_source(text, "k.py", Request()).after


DTYPES = {
    "int8": np.int8,
    "int32": np.int32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float32": np.float32,
}


def run(path: Path, text: str, given: Sequence[np.ndarray], **backend) -> np.ndarray:
    path.write_text(text)
    with nki_runtime.use(**backend):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)  # pyrefly: ignore
        spec.loader.exec_module(module)  # pyrefly: ignore
        return np.asarray(module.kernel(*(a.copy() for a in given)))


UNSEEN = {
    "int8-times-3": ("int8", "int8", "(x - y) * 3"),
    "int32-and-float32": ("int32", "float32", "x + y"),
    "halves": ("bfloat16", "float16", "x + y"),
    "quotient-of-ints": ("int32", "int32", "x / y"),
    "float32": ("float32", "float32", "(x - y) * 3"),
}


@pytest.mark.parametrize(("a", "b", "value"), UNSEEN.values(), ids=UNSEEN)
def test_a_kernel_whose_assumption_fails_stops(a, b, value, tmp_path):
    head, _, rest = TEXT.partition("    x = ")
    body = f"    x = {rest}".replace("x + y", value).replace("    w = nl.exp(z)\n", "")
    text = f"""{head}    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
{body}    again = nl.add(z, z)
    nl.store(out, nl.copy(again, dtype=nl.float32))
    return out
"""
    after = migrate_source(text, "k.py", Request(unsafe_fixes=True)).after
    numbers = np.random.default_rng(5).integers(1, 100, (2, 128, 512))
    given = [n.astype(DTYPES[d]) for n, d in zip(numbers, (a, b), strict=True)]

    old = run(tmp_path / "old.py", text, given, backend="beta1")
    if a == "float32":
        new = run(tmp_path / "new.py", after, given, backend="beta2", nki="0.6")
        np.testing.assert_array_equal(old, new)
    else:
        with pytest.raises(AssertionError) as stopped:
            run(tmp_path / "new.py", after, given, backend="beta2", nki="0.6")
        statements = [str(entry.statement).strip() for entry in stopped.traceback]
        assert any(s.startswith(("assert a.dtype ==", "assert a.dtype in")) for s in statements)
