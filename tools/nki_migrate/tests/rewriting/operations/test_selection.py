"""`nl.where`, broadcasts and transposes, run before and after: the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

import nki_runtime
from nki_migrate.engine.migration import migrate_source
from nki_migrate.settings.request import Request

HEAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x, y):
    a = nl.load(x[0:128, 0:64])
    b = nl.load(y[0:128, 0:64])
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
"""
TAIL = "    nl.store(out, c)\n    return out\n"
CHOICES = {
    "two tiles": "c = nl.where(nl.greater(a, b, dtype=nl.uint8), a, b, dtype=nl.float32)",
    "a float condition": "c = nl.where(a, b, 2.0, dtype=nl.float32)",
    "a number chosen": "c = nl.where(nl.greater(a, b, dtype=nl.uint8), -1.0, b, dtype=nl.float32)",
    "one of its own names": "c = nl.exp(a)\nc = nl.where(a, c, 0.5, dtype=nl.float32)",
    "into what it reads": (
        "c = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)\n"
        "c[0:128, 0:64] = nl.copy(b)\n"
        "c[0:128, 0:64] = nl.where(a, 3.0, c, dtype=nl.float32)"
    ),
    "a column repeated": "c = nl.broadcast_to(nl.max(a, axis=1, keepdims=True), shape=(128, 64))",
    "a method": "d = nl.load(y[0:128, 0:1])\nc = nl.copy(d.broadcast_to((128, 64)))",
    "a transpose into another dtype": (
        "t = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.psum)\n"
        "h = nl.copy(a, dtype=nl.bfloat16)\n"
        "t[0:64, 0:128] = nisa.nc_transpose(h)\n"
        "c = nl.copy(nisa.nc_transpose(nl.copy(t)))"
    ),
    "a number with a dtype": "c = nl.multiply(a, nl.float32(0.5), dtype=nl.float32)",
}


def _run(text, folder, name, **choice):
    file = folder / f"{name}.py"
    file.write_text(text)
    namespace: dict = {"__name__": name}
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-2, 3, (128, 64)).astype(np.float32) for _ in range(2))
    with nki_runtime.use(**choice, shadow=True):
        exec(compile(text, str(file), "exec"), namespace)
        return np.asarray(namespace["kernel"](x, y))


@pytest.mark.parametrize("lines", CHOICES.values(), ids=CHOICES)
def test_old_and_new_give_the_same(lines, tmp_path):
    body = "".join(f"    {line}\n" for line in lines.split("\n"))
    result = migrate_source(HEAD + body + TAIL, "k.py", Request())
    assert "TODO" not in result.after

    old = _run(result.before, tmp_path, "old_choice", backend="beta1")
    new = _run(result.after, tmp_path, "new_choice", backend="beta2", nki="0.6")

    np.testing.assert_array_equal(new, old)


def test_a_float_of_the_module_makes_float32():
    text = HEAD.replace("@nki.jit", "HALF = 0.5\nLOW = -1.0\n\n\n@nki.jit")
    result = migrate_source(text + "    c = a * HALF\n    d = a + LOW\n", "k.py", Request())

    assert "c = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)" in result.after
    assert "d = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)" in result.after


def test_a_mask_on_a_choice_is_left():
    body = "    c = nl.where(a, a, b, dtype=nl.float32, mask=nl.arange(128)[:, None] < 3)\n"
    result = migrate_source(HEAD + body + TAIL, "k.py", Request())

    assert "TODO(nki-migrate NKI1234): a mask on a choice" in result.after
