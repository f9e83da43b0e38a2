"""What an observed run adds: ranks, dtypes and equal sizes, never a size as a number."""

from __future__ import annotations

import numpy as np
import pytest

import nki_runtime
from nki_migrate.engine.migration import migrate_source
from nki_migrate.facts.observed import Observed, facts_of
from nki_migrate.settings.request import Request
from nki_runtime import recording

HEAD = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import neuronxcc.nki.isa as nisa

"""


@pytest.fixture
def migrated(tmp_path):
    """The result of a migration after launches of `kernel`, one for each tuple of arguments."""

    def migrate(text, *launches, grid=None):
        file = tmp_path / "observed_kernel.py"
        file.write_text(HEAD + text)
        documents = []
        with nki_runtime.use(backend="beta1", shadow=True), recording.instrumented():
            kernel = recording.load(file).kernel
            kernel = kernel if grid is None else kernel[grid]
            for arguments in launches:
                with recording.recorded(documents, tmp_path):
                    kernel(*arguments)
        facts = sum((facts_of(d, "facts") for d in documents), Observed())
        return migrate_source(HEAD + text, file.name, Request(observed=facts))

    return migrate


def _array(*shape, dtype=np.float32):
    return np.ones(shape, dtype)


def _open(result):
    return [f.message for f in result.findings if not f.applied]


HELPER = """\
def load(x):
    return nl.load(x), 0

@nki.jit
def kernel(x, y):
    a, _ = load(x)
    b, _ = load(y)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.add(a, b, dtype=nl.float32))
    return out
"""


def test_nothing_is_known_of_what_a_helper_returns(migrated):
    assert _open(migrated(HELPER)) == ["the shapes of `a` and `b` are not known to be equal"]


def test_a_run_shows_it_and_the_sizes_are_the_kernel_s_own_words(migrated):
    result = migrated(HELPER, (_array(128, 64), _array(128, 64)))

    assert _open(result) == []
    assert "nl.ndarray(a.shape, dtype=nl.float32, buffer=nl.sbuf)" in result.after
    basis = {fact for f in result.findings if f.rule == "NKI1220" for fact in f.basis}
    assert "observed in 1 run: `a` has 2 dimensions" in basis
    assert "64" not in result.after


def test_a_second_run_with_other_sizes_confirms_it(migrated):
    pair = (_array(128, 64), _array(128, 64))

    assert _open(migrated(HELPER, pair, (_array(64, 32), _array(64, 32)))) == []


def test_a_column_in_every_run_is_an_operand_under_an_assert(migrated):
    result = migrated(HELPER, (_array(128, 64), _array(128, 1)))

    assert _open(result) == []
    assert "assert b.shape[1] == 1" in result.after
    assert "nisa.tensor_scalar(" in result.after


def test_runs_that_disagree_leave_it_open(migrated):
    same, column = (_array(128, 64), _array(128, 64)), (_array(128, 64), _array(128, 1))

    assert len(_open(migrated(HELPER, same, column))) == 1


PROMOTION = """\
@nki.jit
def kernel(x, y):
    a = nl.load(x[0:128, 0:64])
    b = nl.load(y[0:128, 0:64])
    c = nl.exp(a * b)
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, c)
    return out
"""


def test_equal_dtypes_are_asserted(migrated):
    half = _array(128, 64, dtype=np.float16)
    result = migrated(PROMOTION, (half, half))

    assert _open(result) == []
    assert "assert x.dtype == y.dtype" in result.after
    assert "nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)" in result.after


def test_the_wider_dtype_is_asserted(migrated):
    result = migrated(PROMOTION, (_array(128, 64, dtype=np.float16), _array(128, 64)))

    assert _open(result) == []
    assert "assert y.dtype == nl.float32" in result.after


def test_dtypes_that_changed_between_runs_stay_open(migrated):
    half, full = _array(128, 64, dtype=np.float16), _array(128, 64)

    assert len(_open(migrated(PROMOTION, (half, full), (half, half), (full, half)))) == 1


def test_an_assert_of_a_statement_that_is_left_is_written_by_the_next(migrated):
    text = PROMOTION.replace("nl.exp(a * b)", "nl.ceil(a * b)").replace(
        "nl.store(out, c)", "nl.store(out, a * b)"
    )
    half = _array(128, 64, dtype=np.float16)
    result = migrated(text, (half, half))

    assert len(_open(result)) == 1
    assert result.after.index("assert x.dtype == y.dtype") > result.after.index("nl.ceil")


NUMBER = """\
@nki.jit
def kernel(x, scale):
    a = nl.load(x[0:128, 0:64])
    b = nl.exp(a * scale)
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    nl.store(out, b)
    return out
