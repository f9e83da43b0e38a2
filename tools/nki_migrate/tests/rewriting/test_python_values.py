"""Python's own values in kernels: lists, slices, numbers and aliases are not tiles.

Each kernel migrates completely, and old and new give the same on the machine.
"""

from __future__ import annotations

import textwrap
from types import ModuleType

import numpy as np
import pytest

import nki_runtime
from nki_migrate.engine.processing import Task, process
from nki_migrate.settings.request import VERSIONS, Request

HEAD = """
import functools
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np

WEIGHTS = (0.5, 0.25, -2.0)
run = nki.simulate_kernel
timed = nki.benchmark(warmup=5)
traced = functools.partial(nki.jit, mode="trace")


@timed
def kernel(a, options={"scale": 0.5, "shift": 0.25, "times": 3, "name": "relu"}):
    n, m = a.shape
    out = nl.ndarray((n, m), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(a[0:8, 0:16], dtype=nl.float32)
"""
TAIL = """
    nl.store(out[0:8, 0:16], tile)
    return out
"""
BODIES = {
    "slice": """
        rows = slice(0, 8)
        tile = nl.multiply(nl.load(a[rows, 0:16], dtype=nl.float32), 2.0)
    """,
    "numbers_of_a_module": """
        for weight in WEIGHTS:
            tile = tile * weight
    """,
    "enumerated": """
        for i, weight in enumerate([0.5, 2.0]):
            tile = tile * weight + i
    """,
    "zipped": """
        for weight, shift in zip((0.5, 2.0), [1.0, -1.0]):
            tile = tile * weight + shift
    """,
    "list_of_tiles": """
        kept = [None] * 2
        kept[0] = nl.exp(tile)
        kept[1] = nl.tanh(tile)
        first, second = kept
    """,
    "host_array": """
        table = np.full((4,), 3.0)
        table[1] = 2.0
    """,
    "function_of_a_number": """
        tile = tile * (1.0 / np.sqrt(m)) + float(n)
    """,
    "option": """
        if options["shift"]:
            tile = tile + options["shift"]
        tile = nl.multiply(tile, options["scale"]) * options["times"]
    """,
    "key": """
        options = {"pad": 2.0}
        size = options["pad"]
    """,
    "comprehension": """
        parts = [nl.multiply(tile, w) for w in (0.5, 2.0)]
        kept = [nl.exp(tile[0:8, 0:16]) for _ in range(2)]
    """,
    "continuation_line": """
        tile = nl.exp(tile[0:8, 0: \\
                           16])
    """,
}


def module_of(text: str) -> ModuleType:
    module = ModuleType("kernels")
    exec(compile(text, "kernels.py", "exec"), module.__dict__)
    return module


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_python_values_are_not_tiles(tmp_path, monkeypatch, body):
    text = HEAD + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + TAIL
    (tmp_path / "kernels.py").write_text(text)
    a = np.linspace(-1, 1, 128, dtype=np.float32).reshape(8, 16)

    result = process(Task("kernels.py", text.encode(), Request(target=VERSIONS[-1])))

    assert result.error is None
    assert [k.complete for k in result.kernels] == [True], result.after
    with nki_runtime.use(backend="beta1"):
        old = module_of(text).kernel
        expected = np.asarray(module_of(text.replace("@timed", "@nki.jit")).kernel(a)), old
    with nki_runtime.use(nki=VERSIONS[-1]):
        new = np.asarray(module_of(result.after).kernel(a))
    np.testing.assert_allclose(new, expected[0], rtol=1e-6)


def test_one_indexed_dimension_says_nothing_of_the_others():
    text = HEAD.partition("@timed")[0] + textwrap.dedent("""
        @nki.jit
        def kernel(a):
            out = nl.ndarray((8, 16), dtype=a.dtype, buffer=nl.shared_hbm)
            nl.store(out, nl.load(a[0:8]))
            return out
    """)

    result = process(Task("kernels.py", text.encode(), Request()))

    assert [k.complete for k in result.kernels] == [False]
    assert "TODO(nki-migrate NKI1157)" in result.after


def test_a_shape_that_is_unpacked_for_each_rank_is_left_alone():
    text = HEAD.partition("@timed")[0] + textwrap.dedent("""
        @nki.jit
        def kernel(a):
            if a.ndim == 2:
                n, m = a.shape
            else:
                b, n, m = a.shape
            out = nl.ndarray((8, 16), dtype=a.dtype, buffer=nl.shared_hbm)
            nl.store(out[0:8, 0:16], nl.load(a[0:8, 0:16]))
            return out
    """)

    result = process(Task("kernels.py", text.encode(), Request()))

    assert [k.complete for k in result.kernels] == [True]
    assert "b, n, m = a.shape" in result.after
