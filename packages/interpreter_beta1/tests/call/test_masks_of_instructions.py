"""mask= on every instruction: the result where the mask selects, what was there elsewhere, or a
rejection that names the mask.
"""

import numpy as np
import pytest

from neuroncore.errors import KernelError
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.surface import instruction_names, signature
from nki_beta1 import nisa, nki, nl

ULP = 2.0**-23  # of float32: functions are within 4, short sums of numbers near 1 within 16

P, F = 64, 16
LEAST = float(np.finfo(np.float32).min)
ROWS, COLUMNS = np.mgrid[0:P, 0:F]
MASKS = {
    "rows": (lambda i, j: i < 32, np.s_[:32, :]),
    "columns": (lambda i, j: j < 12, np.s_[:, :12]),
    "a corner": (lambda i, j: (i >= 32) & (j < 8), np.s_[32:, :8]),
    "nothing": (lambda i, j: j < 0, np.s_[:0, :0]),
    "everything": (lambda i, j: j < 99, np.s_[:, :]),
}
TRIANGLE = (lambda i, j: i >= j, ROWS >= COLUMNS)


def stored(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=nl.copy(tile))
    return out


def sevens(shape, dtype=nl.float32):
    return nl.full(shape, 7, dtype=dtype)


def row_major(part, shape):
    """`part` of a (P, F) operand, as the elements of a result of `shape`."""
    rows = np.arange(P)[part[0]]
    inside = np.zeros(shape, bool)
    if part[1] != slice(0, 0):
        inside[rows] = True
    return inside


def same(part):
    inside = np.zeros((P, F), bool)
    inside[part] = True
    return inside


def _top(a, n=8):
    return -np.sort(-a, axis=1)[:, :n]


def _places(a, vals):
    return np.argmax(a[:, None, :] == vals[:, :, None], axis=2)


def _find(x, y, m):
    return nisa.nc_find_index8(data=x, vals=nisa.max8(src=x[:, 0:8]), mask=m)


def _replaced(a, vals, places=False):
    at = _places(a, vals)
    out = a.copy()
    np.put_along_axis(out, at, -1.0, axis=1)
    return at if places else out


def _statistics(a):
    even, odd = a[:, ::2], a[:, 1::2]
    columns = []
    for half in (even, odd):
        columns += [0 * half[:, 0] + half.shape[1], half.mean(1), half.var(1) * half.shape[1]]
    return np.stack(columns, axis=1)


def _scan(x, y):
    state, out = np.zeros(len(x)), np.zeros_like(x)
    for n in range(x.shape[1]):
        state = out[:, n] = x[:, n] * state + y[:, n]
    return out


def one(tile):
    return tile[:, 0:1]


