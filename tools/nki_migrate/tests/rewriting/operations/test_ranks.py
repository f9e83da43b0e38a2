"""Operands of different ranks, and reductions over axes with others between them."""

from __future__ import annotations

import textwrap
from types import ModuleType

import numpy as np
import pytest

import nki_runtime
from nki_migrate.engine.processing import Task, process
from nki_migrate.settings.request import VERSIONS, Request

HEAD = """
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(x, y):
    out = nl.ndarray({shape}, dtype=nl.float32, buffer=nl.shared_hbm)
    a = nl.load(x[0:8, 0:6, 0:8], dtype=nl.float32)
    b = nl.load(y[0:8, 0:48], dtype=nl.float32)
"""
BODIES = {
    "sum": ((8, 6, 8), "t = nl.zeros((8, 6, 8), dtype=nl.float32)\nt += b\nt *= b"),
    "product": (
        (48, 6, 8),
        "t = nl.zeros((48, 6, 8), dtype=nl.float32, buffer=nl.psum)\nt += nisa.nc_matmul(b, b)",
    ),
    "assigned": (
        (8, 6, 8), "t = nl.ndarray((8, 6, 8), dtype=nl.float32, buffer=nl.sbuf)\nt[...] = b",
    ),
    "column": ((8, 6, 8), "t = nisa.tensor_tensor(a, b[:, 3:4], op=nl.subtract)"),
    "column first": ((8, 6, 8), "t = nisa.tensor_tensor(b[:, 3:4], a, op=nl.subtract)"),
    "gaps": (
        (8, 3, 4),
        "t = nisa.tensor_reduce(nl.max, a.reshape((8, 3, 2, 4, 2)), axis=[2, 4])",
    ),
    "gaps, negated": (
        (8, 3, 1, 4, 1),
        "t = nisa.tensor_reduce(np.add, a.reshape((8, 3, 2, 4, 2)), axis=(2, 4), negate=True,"
        " keepdims=True)",
    ),
    "not the last": ((8, 8), "t = nisa.tensor_reduce(np.min, a, axis=1)"),
}  # fmt: skip


def text_of(name):
    shape, body = BODIES[name]
    lines = textwrap.indent(f"{body}\nnl.store(out, t)\nreturn out", "    ")
    return HEAD.format(shape=shape) + lines + "\n"


def migrated(text):
    return process(Task("k.py", text.encode(), Request(target=VERSIONS[-1])))


@pytest.mark.parametrize("name", BODIES)
def test_the_new_kernel_computes_what_the_old_one_does(name):
    result = migrated(text_of(name))
    x = np.arange(8 * 48, dtype=np.float32).reshape(8, 6, 8) % 11 - 5
    arguments = x, x.reshape(8, 48) + 1

    assert result.kernels[0].complete, result.after

    with nki_runtime.use(backend="beta1"):
        expected = outcome(text_of(name), *arguments)
    with nki_runtime.use(nki=VERSIONS[-1]):
        found = outcome(result.after, *arguments)
    np.testing.assert_array_equal(found, expected)


def outcome(text, *arguments):
    module = ModuleType("k")
    exec(compile(text, "k.py", "exec"), module.__dict__)
    return np.asarray(module.kernel(*arguments))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("t = a.reshape((8, 1, 3, 2, 4, 2))", "a view of 6 dimensions: at most 5 on chip"),
        ("t = nisa.memset((8, 4), value=b[:, 0:1], dtype=nl.float32)", "`tile.broadcast_to("),
    ],
)
def test_what_later_versions_do_not_take_is_explained(line, message):
    result = migrated(HEAD.format(shape=(8, 4)) + f"    {line}\n    return out\n")

    assert message in result.after


def test_axes_of_a_tile_of_unknown_rank_are_not_taken_for_others():
    text = HEAD.format(shape=(8, 4)).replace("x[0:8, 0:6, 0:8]", "x")
    text += "    t = nisa.tensor_reduce(np.max, a, axis=[3])\n    return out\n"

    assert "`a` is of unknown rank" in migrated(text).after
