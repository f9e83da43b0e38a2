"""Block tensors that go from file to file have one form in all of them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import nki_runtime
from nki_migrate.engine.call_graph import with_reachability
from nki_migrate.engine.processing import Task, process_all
from nki_migrate.engine.results import FileResult
from nki_migrate.settings.request import Request

HELPERS = """
import neuronxcc.nki.language as nl


def load_blocks(x, count, rows, cols):
    tiles = nl.ndarray((count, nl.par_dim(rows), cols), dtype=x.dtype, buffer=nl.sbuf)
    i, j = nl.mgrid[0:rows, 0:cols]
    for b in nl.affine_range(count):
        tiles[b, i, j] = nl.load(x[b * rows + i, j])
    return tiles


def double_blocks(tiles):
    count, rows, cols = tiles.shape
    i, j = nl.mgrid[0:rows, 0:cols]
    for b in nl.affine_range(count):
        tiles[b, i, j] = nl.multiply(tiles[b, i, j], 2.0)
"""
KERNEL = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
from blocks import double_blocks, load_blocks


@nki.jit
def kernel(x):
    out = nl.ndarray((64, 16), dtype=x.dtype, buffer=nl.shared_hbm)
    i, j = nl.mgrid[0:32, 0:16]
    tiles = load_blocks(x, 2, 32, 16)
    own = nl.ndarray((2, nl.par_dim(32), 16), dtype=x.dtype, buffer=nl.sbuf)
    for b in nl.affine_range(2):
        own[b, i, j] = nl.copy(tiles[b, i, j])
    double_blocks(own)
    for b in nl.affine_range(2):
        nl.store(out[b * 32 + i, j], own[b, i, j])
    return out
"""
RELATIVE = KERNEL.replace("from blocks", "from .blocks")
BY_ATTRIBUTE = (
    KERNEL.replace("from blocks import double_blocks, load_blocks", "import blocks")
    .replace("load_blocks(", "blocks.load_blocks(")
    .replace("double_blocks(", "blocks.double_blocks(")
)


def migrated(**files: str) -> dict[str, FileResult]:
    tasks = [Task(f"{stem}.py", text.encode(), Request()) for stem, text in files.items()]
    results = with_reachability(list(process_all(tasks, 1)))
    assert all(result.error is None for result in results)
    return {result.path.removesuffix(".py"): result for result in results}


def complete(result: FileResult) -> dict[str, bool]:
    return {kernel.name: kernel.complete for kernel in result.kernels}


@pytest.mark.parametrize("kernel", [KERNEL, BY_ATTRIBUTE], ids=["by name", "by attribute"])
def test_kernel_and_helpers_in_two_files_agree(kernel, tmp_path: Path, monkeypatch):
    found = migrated(blocks=HELPERS, kernel=kernel)
    for stem, result in found.items():
        (tmp_path / f"{stem}.py").write_text(result.after)
        monkeypatch.delitem(sys.modules, stem, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    x = np.arange(64 * 16, dtype=np.float32).reshape(64, 16)

    with nki_runtime.use(backend="beta2", nki="0.7", target="trn2"):
        from kernel import kernel as new  # pyrefly: ignore

        result = np.asarray(new(x))

    assert complete(found["kernel"]) == {"kernel": True}
    assert complete(found["blocks"]) == {"load_blocks": True, "double_blocks": True}
    np.testing.assert_array_equal(result, 2 * x)


def test_a_kernel_whose_helpers_are_not_in_view_is_not_complete():
    found = migrated(kernel=KERNEL)["kernel"]

    assert complete(found) == {"kernel": False}
    assert [f.message for f in found.findings if not f.applied and f.rule == "NKI1131"] == [
        "`tiles` has block dimensions, and nothing in view makes it: name the file that does, too",
        "`own` is a list of tiles now, and `double_blocks` is in a file that was not given: "
        "name that file, too",
    ]


def test_a_helper_of_blocks_whose_callers_are_not_in_view_is_not_complete():
    found = migrated(blocks=HELPERS)["blocks"]

    assert complete(found) == {"load_blocks": True, "double_blocks": False}


def test_a_helper_that_loads_from_three_dimensions_needs_no_caller():
    text = "def load_one(x, b):\n    i, j = nl.mgrid[0:32, 0:16]\n    return nl.load(x[b, i, j])\n"
    found = migrated(blocks=f"import neuronxcc.nki.language as nl\n\n\n{text}")["blocks"]

    assert complete(found) == {"load_one": True}
    assert "src=x[b, 0:32, 0:16]" in found.after


def test_a_tile_of_a_block_tensor_that_gets_a_name_is_a_finding():
    named = KERNEL.replace(
        "        nl.store(out[b * 32 + i, j], own[b, i, j])",
        """\
        tile = own[b, :, :]
        nl.store(out[b * 32 + i, j], tile)""",
    )
    found = migrated(blocks=HELPERS, kernel=named)["kernel"]
    line = 1 + found.before.splitlines().index("        tile = own[b, :, :]")

    assert "        tile = own[b]" in found.after
    assert any(f.region.line == line and f.applied for f in found.findings)


def test_a_relative_import_names_the_nearest_of_several_files():
    found = migrated(**{"a/blocks": "", "b/blocks": HELPERS, "b/kernel": RELATIVE})

    assert complete(found["b/kernel"]) == {"kernel": True}
    assert complete(found["b/blocks"]) == {"load_blocks": True, "double_blocks": True}