# name: (kernel's call, the same on NumPy arrays cut by the mask, shape of the result or None for
# that of the operand)
RECTANGULAR = {
    "activation": (lambda x, y, m: nisa.activation(nl.exp, x, bias=one(y), mask=m),
                   lambda x, y, c: np.exp(x + c), None),
    "activation_reduce": (
        lambda x, y, m: nisa.activation_reduce(
            nl.square, x, reduce_op=np.add, reduce_res=sevens((P, 1)), mask=m),
        lambda x, y, c: x * x, None),
    "affine_select": (
        lambda x, y, m: nisa.affine_select(
            nl.arange(P)[:, None] >= nl.arange(F)[None, :], x, -2.0, mask=m),
        lambda x, y, c: x, None),
    "bn_stats": (lambda x, y, m: nisa.bn_stats(x, mask=m), lambda x, y, c: _statistics(x), 6),
    "dropout": (lambda x, y, m: nisa.dropout(x, 0.0, mask=m), lambda x, y, c: x, None),
    "max8": (lambda x, y, m: nisa.max8(src=x, mask=m), lambda x, y, c: _top(x), 8),
    "nc_find_index8": (_find, lambda x, y, c: x, 8),
    "nc_match_replace8": (
        lambda x, y, m: nisa.nc_match_replace8(
            data=x, vals=nisa.max8(src=x[:, 0:8]), imm=-1.0, mask=m),
        lambda x, y, c: x, None),
    "range_select": (
        lambda x, y, m: nisa.range_select(
            on_true_tile=x, comp_op0=np.greater_equal, comp_op1=np.less, bound0=sevens((P, 1)),
            bound1=nl.full((P, 1), 10, dtype=nl.float32), range_start=0, on_false_value=LEAST,
            reduce_cmd=nisa.reduce_cmd.reset_reduce, reduce_res=sevens((P, 1)), reduce_op=np.max,
            mask=m),
        lambda x, y, c: np.where((np.arange(x.shape[1]) >= 7) & (np.arange(x.shape[1]) < 10), x,
                                 LEAST), None),
    "reciprocal": (lambda x, y, m: nisa.reciprocal(x, mask=m), lambda x, y, c: 1 / x, None),
    "scalar_tensor_tensor": (
        lambda x, y, m: nisa.scalar_tensor_tensor(
            data=x, op0=np.multiply, operand0=one(y), op1=np.add, operand1=y, mask=m),
        lambda x, y, c: x * c + y, None),
    "tensor_copy": (lambda x, y, m: nisa.tensor_copy(x, mask=m), lambda x, y, c: x, None),
    "tensor_scalar": (
        lambda x, y, m: nisa.tensor_scalar(
            x, np.multiply, one(y), op1=np.add, operand1=1.0, mask=m),
        lambda x, y, c: x * c + 1, None),
    "tensor_scalar_reduce": (
        lambda x, y, m: nisa.tensor_scalar_reduce(
            data=x, op0=np.multiply, operand0=one(y), reduce_op=np.add,
            reduce_res=sevens((P, 1)), mask=m),
        lambda x, y, c: x * c, None),
    "tensor_tensor": (lambda x, y, m: nisa.tensor_tensor(x, y, np.add, mask=m),
                      lambda x, y, c: x + y, None),
    "tensor_tensor_scan": (
        lambda x, y, m: nisa.tensor_tensor_scan(x, y, initial=0, op0=np.multiply, op1=np.add,
                                                mask=m),
        lambda x, y, c: _scan(x, y), None),
}  # fmt: skip

# References that need the whole operands. The eight values are in all parts but the empty one.
_WHOLE = {
    "affine_select": lambda x, y, part: np.where(ROWS >= COLUMNS, x, -2)[part],
    "nc_find_index8": lambda x, y, part: _replaced(x[part], _top(x[:, :8])[part[0]], True),
    "nc_match_replace8": lambda x, y, part: _replaced(x[part], _top(x[:, :8])[part[0]]),
}


@pytest.fixture
def arrays(rng):
    """Every element of x is different."""
    return (rng.permutation(P * F).reshape(P, F) / 512 + 0.5).astype(np.float32), rng.integers(
        1, 4, (P, F)
    ).astype(np.float32)


def run(call, arrays, mask, shape, dtype=nl.float32):
    """What `call` writes over a tile of sevens."""

    @nki.jit
    def kernel(x, y):
        i, j = nl.arange(P)[:, None], nl.arange(F)[None, :]
        result = sevens(shape, dtype)
        result[...] = call(nl.load(x), nl.load(y), mask(i, j))
        return stored(result)

    return kernel(*arrays)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", RECTANGULAR)
def test_a_rectangle_is_computed_and_the_rest_stays(name, mask, arrays):
    call, reference, columns = RECTANGULAR[name]
    select, part = MASKS[mask]
    x, y = arrays
    shape = (P, columns or F)
    inside = row_major(part, shape) if columns else same(part)
    expected = np.full(shape, 7, np.float64)
    if inside.any():
        one_per_row = y[:, :1][part[0]].astype(np.float64)
        found = (
            _WHOLE[name](x, y, part)
            if name in _WHOLE
            else reference(x[part].astype(np.float64), y[part].astype(np.float64), one_per_row)
        )
        expected[inside] = found.reshape(-1)

    result = run(call, arrays, select, shape)

    np.testing.assert_allclose(result, expected, rtol=16 * ULP, atol=8 * ULP)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", ["nc_transpose", "dma_transpose"])
def test_a_transposed_rectangle_lies_where_its_elements_go(name, mask, arrays):
    select, part = MASKS[mask]
    function = getattr(nisa, name)
    expected = np.where(same(part), arrays[0], 7).T

    result = run(lambda x, y, m: function(x, mask=m), arrays, select, (F, P))

    np.testing.assert_array_equal(result, expected)


