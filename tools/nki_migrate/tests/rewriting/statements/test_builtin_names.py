"""New code calls `range` and `min`: where a name is the file's own, a TODO says so instead."""

from __future__ import annotations

import textwrap

import pytest

from nki_migrate.engine.migration import migrate_source
from nki_migrate.settings.request import Request

HEAD = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
"""
LOOP = """
@nki.jit
def kernel(x{parameter}):
    R, C = x.shape
    out = nl.ndarray((R, C), dtype=x.dtype, buffer=nl.shared_hbm)
    {local}
    for r in nl.affine_range(2):
        t = nl.load(x[nl.ds(r * 32, 32), 0:C])
        nl.store(out[nl.ds(r * 32, 32), 0:C], t)
    return out
"""
MASKED = """
@nki.jit
def kernel(x{parameter}):
    R, C = x.shape
    out = nl.ndarray((R, C), dtype=x.dtype, buffer=nl.shared_hbm)
    {local}
    ip, jf = nl.mgrid[0:128, 0:C]
    for r in nl.affine_range((R + 127) // 128):
        t = nl.load(x[r * 128 + ip, jf], mask=(r * 128 + ip < R))
        nl.store(out[r * 128 + ip, jf], t, mask=(r * 128 + ip < R))
    return out
"""
GRID = """
@nki.jit
def kernel(x{parameter}):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    {local}
    p = nl.program_id(0)
    nl.store(out[p], nl.load(x[p]))
    return out

def host(x):
    return kernel[x.shape[0]](x)
"""

OWN = {
    "module-function": "def {name}(n):\n    return [0] * n\n",
    "module-variable": "if True:\n    {name} = 3\n",
    "module-import": "from mine import {name}\n",
    "module-global": "def change():\n    global {name}\n    {name} = 3\n",
}
LOCAL = {
    "assignment": "{name} = 3",
    "loop": "for {name} in (1, 2): pass",
    "import": "import mine as {name}",
    "later": "if C > 10**6: {name} = 3",
    "function": "def {name}(n): return n",
    "walrus": "[({name} := i) for i in (1, 2)]",
}
KERNELS = {"range": LOOP, "min": MASKED}
NOT_OWN = {
    "comprehension": "sizes = [{name} for {name} in (1, 2)]",
    "inside": "def inner({name}): return {name}",
    "attribute": "nl.{name}",
}


def migrated(text: str):
    return migrate_source(text, "k.py", Request())


def taken(result, name: str) -> bool:
    words = f"`{name}`, which is something else here", f"`{name}` is something else here"
    found = any(w in f.message for f in result.findings for w in words)
    return found and not any(
        f"{name}(" in edit.text for f in result.findings if f.applied for edit in f.edits
    )


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("own", OWN.values(), ids=OWN)
def test_names_of_the_module_are_not_called_as_builtins(own, name):
    text = HEAD + own.format(name=name) + KERNELS[name].format(parameter="", local="pass")

    assert taken(migrated(text), name)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("local", LOCAL.values(), ids=LOCAL)
def test_names_of_the_kernel_are_not_called_as_builtins(local, name):
    text = HEAD + KERNELS[name].format(parameter="", local=local.format(name=name))

    assert taken(migrated(text), name)


@pytest.mark.parametrize("name", KERNELS)
def test_parameters_and_names_of_functions_around_are_not_called_as_builtins(name):
    parameter = HEAD + KERNELS[name].format(parameter=f", {name}=1", local="pass")
    inner = textwrap.indent(KERNELS[name].format(parameter="", local="pass"), "    ")
    around = f"{HEAD}\ndef make({name}):\n{inner}\n    return kernel\n"

    assert taken(migrated(parameter), name)
    assert taken(migrated(around), name)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("local", NOT_OWN.values(), ids=NOT_OWN)
def test_names_of_other_scopes_do_not_matter(local, name):
    text = HEAD + KERNELS[name].format(parameter="", local=local.format(name=name))
    result = migrated(text)

    assert result.kernels[0].complete
    assert f"{name}(" in result.after


def test_a_grid_is_no_loop_where_range_is_something_else():
    result = migrated(HEAD + GRID.format(parameter="", local="range = 3"))

    assert any("call the builtin `range`, which is" in f.message for f in result.findings)
    assert "kernel[x.shape[0]](x)" in result.after
    assert not result.kernels[0].complete
    assert "for p in range(" in migrated(HEAD + GRID.format(parameter="", local="pass")).after


def test_calls_of_the_own_function_stay():
    own = "def min(a, b):\n    return a + b\n"
    body = "rows = min(1, 2)"
    result = migrated(HEAD + own + LOOP.format(parameter="", local=body))

    assert result.kernels[0].complete
    assert body in result.after
