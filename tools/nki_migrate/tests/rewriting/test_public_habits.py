"""Habits of public kernels that used to migrate to something that does not run.

Each kernel migrates completely, and old and new give the same on the machine.
"""

from __future__ import annotations

import importlib.util
import textwrap
from pathlib import Path

import numpy as np
import pytest

import nki_runtime
from nki_migrate.engine.migration import migrate_source
from nki_migrate.settings.request import Request

HEAD = """
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np

"""

OPTIONAL_TENSOR = """
@nki.jit
def kernel(a, bias=None):
    out = nl.ndarray(a.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(a[0:8, 0:16], dtype=nl.float32)
    column = nl.load(bias[0:8, 0:1]) if bias else None
    if bias:
        tile = nl.add(tile, nl.load(bias[0:8, 0:1], dtype=nl.float32))
    if not bias:
        tile = nl.multiply(tile, 2.0)
    nl.store(out[0:8, 0:16], tile)
    return out
"""

LIST_OF_TILES = """
@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    blocks = nl.zeros((2, nl.par_dim(4), 16), dtype=a.dtype, buffer=nl.sbuf)
    for i in nl.affine_range(blocks.shape[0]):
        blocks[i] = nl.load(a[i * 4:(i + 1) * 4, :])
    for i in nl.affine_range(2):
        packed = nl.ndarray((4, 16), dtype=blocks.dtype, buffer=nl.sbuf)
        packed[0:4, 0:16] = nl.copy(blocks[i])
        nl.store(out[i * 4:(i + 1) * 4, :], packed)
    return out
"""

COLUMN_IN_A_TILE = """
@nki.jit
def kernel(a, column):
    out = nl.ndarray((8, 16), dtype=nl.float32, buffer=nl.shared_hbm)
    ip, jf = nl.arange(8)[:, None], nl.arange(16)[None, :]
    one = nl.load(column[ip, 0], dtype=nl.float32)
    wide = nl.ndarray((8, 16), dtype=nl.float32, buffer=nl.sbuf)
    wide[ip, jf] = {value}
    nl.store(out[ip, jf], nl.add(nl.load(a[ip, jf], dtype=nl.float32), wide))
    return out
"""

SUMS_BESIDE_A_RESULT = """
@nki.jit
def kernel(a):
    out = nl.ndarray((8, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    sums = nl.ndarray((8, 1), dtype=nl.float32, buffer=nl.sbuf)
    tile = nl.load(a[0:8, 0:16], dtype=nl.float32)
    nisa.activation_reduce(op=nl.square, data=tile, reduce_op=np.add, reduce_res=sums[...])
    nl.store(out, value=sums)
    return out
"""

COLUMN_OPERAND = """
@nki.jit
def kernel(a):
    out = nl.ndarray((8, 16), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(a[0:8, 0:16])
    column = nl.max(tile, axis=1, keepdims=True)
    left = nisa.tensor_tensor(column, tile, np.subtract)
    right = nisa.tensor_tensor(tile, column, op=nl.multiply)
    nl.store(out, nisa.tensor_tensor(left, right, nl.add))
    return out
"""


NUMBERS = """
@nki.jit
def kernel(a):
    out = nl.ndarray((8, 16), dtype=nl.float32, buffer=nl.shared_hbm)
    ip, jf = nl.arange(8)[:, None], nl.arange(16)[None, :]
    for i in nl.affine_range(1):
        numbers = nisa.iota(3 * ip - 2 * jf + i + 5, dtype=nl.int32)
        nl.store(out[ip, jf], nl.copy(numbers, dtype=nl.float32))
    return out
"""

SELECTION = """
@nki.jit
def kernel(a):
    out = nl.ndarray((8, 16), dtype=nl.float32, buffer=nl.shared_hbm)
    ip, jf = nl.mgrid[0:8, 0:16]
    tile = nl.load(a[ip, jf], dtype=nl.float32)
    later = 2 * ip + 1 < jf
    early = nisa.affine_select(pred=later, on_true_tile=tile, on_false_value=-1.0)
    nl.store(out[ip, jf], nisa.affine_select(ip <= jf - 3, early, 0.5))
    return out
"""


PICKED_ROWS = """
@nki.jit
def kernel(a):
    n, m = a.shape
    out = nl.ndarray((n, m), dtype=a.dtype, buffer=nl.shared_hbm)
    ip, jf = nl.arange(4)[:, None], nl.arange(8)[None, :]
    for i in nl.affine_range(2):
        rows = nisa.iota(7 - 2 * ip - i, dtype=nl.int32)
        for j in nl.affine_range(2):
            tile = nl.load(a[rows[ip, 0], j * 8 + jf])
            nl.store(out[rows[ip, 0], 8 - 8 * j + jf], tile, mask=ip < 4)
    return out
"""


GRID_AS_INDEX = """
@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.load(a[nl.mgrid[0:8, 0:16]])
    nl.store(out[nl.mgrid[0:8, 0:16]], value=tile)
    return out
"""