def test_a_transpose_of_rank_3_exchanges_the_ends():
    x = np.arange(16 * 2 * 32, dtype=np.float32).reshape(16, 2, 32)

    @nki.jit
    def kernel(x):
        result = sevens((32, 2, 16))
        columns = nl.arange(32)[None, None, :]
        result[...] = nisa.dma_transpose(nl.load(x), mask=columns < 20)
        return stored(result)

    expected = np.full((32, 2, 16), 7, np.float32)
    expected[:20] = x.transpose(2, 1, 0)[:20]
    np.testing.assert_array_equal(kernel(x), expected)


REDUCTIONS = {"add": np.add, "maximum": np.maximum}
BITS = {"bitwise_or": np.bitwise_or, "bitwise_and": np.bitwise_and}


def _reduced(name, ufunc, x, inside, axis):
    """`ufunc` of what is inside, along an axis; sevens where nothing is."""
    identity = {"add": 0, "maximum": -np.inf, "bitwise_or": 0, "bitwise_and": 255}[name]
    filled = np.where(inside, x.astype(np.float64), identity)
    if name in BITS:
        filled = filled.astype(np.int64)
    found = ufunc.reduce(filled, axis=axis, keepdims=True)
    return np.where(inside.any(axis=axis, keepdims=True), found, 7)


@pytest.mark.parametrize("mask", [*MASKS, "a triangle"])
@pytest.mark.parametrize("op", [*REDUCTIONS, *BITS])
@pytest.mark.parametrize("name", ["tensor_reduce", "tensor_partition_reduce"])
def test_a_reduction_takes_what_the_mask_selects(name, op, mask, arrays, rng):
    ufunc, axis = (REDUCTIONS | BITS)[op], 1 if name == "tensor_reduce" else 0
    select = TRIANGLE[0] if mask == "a triangle" else MASKS[mask][0]
    inside = TRIANGLE[1] if mask == "a triangle" else same(MASKS[mask][1])
    kind = np.uint8 if op in BITS else np.float32
    x = rng.integers(0, 200, (P, F)).astype(kind)

    def call(x, y, m):
        if axis:
            return nisa.tensor_reduce(ufunc, x, axis=1, keepdims=True, mask=m)
        return nisa.tensor_partition_reduce(ufunc, x, mask=m)

    result = run(call, (x, x), select, (P, 1) if axis else (1, F), kind)

    np.testing.assert_array_equal(result, _reduced(op, ufunc, x, inside, axis))


SUMS = {
    "activation_reduce": (
        lambda x, y, m, sums: nisa.activation_reduce(
            nl.square, x, reduce_op=np.add, reduce_res=sums, mask=m),
        lambda x, c: (x * x).sum(1)),
    "tensor_scalar_reduce": (
        lambda x, y, m, sums: nisa.tensor_scalar_reduce(
            data=x, op0=np.multiply, operand0=one(y), reduce_op=np.add, reduce_res=sums, mask=m),
        lambda x, c: (x * c).sum(1)),
    "range_select": (
        lambda x, y, m, sums: nisa.range_select(
            on_true_tile=x, comp_op0=np.greater_equal, comp_op1=np.less,
            bound0=nl.zeros((P, 1), dtype=nl.float32), bound1=nl.full((P, 1), 99, dtype=nl.float32),
            range_start=0, on_false_value=LEAST, reduce_cmd=nisa.reduce_cmd.reset_reduce,
            reduce_res=sums, reduce_op=np.max, mask=m),
        lambda x, c: x.max(1)),
}  # fmt: skip


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", SUMS)
def test_a_second_result_has_the_rows_of_the_mask(name, mask, arrays):
    call, reference = SUMS[name]
    select, part = MASKS[mask]
    x, y = (a.astype(np.float64) for a in arrays)
    expected = np.full((P, 1), 7.0)
    if mask != "nothing":
        expected[part[0], 0] = reference(x[part], y[:, :1][part[0]])

    def body(x, y, m):
        sums = sevens((P, 1))
        rest = call(x, y, m, sums)
        nl.copy(rest)
        return sums

    np.testing.assert_allclose(run(body, arrays, select, (P, 1)), expected, rtol=16 * ULP)


# Instructions that name their destination.
def _select_reduce(x, y, m):
    result = sevens((P, F))
    nisa.select_reduce(dst=result, predicate=nl.copy(y > 1.5, dtype=nl.uint8), on_true=x,
                       on_false=-4.0, mask=m)  # fmt: skip
    return result