"""


def test_a_parameter_that_was_a_float_makes_float32(migrated):
    result = migrated(NUMBER, (_array(128, 64, dtype=np.float16), 0.5))

    assert _open(result) == []
    assert "nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)" in result.after


def test_a_parameter_that_was_an_int_keeps_a_floating_dtype_under_an_assert(migrated):
    result = migrated(NUMBER, (_array(128, 64, dtype=np.float16), 2))

    assert _open(result) == []
    assert "assert x.dtype in (nl.bfloat16, nl.float16, nl.float32)" in result.after


BLOCKS = """\
def fill(blocks, x):
    for i in nl.affine_range(2):
        blocks[i] = nl.load(x[i])

def total(blocks):
    first = nl.copy(blocks[0])
    return nl.add(first, blocks[1])

@nki.jit
def kernel(x):
    blocks = nl.ndarray((2, nl.par_dim(128), 64), dtype=x.dtype, buffer=nl.sbuf)
    fill(blocks, x)
    result = total(blocks)
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, result)
    return out
"""


def test_block_dimensions_reach_a_helper_as_a_list_of_tiles(migrated):
    result = migrated(BLOCKS, (_array(2, 128, 64),))

    assert _open(result) == []
    assert "dst=blocks[i], src=x[i]" in result.after
    assert "blocks.dtype" not in result.after
    assert "dtype=blocks[0].dtype" in result.after


ATTRIBUTES = """\
class Sizes:
    rows = 128

@nki.jit
def kernel(x):
    sizes = Sizes()
    i = nl.arange(sizes.rows)[:, None]
    j = nl.arange(64)[None, :]
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out[i, j], nl.load(x[i, j]))
    return out
"""


def test_a_whole_number_of_unknown_origin_keeps_its_own_words(migrated):
    result = migrated(ATTRIBUTES, (_array(128, 64),))

    assert _open(result) == []
    assert "0:sizes.rows" in result.after


POOL = """\
class Pool:
    def __init__(self):
        self.at = 0

    def take(self, size):
        found = nki.compiler.sbuf.mod_alloc(base_addr=self.at)
        self.at += size
        return found

pool = Pool()

@nki.jit
def kernel(x):
    tile = nl.ndarray((nl.par_dim(128), 64), dtype=x.dtype, buffer=pool.take(256))
    tile[...] = nl.load(x)
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out, tile)
    return out
"""


def test_a_buffer_of_the_program_s_own_is_where_the_run_had_it(migrated):
    result = migrated(POOL, (_array(128, 64),))

    assert "tile = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)" in result.after


def test_without_a_run_it_stays(migrated):
    assert any("buffer" in message for message in _open(migrated(POOL)))


PROGRAMS = """\
@nki.jit
def kernel(x):
    row = nl.program_id(0)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out[row, 0:128, 0:8], nl.load(x[row, 0:128, 0:8]))
    return out
"""


PROGRAM_BLOCKS = """\
@nki.jit
def kernel(x):
    rows, cols = x.shape
    i, j = nl.program_id(0), nl.program_id(1)
    out = nl.ndarray((rows, cols), dtype=x.dtype, buffer=nl.shared_hbm)
    p, f = i * 128 + nl.arange(128)[:, None], j * 32 + nl.arange(32)[None, :]
    tile = nl.load(x[p, f], mask=(f < cols))
    nl.store(out[p, f], tile, mask=(f < cols))
    return out
"""


def test_the_id_of_one_of_two_programs_is_a_core_number(migrated):
    result = migrated(PROGRAMS, (_array(2, 128, 8),), grid=2)

    assert _open(result) == []
    assert [f.severity.name for f in result.findings if f.rule == "NKI1119"] == ["NOTE"]


WITHOUT_GRID = """\
@nki.jit
def kernel(x):
    axes = nl.program_ndim()
    row = 0 if axes == 0 else nl.program_id(0)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    if axes == 1 and nl.num_programs(axes=0) > 1:
        nl.store(out[1], nl.load(x[1]))
    nl.store(out[row], nl.load(x[row]))
    return out
"""


def test_a_launch_without_a_grid_says_how_many_programs_there_are(migrated):
    array = _array(1, 128, 8)
    alone, two = migrated(WITHOUT_GRID, (array,)), migrated(WITHOUT_GRID, (array,), grid=1)

    assert _open(migrated(WITHOUT_GRID)) != []
    for result in (alone, two):
        assert _open(result) == []
        assert {f.severity.name for f in result.findings if f.rule == "NKI1119"} == {"NOTE"}


OUTPUT = """\
@nki.jit(kernel_return=False)
def kernel(x, out):
    for k in range(2):
        if k == x.shape[0]:
            nl.store(out[k], nl.load(x[k]))
        else:
            nl.store(out[0], nl.load(x[0]))
