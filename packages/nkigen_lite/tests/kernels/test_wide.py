"""What is the same for all rows but too wide to lie on every partition; views of many axes."""

from __future__ import annotations

import numpy as np
import pytest

from nkigen_lite.compiler.compile import compile
from nkigen_lite.selection.unsupported import CodegenError


@pytest.mark.parametrize(
    ("shape", "other"),
    [
        ((8, 197, 768), (197, 768)),
        ((3, 200, 200), (200, 200)),
        ((4, 27000), (27000,)),
        ((2, 3, 40, 900), (40, 900)),
        ((2, 60000), (1, 60000)),
    ],
)
def test_a_wide_operand_is_read_with_every_tile(assert_lowers_right, normal, shape, other):
    assert_lowers_right(lambda x, p: (x + p) * 2, normal(*shape), normal(*other, seed=1))


def test_positions_are_rows_where_there_are_few_batches():
    explained = compile(lambda x, p: x + p, "f32[8,197,768]", "f32[197,768]").explain()

    assert "batch 8, rows 197, columns 768" in explained


def test_every_other_element_times_a_table(assert_lowers_right, normal):
    assert_lowers_right(
        lambda x, c: x[..., ::2] * c, normal(2, 1024, 128), normal(1024, 64, seed=1)
    )


def test_the_place_of_the_largest_of_a_vocabulary(assert_lowers_right, normal):
    assert_lowers_right(lambda x: np.argmax(x, -1), normal(3, 32000))


def test_a_bias_of_a_vocabulary(assert_lowers_right, normal):
    a, b, c = normal(1, 40), normal(40, 30000, seed=1), normal(30000, seed=2)

    assert_lowers_right(lambda a, b, c: a @ b + c, a, b, c)


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((2, 3, 2, 3, 2, 3, 2), (6, 1, 4, 2, 5, 3, 0)),
        ((2, 3, 4, 8, 4, 8), (0, 2, 4, 3, 5, 1)),
        ((3, 2, 3, 2, 3, 2), (5, 4, 3, 2, 1, 0)),
        ((2,) * 8, (7, 6, 5, 4, 3, 2, 1, 0)),
    ],
)
def test_transfers_have_at_most_five_axes(assert_lowers_right, normal, shape, axes):
    kernel = assert_lowers_right(lambda x: np.transpose(x, axes), normal(*shape))

    for statement in _calls(kernel.program.body):
        assert all(len(a.shape) <= 5 for a in statement.operands.values() if hasattr(a, "shape"))


def test_a_function_that_only_writes_has_a_kernel():
    def step(p, g):
        p -= 0.5 * g

    p, g = np.ones((130, 4), np.float32), np.full((130, 4), 2, np.float32)

    assert compile(step, p, g)(p, g) is None
    assert not p.any()


def test_arrays_beyond_the_chip_are_rejected_at_once():
    with pytest.raises(CodegenError, match="does not fit HBM") as rejected:
        compile(lambda x: x * 2, "f32[1000000, 1000000]")

    assert "7,450.6 GiB" in str(rejected.value)


def test_constants_are_counted_with_arguments_and_results():
    row = np.random.default_rng(0).standard_normal(2**15).astype(np.float32)
    spec = f"f32[{2**17}, {2**15}]"  # with the result all of the first Trainium's HBM

    assert compile(lambda x: x + 1, spec, target="trn1").stats.dmas
    with pytest.raises(CodegenError, match="does not fit HBM") as rejected:
        compile(lambda x: x + row, spec, target="trn1")

    assert "and 131,072 B of constants" in str(rejected.value)


def _calls(body):
    for statement in body:
        yield from (
            _calls(statement.body)
            if hasattr(statement, "body")
            else ([statement] if hasattr(statement, "operands") else [])
        )


def test_long_rows_of_many_results_are_cut_into_smaller_groups(assert_lowers_right):
    def ranks(x):
        totals = np.cumsum(x, 1)
        whole = np.floor(totals / 3)
        rest = whole % 7
        blocks = np.cumsum(rest.reshape(2, -1, 5), 2)
        narrow = whole.astype(np.int32), rest.astype(np.int16), np.trunc(totals).astype(np.int8)
        return *narrow, rest > whole, blocks

    x = np.random.default_rng(0).integers(-3, 9, (2, 3000)).astype(np.float32)
    assert_lowers_right(ranks, x)


def test_scales_that_rows_share_are_computed_before_the_rows_are_read():
    def modulated(x, c, w):
        scale, shift = np.split(c @ w, 2, -1)
        h = (x - x.mean(-1, keepdims=True)) * (1 + scale[:, None]) + shift[:, None]
        return x + np.tanh(h)

    kernel = compile(modulated, "f32[2,256,384]", "f32[2,64]", "f32[64,768]")

    assert [len(g.nodes) for g in kernel.plan.groups] == [1, 1, 7]  # the product, 1 + scale, rows