IN_RANGE = """
@nki.jit
def kernel(a, low, high):
    out = nl.ndarray(a.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    tile, first, behind = nl.load(a[0:8, 0:16]), nl.load(low[0:8, 0:1]), nl.load(high[0:8, 0:1])
    chosen = nisa.range_select(
        on_true_tile=tile, comp_op0=nl.greater_equal, comp_op1=nl.less, bound0=first, bound1=behind,
        range_start=2, dtype=nl.float32,
    )
    nl.store(out, nl.maximum(chosen, -1.0, dtype=nl.float32))
    return out
"""


def new_text(text: str) -> str:
    result = migrate_source(HEAD + text, "k.py", Request())
    assert [f.message for f in result.findings if not f.applied and f.severity != "note"] == []
    return result.after


def run(path: Path, text: str, arrays: tuple[np.ndarray, ...], **backend) -> np.ndarray:
    path.write_text(text)
    with nki_runtime.use(**backend):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)  # pyrefly: ignore
        spec.loader.exec_module(module)  # pyrefly: ignore
        return np.asarray(module.kernel(*(array.copy() for array in arrays)))


A = np.arange(128, dtype=np.float32).reshape(8, 16) % 7 + 1
P, F = np.indices((8, 16), np.float32)
LOW, HIGH = np.full((8, 1), 4, np.float32), np.full((8, 1), 11, np.float32)
COLUMN = np.arange(8, dtype=np.float32).reshape(8, 1)
WIDENED = {
    "one[ip, 0]": 1,
    "nl.copy(one[ip, 0])": 1,
    "nl.load(column[ip, 0])": 1,
    "nl.square(one[ip, 0])": COLUMN,
    "nl.multiply(one, 2.0)": 2,
    "nl.add(one, one)": 2,
    "nisa.tensor_scalar(one, np.multiply, 2.0)": 2,
}


@pytest.mark.parametrize(
    ("text", "arrays", "expected"),
    [
        (OPTIONAL_TENSOR, (A, COLUMN), A + COLUMN),
        (OPTIONAL_TENSOR, (A,), A * 2),
        (LIST_OF_TILES, (A,), A),
        (COLUMN_OPERAND, (A,), A.max(1, keepdims=True) - A + A * A.max(1, keepdims=True)),
        *[
            (COLUMN_IN_A_TILE.format(value=value), (A, COLUMN), A + factor * COLUMN)
            for value, factor in WIDENED.items()
        ],
        (SUMS_BESIDE_A_RESULT, (A,), np.sum(A.astype(np.float64) ** 2, 1, keepdims=True)),
        (NUMBERS, (A,), 3 * P - 2 * F + 5),
        (SELECTION, (A,), np.where(P <= F - 3, np.where(2 * P + 1 < F, A, -1.0), 0.5)),
        (PICKED_ROWS, (A,), np.roll(A, 8, axis=1)),
        (GRID_AS_INDEX, (A,), A),
        (IN_RANGE, (A, LOW, HIGH), np.where((F + 2 >= LOW) & (F + 2 < HIGH), A, -1.0)),
    ],
    ids=[
        *("tensor given", "tensor left out", "list of tiles", "column", *WIDENED),
        *("sums beside a result", "numbers", "selection"),
        *("picked rows", "grid as index", "in range"),
    ],
)
def test_old_and_new_give_what_numpy_gives(text, arrays, expected, tmp_path):
    old = run(tmp_path / "old.py", HEAD + text, arrays, backend="beta1")
    new = run(tmp_path / "new.py", new_text(text), arrays, backend="beta2", nki="0.6")

    np.testing.assert_array_equal(old, expected)
    np.testing.assert_array_equal(new, expected)


def test_a_tensor_is_asked_for_and_not_for_its_truth():
    after = new_text(OPTIONAL_TENSOR)

    assert "if bias != None:\n" in after
    assert "if bias == None:\n" in after
    assert "if bias:" not in after


def test_a_chosen_tile_is_made_in_the_branch_that_wants_it():
    after = new_text(OPTIONAL_TENSOR)

    assert (
        textwrap.dedent("""\
            if bias != None:
                column = nl.ndarray(""").replace("\n", "\n    ")
        in after
    )
    assert "    else:\n        column = None\n" in after


def test_the_double_row_mode_has_its_new_name():
    after = new_text("""
@nki.jit
def kernel(a, b):
    out = nl.ndarray((4, 16), dtype=nl.float32, buffer=nl.shared_hbm)
    x = nl.ndarray((8, 2, 4), dtype=nl.float8_e4m3, buffer=nl.sbuf)
    y = nl.ndarray((8, 2, 16), dtype=nl.float8_e4m3, buffer=nl.sbuf)
    x[...] = nl.load(a[0:8, 0:2, 0:4])
    y[...] = nl.load(b[0:8, 0:2, 0:16])
    p = nl.zeros((4, 16), dtype=nl.float32, buffer=nl.psum)
    p[...] += nisa.nc_matmul(x, y, perf_mode="double_row_gen3")
    nl.store(out, nl.copy(p))
    return out
""")

    assert "perf_mode=nisa.matmul_perf_mode.double_row" in after


