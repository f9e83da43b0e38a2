"""Helpers and lists of tiles without facts of a run: the calls in the file say what they are.

Each kernel migrates completely, and old and new give the same on the machine.
"""

from __future__ import annotations

import textwrap
from types import ModuleType
from typing import Literal

import numpy as np
import pytest

import nki_runtime
from nki_migrate.engine.processing import Task, process
from nki_migrate.engine.results import FileResult
from nki_migrate.settings.request import VERSIONS, Request

HEAD = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
"""
HELPERS = {
    "combined": """

def combined(a, b, factor=0.5):
    return nl.multiply(nl.add(a, b), factor)
""",
    "deviations": """

def deviations(tile, rows):
    mean = nl.max(tile, axis=1, keepdims=True)
    return nl.subtract(tile, mean), mean
""",
    "loaded": """

def loaded(source, rows):
    n, m = source.shape
    return nl.load(source[nl.ds(0, rows), 0:m])
""",
    "blocks_of": """

def blocks_of(source, n, m):
    blocks = nl.ndarray((2, nl.par_dim(n), m), dtype=nl.float32, buffer=nl.sbuf)
    for k in nl.affine_range(2):
        blocks[k] = nl.multiply(nl.load(source[0:n, 0:m]), 0.5)
    return blocks
""",
    "halve_blocks": """

def halve_blocks(blocks, n):
    assert blocks.shape[1] == n
    i = nl.mgrid[0:n, 0:16]
    for k in nl.affine_range(blocks.shape[0]):
        blocks[k, i.p, i.x] = nl.multiply(blocks[k, i.p, i.x], 0.5)
""",
    "doubled": """

def doubled(tile):
    return combined(tile, tile, factor=1.0)
""",
}
KERNEL = """

@nki.jit
def kernel(x):
    n, m = x.shape
    out = nl.ndarray((n, m), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x[0:n, 0:m])
"""
TAIL = """
    nl.store(out[0:n, 0:m], result)
    return out
"""
BODIES = {
    "equal_shapes": "result = combined(nl.exp(tile), tile)",
    "keywords_in_another_order": "result = combined(b=nl.exp(tile), a=tile)",
    "result_as_operand": "result = combined(tile, tile) / 4.0 + tile",
    "several_results": """
        centred, mean = deviations(tile, 8)
        result = nl.add(centred, mean)
    """,
    "helper_of_a_helper": "result = nl.subtract(doubled(tile), tile)",
    "size_from_a_parameter": "result = nl.add(loaded(x, n), tile)",
    "appended_tiles": """
        kept = []
        for k in range(3):
            kept.append(nl.multiply(tile, 0.5))
        result = nl.add(kept[0], kept[2])
    """,
    "assigned_items": """
        kept = [None] * 2
        for k in range(2):
            kept[k] = nl.exp(tile)
        result = kept[0] + kept[1]
    """,
    "blocks_that_a_helper_returns": """
        blocks = blocks_of(x, n, m)
        result = nl.add(nl.copy(blocks[1]), tile)
    """,
    "blocks_that_one_helper_returns_and_another_changes": """
        blocks = blocks_of(x, n, m)
        halve_blocks(blocks, n)
        result = nl.add(blocks[1], tile)
    """,
    "items_of_a_dict": """
        kept = {}
        kept["a"] = nl.exp(tile)
        kept["b"] = nl.tanh(tile)
        result = kept["a"] * kept["b"]
    """,
    "loop_over_a_list": """
        kept = [nl.exp(tile), nl.tanh(tile)]
        result = nl.zeros((n, m), dtype=nl.float32, buffer=nl.sbuf)
        for one in kept:
            result[...] = nl.add(result, one)
    """,
}


def migrated(body: str, block_dims: Literal["auto", "list"] = "auto") -> FileResult:
    """The kernel with this body, and the helpers that it reaches, migrated."""
    called = {name for name in HELPERS if f"{name}(" in body}
    called |= {"combined"} if "doubled" in called else set()
    helpers = "\n".join(text for name, text in HELPERS.items() if name in called)
    body = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    text = HEAD + helpers + KERNEL + body + TAIL
    return process(
        Task("kernels.py", text.encode(), Request(target=VERSIONS[-1], block_dims=block_dims))
    )


def run(text: str, x: np.ndarray, backend: str = "beta2") -> np.ndarray:
    module = ModuleType("kernels")
    with nki_runtime.use(backend=backend):
        exec(compile(text, "kernels.py", "exec"), module.__dict__)
        return np.asarray(module.kernel(x))


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_tiles_of_helpers_and_lists_have_the_shapes_of_their_calls(body):
    x = np.linspace(-1, 1, 128, dtype=np.float32).reshape(8, 16)

    result = migrated(body)

    assert all(k.complete for k in result.kernels), result.after
    new = run(result.after, x)
    np.testing.assert_allclose(new, run(result.before, x, backend="beta1"), rtol=1e-5)


@pytest.mark.parametrize("block_dims", ["list", "fold"])
def test_a_helper_returns_blocks_in_the_form_that_its_callers_read(block_dims):
    x = np.linspace(-1, 1, 128, dtype=np.float32).reshape(8, 16)
    body = BODIES["blocks_that_one_helper_returns_and_another_changes"]

    result = migrated(body, block_dims=block_dims)

    assert all(k.complete for k in result.kernels), result.after
    new = run(result.after, x)
    np.testing.assert_array_equal(new, run(result.before, x, backend="beta1"))


UNLIKE = {
    "one_call_passes_a_row": "result = combined(combined(tile, tile), nl.load(x[0:1, 0:m]))",
    "items_of_two_shapes": """
        kept = [tile]
        kept.append(nl.load(x[0:n, 0:4]))
        k = m // 16
        result = nl.add(kept[k - 1], tile)
    """,
    "a_list_that_something_else_extends": """
        kept = [nl.exp(tile)]
        kept.extend([nl.load(x[0:n, 0:4])])
        k = m // 16
        result = nl.add(kept[k], tile)
    """,
}


@pytest.mark.parametrize("body", UNLIKE.values(), ids=UNLIKE)
def test_tiles_that_may_differ_in_shape_are_left_to_a_person(body):
    result = migrated(body)

    assert not all(k.complete for k in result.kernels)
    assert "is not known; --unsafe-fixes assumes it" in result.after


def test_a_list_whose_item_is_replaced_holds_the_new_tile():
    body = """
        kept = [tile]
        kept[0] = nl.load(x[0:n, 0:1])
        result = nl.add(kept[0], tile)
    """

    assert "TODO(nki-migrate" in migrated(body).after


INDICES = """
def part(m, ip, jf):
    return nl.exp(m[ip, jf])


@nki.jit
def kernel(x):
    n, k = x.shape
    ip = nl.arange(32)[:, None]
    jf = nl.arange({free})[None, :]
    out = nl.ndarray((n, k), dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out[ip, jf], value=part(nl.load(x[ip, jf]), ip, jf))
    return out
"""


@pytest.mark.parametrize(
    ("free", "line"),
    [
        ("16", "nisa.activation(dst=m_exp, op=nl.exp, data=m[0:32, 0:16])"),
        ("k", "`jf` is an index tensor of the callers: pass numbers, and slice here"),
    ],
    ids=["numbers", "sizes"],
)
def test_index_tensors_of_callers_are_not_numbers(free: str, line: str):
    text = HEAD + INDICES.format(free=free)

    result = process(Task("kernels.py", text.encode(), Request(target=VERSIONS[-1])))

    assert line in result.after
    assert not all(k.complete for k in result.kernels)
