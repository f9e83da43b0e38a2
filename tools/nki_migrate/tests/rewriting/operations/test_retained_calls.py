"""`--nl keep`: convenience calls stay where a later version still means the same by them."""

import textwrap

import pytest

from nki_migrate.engine.migration import migrate_source
from nki_migrate.settings.request import Request

TEXT = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

@nki.jit
def kernel(x):
    out = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.shared_hbm)
    ip = nl.arange(128)[:, None]
    jf = nl.arange(512)[None, :]
    tile = nl.load(x[ip, jf])
    {statement}
    nl.store(out[ip, jf], value=tile)
    return out
"""


def kept(statement: str, target: str = "0.6") -> str:
    text = TEXT.replace("{statement}", statement)
    result = migrate_source(text, "k.py", Request(nl="keep", target=target))
    return textwrap.dedent(result.after.split("def kernel(x):\n")[1])


def test_loads_and_stores_stay_with_slices():
    result = kept("pass")

    assert "tile = nl.load(x[0:128, 0:512])" in result
    assert "nl.store(out, value=tile)" in result
    assert "arange" not in result


@pytest.mark.parametrize(
    "statement",
    ["tile = nl.exp(tile)", "total = nl.sum(tile, axis=1)", "twice = nl.add(tile, tile)"],
)
def test_function_of_equal_shapes_stays(statement):
    assert statement in kept(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "shifted = nl.subtract(tile, nl.max(tile, axis=1))",  # broadcasts
        "half = nl.divide(tile, 2.0)",  # no such instruction
        "part = nl.exp(tile, mask=(ip < 64))",  # no masks
    ],
)
def test_call_that_would_mean_something_else_is_lowered(statement):
    assert statement not in kept(statement)
    assert "nisa." in kept(statement)


def test_nothing_is_kept_for_0_2():
    assert "nl.load" not in kept("pass", target="0.2")