"""


def test_a_run_shows_what_callers_take_for_stores_that_it_passed_by(migrated):
    assert any("callers" in f.assumption for f in migrated(OUTPUT).findings if f.assumption)
    assert _open(migrated(OUTPUT, (_array(3, 128, 8), _array(3, 128, 8)))) == []


CALLED = """\
@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(out[0], nl.load(x[0]))
    return out

@nki.jit
def other(x):
    return kernel(x)
"""


def test_a_kernel_that_a_run_launched_stays_one_where_kernels_call_it(migrated):
    assert "def kernel(x):\n    return kernel_body(x)" not in migrated(CALLED).after
    result = migrated(CALLED, (_array(1, 128, 8),))

    assert _open(result) == []
    assert "@nki.jit\ndef kernel(x):\n    return kernel_body(x)" in result.after
    assert "def other(x):\n    return kernel_body(x)" in result.after


def test_programs_that_cover_the_result_are_a_loop(migrated):
    result = migrated(PROGRAMS, (_array(3, 128, 8),), grid=3)

    assert _open(result) == []
    assert "for row in range(x.shape[0]):" in result.after


def test_programs_of_blocks_that_cover_the_result_are_loops(migrated):
    result = migrated(PROGRAM_BLOCKS, (_array(256, 96),), grid=(2, 3))

    assert _open(result) == []
    assert "for i in range((x.shape[0] + 127) // 128):" in result.after
    assert "for j in range((x.shape[1] + 31) // 32):" in result.after


@pytest.mark.parametrize(
    ("text", "shape", "grid"),
    [(PROGRAMS, (4, 128, 8), 3), (PROGRAM_BLOCKS, (256, 96), (2, 2))],
)
def test_programs_that_cover_less_are_left(migrated, text, shape, grid):
    messages = _open(migrated(text, (_array(*shape),), grid=grid))

    assert any("turn the axis into a loop" in message for message in messages)


def test_a_number_of_numpy_s_is_no_tile(migrated):
    text = """\
@nki.jit
def kernel(x):
    SCALE = np.float32(1.0 / 8)
    a = nl.load(x)
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    b = nisa.tensor_scalar(data=a, op0=nl.multiply, operand0=SCALE, dtype=np.float32)
    nl.store(out, b)
    return out
"""
    after = migrated("import numpy as np\n" + text, (_array(128, 8),)).after

    assert "operand0=SCALE" in after


BANKS = """\
@nki.jit
def kernel(x):
    n = x.shape[0]
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray((n, nl.par_dim(128), 128), dtype=nl.float32, buffer=nl.psum)
    for i in nl.affine_range(n):
        a = nl.load(x[i, 0:128, 0:128])
        t[i] = nisa.nc_matmul(a, a)
    for i in nl.affine_range(n):
        nl.store(out[i], nl.copy(t[i]))
    return out
"""


@pytest.mark.parametrize(("blocks", "memory"), [(8, "psum"), (9, "sbuf")])
def test_a_list_of_more_tiles_than_banks_is_in_sbuf(migrated, blocks, memory):
    after = migrated(BANKS, (_array(blocks, 128, 128),)).after

    assert f"t.append(nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.{memory}))" in after


def test_sums_of_products_stay_in_psum(migrated):
    sums = BANKS.replace("t[i] = nisa", "t[i] += nisa")

    after = migrated(sums, (_array(9, 128, 128),)).after

    assert "t.append(nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum))" in after


def test_a_size_that_a_function_counts_is_a_number_under_its_name(migrated):
    text = """\
def count(sizes):
    total = 1
    for size in sizes:
        total = total * size
    return total

@nki.jit
def kernel(x):
    sizes = (count(x.shape[:-1]), x.shape[-1])
    out = nl.ndarray(sizes, dtype=x.dtype, buffer=nl.shared_hbm)
    i, j = nl.mgrid[0:128, 0:64]
    t = nl.load(x[i, j], mask=(i < sizes[0]) & (j < sizes[1]))
    nl.store(out[i, j], t, mask=(i < sizes[0]) & (j < sizes[1]))
    return out
"""
    result = migrated(text, (_array(100, 40),))

    assert _open(result) == []
    assert "min(128, sizes[0])" in result.after


BUILT = """
def build(count, block):
    rows = count * block
    i, j = nl.arange(rows)[:, None], nl.arange(block)[None, :]

    @nki.jit
    def inner(x):
        out = nl.ndarray((block, rows), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, nl.load_transpose2d(x[i, j]))
        return out

    return inner

kernel = build(COUNT, 16)
"""


@pytest.mark.parametrize("count", [2, 9])
def test_a_transposing_load_of_sizes_without_a_name_is_as_large_as_it_was(migrated, count):
    result = migrated(BUILT.replace("COUNT", str(count)), (_array(16 * count, 16),))

    expected = "a transposing load of what is not known to fit the tensor engine, 128 by 128"
    assert _open(result) == ([] if count == 2 else [expected])
