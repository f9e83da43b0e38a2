"""Tiles read as another dtype: the same bytes, block by block where there is a list of them."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

import nki_runtime
from nki_migrate.engine.processing import Task, process
from nki_migrate.engine.results import FileResult
from nki_migrate.settings.request import VERSIONS, Request

TEXT = """
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((2, 128, {columns}), dtype=nl.{dtype}, buffer=nl.shared_hbm)
    t = nl.ndarray((2, nl.par_dim(128), 4), dtype=nl.float32, buffer=nl.sbuf)
    for g in range(2):
        t[g] = nl.load(x[g])
    {body}
    return out
"""
LOOP = """for g in range(2):
        nl.store(out[g, {rows}, :], value={value})"""
FORMS = {
    "narrower": ("int8", 16, "t.view(nl.int8)[g]"),
    "a part of each block": ("int8", 5, "t.view(nl.int8)[g, :, 3:8]"),
    "as wide": ("int32", 4, "t.view(nl.int32)[g, 0:128, :]"),
    "of a block": ("int8", 16, "t[g].view(nl.int8)"),
    "by keyword": ("int16", 8, "t.view(dtype=nl.int16)[g, :, :]"),
    "of a view": ("float32", 4, "t.view(nl.int8).view(nl.float32)[g]"),
}


def migrated(dtype: str, columns: int, body: str) -> tuple[str, FileResult]:
    text = TEXT.format(dtype=dtype, columns=columns, body=body)
    return text, process(Task("k.py", text.encode(), Request(target=VERSIONS[-1])))


def run(text: str, **backend) -> np.ndarray:
    module = ModuleType("k")
    x = np.random.default_rng(0).standard_normal((2, 128, 4), dtype=np.float32)
    with nki_runtime.use(**backend):
        exec(compile(text, "k.py", "exec"), module.__dict__)
        return np.asarray(module.kernel(x))


def check(text: str, result: FileResult) -> None:
    assert [k.complete for k in result.kernels] == [True], result.after
    found, expected = run(result.after, nki=VERSIONS[-1]), run(text, backend="beta1")
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("form", FORMS)
def test_blocks_read_as_another_dtype_have_the_same_bytes(form):
    dtype, columns, value = FORMS[form]

    check(*migrated(dtype, columns, LOOP.format(rows=":", value=value)))


def test_a_name_for_all_blocks_as_another_dtype_has_the_same_bytes():
    loop = LOOP.format(rows=":", value="v[g, :, :]")

    check(*migrated("int8", 16, f"v = t.view(nl.int8)\n    {loop}"))


def test_a_view_is_written_through():
    loop = """for g in range(2):
        t.view(nl.int32)[g, 0:64, :] = nisa.memset((64, 4), g + 1, dtype=nl.int32)
        nl.store(out[g], value=t[g])"""

    check(*migrated("float32", 4, loop))