def _predicated(x, y, m):
    result = sevens((P, F))
    nisa.tensor_copy_predicated(dst=result, src=x, predicate=nl.copy(y > 1.5, dtype=nl.uint8),
                                mask=m)  # fmt: skip
    return result


def _copied(x, y, m):
    result = sevens((P, F))
    nisa.dma_copy(dst=result, src=x, mask=m)
    return result


INTO = {
    "select_reduce": (_select_reduce, lambda x, y: np.where(y > 1.5, x, -4)),
    "tensor_copy_predicated": (_predicated, lambda x, y: np.where(y > 1.5, x, 7)),
    "dma_copy": (_copied, lambda x, y: x),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", INTO)
def test_a_destination_is_written_where_the_mask_selects(name, mask, arrays):
    call, reference = INTO[name]
    select, part = MASKS[mask]

    result = run(call, arrays, select, (P, F))

    np.testing.assert_array_equal(result, np.where(same(part), reference(*arrays), 7))


def test_a_mask_on_columns_of_eight_does_not_cut_eight_values(arrays):
    """Where data has as many columns as there are values."""
    x = arrays[0][:, :8]

    @nki.jit
    def kernel(x):
        i = nl.arange(P)[:, None]
        data = nl.load(x)
        top, found = sevens((P, 8)), nl.full((P, 8), 7, dtype=nl.uint32)
        top[...] = nisa.max8(src=data, mask=i < 32)
        found[...] = nisa.nc_find_index8(data=data, vals=nisa.max8(src=data), mask=i < 32)
        return stored(top), stored(found)

    top, found = kernel(x)
    inside = np.arange(P)[:, None] < 32
    np.testing.assert_array_equal(top, np.where(inside, _top(x), 7))
    np.testing.assert_array_equal(found, np.where(inside, _places(x, _top(x)), 7))


# -- rejections ------------------------------------------------------------------------------------

REJECT_TRIANGLES = {
    **{n: RECTANGULAR[n][0] for n in RECTANGULAR
       if INSTRUCTIONS[n].mask.value == "rectangular"},
    **{n: call for n, (call, _) in INTO.items() if n != "dma_copy"},
    "nc_transpose": lambda x, y, m: nisa.nc_transpose(x, mask=m),
    "dma_transpose": lambda x, y, m: nisa.dma_transpose(x, mask=m),
    "bn_aggr": lambda x, y, m: nisa.bn_aggr(x[:, 0:12], mask=m),
    "nc_matmul": lambda x, y, m: nisa.nc_matmul(x, y, mask=m),
    "tensor_reduce": lambda x, y, m: nisa.tensor_reduce(np.subtract, x, axis=1, mask=m),
}  # fmt: skip
REJECT_ALL = {
    "local_gather": lambda x, y, m: nisa.local_gather(
        x, nl.zeros((P, 1), dtype=nl.uint16), mask=m),
    "nc_stream_shuffle": lambda x, y, m: nisa.nc_stream_shuffle(
        x, sevens((P, F)), [0] * 32, mask=m),
}  # fmt: skip


@pytest.mark.parametrize("name", REJECT_TRIANGLES)
def test_a_triangle_is_rejected_by_name(name, arrays):
    with pytest.raises(KernelError, match="mask") as caught:
        run(REJECT_TRIANGLES[name], arrays, TRIANGLE[0], (P, F))
    assert "^" in str(caught.value)


@pytest.mark.parametrize("name", REJECT_ALL)
def test_instructions_without_a_meaning_for_masks_reject_them(name, arrays):
    with pytest.raises(KernelError, match="mask"):
        run(REJECT_ALL[name], arrays, MASKS["rows"][0], (P, F))


def _takes_a_mask(name):
    known = signature(name, "0.1")
    return name in INSTRUCTIONS and known is not None and "mask" in {p.name for p in known.params}


def test_every_instruction_with_a_mask_is_tried_here_or_with_its_own_tests():
    elsewhere = {
        "iota", "memset",  # test_instruction_masks, test_masked_updates
        "tensor_copy_dynamic_src", "tensor_copy_dynamic_dst",  # test_dynamic_copies
    }  # fmt: skip
    tried = {*RECTANGULAR, *INTO, *REJECT_TRIANGLES, *REJECT_ALL, *elsewhere}
    tried |= {"tensor_partition_reduce"}
    assert set(filter(_takes_a_mask, instruction_names("0.1"))) == tried