def test_the_shape_of_blocks_is_the_same_where_they_are_folded():
    result = migrate_source(HEAD + LIST_OF_TILES, "k.py", Request(block_dims="fold"))

    assert "blocks.shape" not in result.after
    assert result.kernels[0].complete


@pytest.mark.parametrize("name", ["benchmark", "profile", "baremetal"])
def test_a_name_of_the_old_harness_stops_no_import(name):
    text = f"from neuronxcc.nki import {name}\n\ndef main(k):\n    return {name}(warmup=1)(k)\n"

    assert "import" not in migrate_source(text, "k.py", Request()).after


def test_a_parameter_that_is_rebound_keeps_its_own_rank():
    after = new_text("""
@nki.jit
def kernel(a):
    out = nl.ndarray((4, 2, 16), dtype=a.dtype, buffer=nl.shared_hbm)
    n, m, f, g = a.shape
    a = a.reshape((n * m, f, g))
    for i in nl.affine_range(1):
        tile = nl.load(a[0:4, 0:2, 0:16])
        nl.store(out[0:4, 0:2, 0:16], tile)
    return out
""")

    assert "n, m, f, g = a.shape" in after


def test_a_tile_of_more_dimensions_than_an_instruction_takes_gets_a_todo():
    text = """
@nki.jit
def kernel(a):
    out = nl.ndarray((4, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = nl.load(a[0:4, 0:64], dtype=nl.float32)
    p, b, c, d, e, f = nl.mgrid[0:4, 0:2, 0:2, 0:2, 0:2, 0:4]
    twice = nl.multiply(tile[p, b * 32 + c * 16 + d * 8 + e * 4 + f], 2.0)
    return out
"""
    result = migrate_source(HEAD + text, "k.py", Request())

    assert [f.message for f in result.findings if f.rule == "NKI1153" and not f.applied] == [
        "a tile of 6 dimensions: an instruction takes at most 5"
    ]


def test_a_trace_decorator_of_what_a_kernel_calls_goes():
    text = "@nki.trace(debug=True)\ndef helper(x):\n    return x\n\n"
    text += "@nki.jit\ndef kernel(x):\n    return helper(x)\n"

    assert migrate_source(HEAD + text, "k.py", Request()).after.count("@") == 1


def test_a_trace_decorator_is_jit_where_the_file_knows_nki():
    text = "from neuronxcc.nki import trace\n\n@trace(debug=True)\ndef kernel(x):\n    pass\n"
    after = migrate_source("import neuronxcc.nki as nki\n" + text, "k.py", Request()).after

    assert after.startswith("import nki\n\n@nki.jit\n")
    assert "from nki import trace" in migrate_source(text, "k.py", Request()).after


def test_range_select_keeps_the_default_of_its_version():
    assert "reduce_cmd=nisa.reduce_cmd.idle" in new_text(IN_RANGE)


def test_bounds_of_sequences_have_two_rows():
    after = new_text("""
@nki.jit
def kernel(a):
    out = nl.ndarray((1, 2, 16), dtype=nl.int32, buffer=nl.shared_hbm)
    ids = nl.load(a[0:1, 0:16], dtype=nl.int32)
    nl.store(out, nisa.sequence_bounds(segment_ids=ids))
    return out
""")

    assert "nl.ndarray((1, 2, 16), dtype=nl.int32, buffer=nl.sbuf)" in after
    assert "nisa.sequence_bounds(dst=" in after


def test_sums_of_blocks_that_share_a_psum_tile_are_left_to_a_human():
    text = """
import neuronxcc.nki.compiler as ncc

@nki.jit
def kernel(a):
    out = nl.ndarray((4, 128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    x = nl.load(a[0:128, 0:128])
    sums = nl.zeros((4, nl.par_dim(128), 128), dtype=nl.float32,
                    buffer=ncc.psum.mod_alloc(base_bank=0, num_bank_tiles=(1,)))
    for i in nl.affine_range(4):
        for k in nl.affine_range(2):
            sums[i] += nisa.nc_matmul(x, x)
    for i in nl.affine_range(4):
        nl.store(out[i], nl.copy(sums[i]))
    return out
"""
    result = migrate_source(HEAD + text, "k.py", Request())

    assert "NKI1182" in {f.rule for f in result.findings if not f.applied}
    assert not result.kernels[0].complete
    assert (
        "sums_buffers"
        in migrate_source(
            HEAD + text.replace("+= nisa.nc_matmul(x, x)", "= nl.copy(x)"), "k.py", Request()
        ).after
    )


def test_a_name_of_the_old_namespace_is_left_under_one_todo():
    text = """
from neuronxcc.nki._pre_prod_kernels.blockwise_mm import TILE

@nki.jit
def kernel(x):
    bias = nl.zeros((TILE, 1), dtype=nl.float32, buffer=nl.sbuf)
    return bias
"""
    once = migrate_source(HEAD + text, "k.py", Request(target="0.6")).after

    assert migrate_source(once, "k.py", Request(target="0.6")).after == once
