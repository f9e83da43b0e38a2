"""Edits that rest on an assumption are hidden until asked for."""

from nki_migrate.engine import migrate_source
from nki_migrate.findings import Safety
from nki_migrate.request import Assumption, Request

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
