"""Old and new kernels, run by their interpreters, give the same: names, promotion, rebinding.

A kernel is either migrated to one that agrees bit for bit, or it is not reported as complete.
"""

from __future__ import annotations

import importlib.util
import textwrap
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nki_runtime
from nki_migrate.engine.migration import migrate_source
from nki_migrate.settings.request import Request

HEAD = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

@nki.jit
def kernel(a):
"""
OUT = "out = nl.ndarray(a.shape, dtype={}, buffer=nl.shared_hbm)\n"
DTYPES = [np.float32, ml_dtypes.bfloat16, np.float16, np.int8]


def source(body: str, out: str = "a.dtype") -> str:
    text = OUT.format(out) + textwrap.dedent(body).strip("\n") + "\nreturn out\n"
    return HEAD + textwrap.indent(text, "    ")


def run(path: Path, text: str, a: np.ndarray, **backend) -> np.ndarray:
    path.write_text(text)
    with nki_runtime.use(**backend):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)  # pyrefly: ignore
        spec.loader.exec_module(module)  # pyrefly: ignore
        return np.asarray(module.kernel(a.copy()))


def both(folder: Path, text: str, a: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """What the old and the new kernel give; None if the new one is not complete."""
    result = migrate_source(text, "k.py", Request())
    if not result.kernels[0].complete:
        return None
    old = run(folder / "old.py", text, a, backend="beta1")
    return old, run(folder / "new.py", result.after, a, backend="beta2", nki="0.6", target="trn2")


def sample(dtype) -> np.ndarray:
    """Small positive numbers: no result overflows in any dtype."""
    return (np.arange(8 * 16).reshape(8, 16) % 7 + 1).astype(dtype)


KERNELS = {
    "an alias outlives the rebinding": """
        t = nl.load(a)
        u = t
        t = nl.sqrt(t)
        nl.store(out, nl.add(t, u))
        """,
    "an alias outlives a rebinding from itself": """
        t = nl.load(a)
        u = t
        t = nl.sqrt(u)
        nl.store(out, nl.subtract(t, u))
        """,
    "names are swapped once": """
        x = nl.load(a)
        y = nl.sqrt(x)
        x, y = y, x
        nl.store(out, nl.subtract(x, y))
        """,
    "values of one assignment are old ones": """
        x = nl.load(a)
        y = nl.sqrt(x)
        x, y = nl.add(y, y), nl.add(x, x)
        nl.store(out, nl.subtract(x, y))
        """,
    "adding to a result makes a new one": """
        t = nl.load(a)
        u = nl.sqrt(t)
        v = u
        u += t
        nl.store(out, nl.subtract(u, v))
        """,
    "adding to a declared tile changes it for every name": """
        p, f = a.shape
        t = nl.load(a)
        u = nl.zeros((p, f), dtype=nl.float32, buffer=nl.sbuf)
        v = u
        u += t
        nl.store(out, v)
        """,
    "tiles move on through a loop": """
        older = nl.load(a)
        newer = nl.sqrt(older)
        for i in range(3):
            sum = nl.add(older, newer)
            older = newer
            newer = sum
        nl.store(out, newer)
        """,
    "a loop that never runs leaves what was": """
        t = nl.load(a)
        for i in range(0):
            t = nl.add(t, t)
        nl.store(out, t)
        """,
    "a branch may take either tile": """
        t = nl.load(a)
        u = t
        if a.shape[0] > 4:
            u = nl.sqrt(t)
        nl.store(out, nl.add(t, u))
        """,
    "tiles of one tensor have one shape": """
        t = nl.load(a)
        u = nl.load(a)
        nl.store(out, nl.add(nl.sqrt(t), u))
        """,
}


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("body", KERNELS.values(), ids=KERNELS)
def test_names_mean_what_they_meant(body, dtype, tmp_path):
    results = both(tmp_path, source(body), sample(dtype))

    assert results is not None
    np.testing.assert_array_equal(*results)


PROMOTIONS = {
    "float factor, float32 result": ("t * 1.1 + 0.3", "nl.float32"),
    "float factor, stored as the input": ("t * 0.5", "a.dtype"),
    "negated difference": ("3.0 - t", "nl.float32"),
    "float quotient": ("(t + 0.1) / 3.0", "nl.float32"),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize(("value", "out"), PROMOTIONS.values(), ids=PROMOTIONS)
def test_t8_a_float_makes_float32_of_every_tile(value, out, dtype, tmp_path):
    results = both(tmp_path, source(f"t = nl.load(a)\nnl.store(out, {value})", out), sample(dtype))

    assert results is not None
    # 0.2 has no divide: times a rounded reciprocal, two roundings of half an ulp more than 0.1
    np.testing.assert_allclose(*results, rtol=2.0**-23 * 1.01 if "/" in value else 0)


@pytest.mark.parametrize("value", ["t * 3 + 1", "nl.add(t, 2)", "t / 4"])
def test_t8_an_integer_leaves_the_dtype_open_and_a_todo(value):
    text = source(f"t = nl.load(a)\nnl.store(out, {value})", "nl.float32")
    result = migrate_source(text, "k.py", Request())

    assert not result.kernels[0].complete
    assert [f.assumption for f in result.findings if f.rule == "NKI1188"] == [
        "a.dtype is a floating dtype"
    ]


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        ("int8", "2", "int32"), ("int8", "2.0", "float32"), ("bfloat16", "2", "bfloat16"),
        ("bfloat16", "2.0", "float32"), ("uint32", "2", "float32"), ("uint16", "2", "int32"),
    ],
)  # fmt: skip
def test_t8_numbers_are_weak(dtype, value, expected):
    text = source(f"t = nl.load(a, dtype=nl.{dtype})\nu = nl.add(t, {value})\nnl.store(out, u)")
    after = migrate_source(text, "k.py", Request()).after

    assert f"u = nl.ndarray(t.shape, dtype=nl.{expected}, buffer=nl.sbuf)" in after


NAMES = st.sampled_from("xyz")
STATEMENTS = st.one_of(
    st.builds("{} = nl.load(a)".format, NAMES),
    st.builds("{} = nl.sqrt({})".format, NAMES, NAMES),
    st.builds("{} = nl.add({}, {})".format, NAMES, NAMES, NAMES),
    st.builds("{} = {} * 0.5".format, NAMES, NAMES),
    st.builds("{} = {}".format, NAMES, NAMES),
    st.builds("{}, {} = {}, {}".format, *[NAMES] * 4),
    st.builds("{} += {}".format, NAMES, NAMES),
    st.builds("{} *= 0.5".format, NAMES),
)


def check_program(folder: Path, lines: list[str], dtype) -> None:
    loads = [f"{n} = nl.load(a)" for n in "xyz"]
    body = "\n".join([*loads, *lines, "nl.store(out, nl.add(nl.add(x, y), z))"])
    results = both(folder, source(body, "nl.float32"), sample(dtype))
    if results is not None:
        np.testing.assert_array_equal(*results)


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(STATEMENTS, max_size=7), st.sampled_from(DTYPES[:3]))
def test_straight_line_programs_agree_or_are_not_complete(tmp_path_factory, lines, dtype):
    check_program(tmp_path_factory.mktemp("k"), lines, dtype)


@pytest.mark.thorough
@settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(STATEMENTS, max_size=12), st.sampled_from(DTYPES[:3]))
def test_many_straight_line_programs_agree(tmp_path_factory, lines, dtype):
    check_program(tmp_path_factory.mktemp("k"), lines, dtype)


ASSIGNED = {
    "a product": "nl.multiply(t, t)",
    "a sum with a number": "nl.add(t, 33)",
    "a function": "nl.sqrt(t)",
    "a total": "nl.sum(t, axis=1, keepdims=True)",
    "a quotient": "nl.divide(t, nl.add(t, t))",
}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8", "int32"])
@pytest.mark.parametrize("value", ASSIGNED.values(), ids=ASSIGNED)
def test_a_result_is_rounded_before_it_gets_into_a_wider_tile(value, dtype, tmp_path):
    body = f"""
        t = nl.load(a, dtype=nl.{dtype})
        wide = nl.ndarray((8, {1 if "sum" in value else 16}), dtype=nl.float32, buffer=nl.sbuf)
        wide[...] = {value}
        nl.store(out, nl.add(wide, nl.load(a, dtype=nl.float32)))
        """
    text = source(body, "nl.float32").replace(
        "def kernel(a):", "def kernel(a):\n    assert a.shape == (8, 16)"
    )
    a = (np.arange(8 * 16).reshape(8, 16) * 37 % 120 + 1).astype(np.float32)

    results = both(tmp_path, text, a)

    assert results is not None
    np.testing.assert_allclose(*results, rtol=2.0**-23 * 1.01 if "div" in value else 0)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "bool_"])
@pytest.mark.parametrize("body", ["nl.add(t, True)", "nl.multiply(False, t)"])
def test_truth_values_count_as_uint8(body, dtype, tmp_path):
    text = source(
        f"t = nl.load(a, dtype=nl.{dtype})\nu = {body}\n"
        "last = nl.ndarray(a.shape, dtype=u.dtype, buffer=nl.shared_hbm)\n"
        "nl.store(last, u)\nreturn last"
    )

    results = both(tmp_path, text, sample(np.float32))

    assert results is not None
    old, new = results
    assert new.dtype == old.dtype
    np.testing.assert_array_equal(new, old)
