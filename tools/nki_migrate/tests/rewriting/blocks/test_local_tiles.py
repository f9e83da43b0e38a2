"""Block tensors that are one tile wherever they are used: which ones, and the same numbers."""

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
def kernel(x):
    out = nl.ndarray((4, 128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray((4, nl.par_dim(128), 128), dtype=nl.float32, buffer=nl.{memory})
"""
ALONE = {
    "written and read in one loop": """
for i in nl.affine_range(4):
    t[i] = nl.load(x[i])
    nl.store(out[i], t[i])
""",
    "written in parts, one block per run": """
for i in nl.affine_range(4):
    for k in nl.affine_range(2):
        t[i, :, nl.ds(64 * k, 64)] = nl.load(x[i, :, nl.ds(64 * k, 64)])
    nl.store(out[i], t[i])
""",
    "written first, the same block in every run": """
for i in nl.affine_range(4):
    t[2] = nl.load(x[i])
    nl.store(out[i], t[2])
""",
    "in a helper that is called once per block": """
def move(j):
    for k in nl.affine_range(2):
        t[j, :, nl.ds(64 * k, 64)] = nl.load(x[j, :, nl.ds(64 * k, 64)])
    nl.store(out[j], t[j])
for i in nl.affine_range(4):
    move(i)
""",
    "in a helper whose calls are of different blocks": """
def move(j):
    for k in nl.affine_range(2):
        t[j, :, nl.ds(64 * k, 64)] = nl.load(x[j, :, nl.ds(64 * k, 64)])
    nl.store(out[j], t[j])
move(0)
for i in nl.affine_range(2):
    move(i + 1)
move(3)
""",
    "in both arms of a test": """
for i in nl.affine_range(4):
    if i < 1:
        nl.store(out[i], nl.load(x[i, 0:128, 0:128]))
    elif i < 2:
        t[i] = nl.load(x[i])
        nl.store(out[i], t[i])
    else:
        t[i] = nl.load(x[i])
        nl.store(out[i], t[i])
""",
}
LISTS = {
    "read in a later loop": """
for i in nl.affine_range(4):
    t[i] = nl.load(x[i])
for i in nl.affine_range(4):
    nl.store(out[i], t[i])
""",
    "filled by several runs of a loop": """
for k in nl.affine_range(2):
    for i in nl.affine_range(4):
        t[i, :, nl.ds(64 * k, 64)] = nl.load(x[i, :, nl.ds(64 * k, 64)])
        nl.store(out[i, :, nl.ds(64 * k, 64)], t[i, :, nl.ds(64 * k, 64)])
""",
    "the block before is read": """
t[0] = nl.load(x[0])
nl.store(out[0], t[0])
for i in nl.affine_range(3):
    t[i + 1] = nl.load(x[i + 1])
    nl.store(out[i + 1], nl.add(t[i], t[i + 1]))
""",
    "in a helper whose calls share a block": """
def move(j):
    for k in nl.affine_range(2):
        t[j, :, nl.ds(64 * k, 64)] = nl.load(x[j, :, nl.ds(64 * k, 64)])
    nl.store(out[j], t[j])
for i in nl.affine_range(4):
    move(i)
move(3)
""",
    "the index is bound again on the way": """
for i in nl.affine_range(4):
    j = i
    t[j] = nl.load(x[i])
    nl.store(out[i], t[j])
""",
}
SUMS = """
for i in nl.affine_range(4):
    a = nl.load(x[i, 0:128, 0:128])
    for k in nl.affine_range(2):
        t[i] += nisa.nc_matmul(a, a)
    nl.store(out[i], nl.copy(t[i]))
"""
CASES = {**{name: (text, "sbuf") for name, text in {**ALONE, **LISTS}.items()}}
CASES["sums of products"] = (SUMS, "psum")


def _old(lines, memory="sbuf"):
    body = "".join(f"    {line}\n" for line in lines.strip().split("\n"))
    return HEAD.format(memory=memory) + body + "    return out\n"


def _new(text):
    result = migrate_source(text, "k.py", Request())
    assert result.kernels[0].complete
    return result.after


def _run(text, folder, name, **choice):
    file = folder / f"{name}.py"
    file.write_text(text)
    namespace: dict = {"__name__": name}
    x = np.random.default_rng(0).integers(-2, 3, (4, 128, 128)).astype(np.float32)
    with nki_runtime.use(**choice, shadow=True):
        exec(compile(text, str(file), "exec"), namespace)
        return np.asarray(namespace["kernel"](x))


@pytest.mark.parametrize("lines", ALONE.values(), ids=ALONE)
def test_a_tile_is_made_where_it_is_used(lines):
    assert "t = []" not in _new(_old(lines))


@pytest.mark.parametrize("lines", LISTS.values(), ids=LISTS)
def test_blocks_that_several_places_share_stay_a_list(lines):
    assert "t = []" in _new(_old(lines))


@pytest.mark.parametrize(("lines", "memory"), CASES.values(), ids=CASES)
def test_old_and_new_give_the_same(lines, memory, tmp_path):
    old = _old(lines, memory)

    before = _run(old, tmp_path, "old", backend="beta1", nki="0.1")
    after = _run(_new(old), tmp_path, "new", backend="beta2", nki="0.6")

    np.testing.assert_array_equal(after, before)


def test_blocks_that_a_todo_mentions_stay_a_list():
    lines = (
        "for i in nl.affine_range(4):\n    t[i] = nl.load(x[i])\n    nl.store(out[i], nl.no(t[i]))"
    )

    after = migrate_source(_old(lines), "k.py", Request()).after

    assert "TODO" in after
    assert "t = []" in after
