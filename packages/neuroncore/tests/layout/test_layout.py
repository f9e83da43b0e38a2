"""Layouts against their addresses, one index after the other."""

from __future__ import annotations

import doctest
import random
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from neuroncore.layout import Layout, Swizzle, descriptor, factors, swizzle

# No clock decides: the same examples every time, however slow the machine.
CASES = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))

ROWS = Layout.of((8, 64), swizzle=Swizzle.xor(bits=3, base=3, shift=3))
"""8 rows of 64, chunks of 8 swapped by the row: what shared memories use."""


def told(layout):
    """Every address, from the definition: digits, strides, bits."""

    def step(factors, index):
        total = 0
        for n, s in reversed(factors):
            total += index % n * s
            index //= n
        return total

    def moved(address):
        columns = enumerate(layout.swizzle.columns)
        found = address ^ layout.swizzle.constant
        for bit, column in columns:
            if address >> bit & 1:
                found ^= column ^ 1 << bit
        return found

    shape = [prod(n for n, _ in factors) for factors in layout.dims]
    return {
        index: moved(layout.offset + sum(map(step, layout.dims, index)))
        for index in product(*map(range, shape))
    }


def legal(*args):
    try:
        return Layout(*args)
    except ValueError:
        return None


SWIZZLES = st.tuples(
    *(st.integers(1 << k, (2 << k) - 1) for k in range(6)), st.integers(0, 63)
).map(lambda drawn: Swizzle(drawn[:-1], drawn[-1]))


@st.composite
def layouts(draw):
    """Swizzled ones whose low steps are distinct address bits in any order, or plain ones."""
    ranks, offset = draw(st.integers(1, 3)), draw(st.integers(0, 3)) << 6
    if draw(st.booleans()):
        factor = st.tuples(st.integers(1, 4), st.integers(-9, 40))
        digits = draw(st.lists(factor, max_size=4))
        dims = [tuple(digits[at::ranks]) for at in range(ranks)]
        return Layout(tuple(dims), offset)
    steps = [1 << bit for bit in draw(st.permutations(range(7)))][: draw(st.integers(1, 6))]
    high = st.sampled_from([0, 0, 64, 640])
    above = draw(
        st.sampled_from([(), ((3, 64),), ((3, 192),), ((3, -64),), ((2, 9 << 6), (3, 64))])
    )
    dims = [tuple((2, step + draw(high)) for step in steps[at::ranks]) for at in range(ranks)]
    dims[0] = above + dims[0]
    offset += draw(st.integers(0, 63)) & ~sum(steps)
    return Layout(tuple(dims), offset, draw(SWIZZLES))


@given(layouts())
@settings(CASES)
def test_all_addresses_and_single_ones_are_those_of_the_definition(layout):
    wanted = told(layout)
    found = layout.addresses()
    assert found.shape == layout.shape
    assert {index: int(found[index]) for index in wanted} == wanted
    assert {index: layout.address(index) for index in wanted} == wanted


# -- canonical form -------------------------------------------------------------------------------


@given(layouts())
@settings(CASES, max_examples=400)
def test_the_canonical_form_means_the_same_and_is_its_own(layout):
    found = layout.canonical()
    assert told(found) == told(layout)
    assert found.canonical() == found
    assert layout.same_as(found)


def families():
    """Small descriptors of every kind, many of which mean the same."""
    swizzles = [
        Swizzle(columns, constant)
        for columns in product((1,), (2, 3), (4, 5, 6, 7))
        for constant in (0, 1, 4, 6)
    ]
    strides = [0, 1, 2, 3, 4, 5, 8, 9, 12, -1]
    for (a, b), offset, moved in product(product(strides, strides), (0, 1, 4, 9), swizzles):
        yield (((2, a),), ((2, b),)), offset, moved
        yield (((2, a), (2, b)),), offset, moved
    for (a, b), offset in product(product(strides, strides), (0, 4)):
        for moved in (Swizzle(), *swizzles):
            yield (((3, a), (2, b)),), offset, moved
            yield (((2, a), (3, b)),), offset, moved
    for a, moved in product(strides, swizzles):
        yield (((4, a),),), 0, moved
        yield (((6, a),),), 8, moved


def test_two_layouts_have_one_canonical_form_exactly_when_they_mean_the_same():
    forms: dict[tuple, set[Layout]] = {}
    meanings: dict[Layout, set[tuple]] = {}
    for args in families():
        layout = legal(*args)
        if layout is not None:
            meaning = (layout.shape, *layout.addresses().ravel().tolist())
            forms.setdefault(meaning, set()).add(layout.canonical())
            meanings.setdefault(layout.canonical(), set()).add(meaning)

    assert len(forms) > 1000
    assert {m: f for m, f in forms.items() if len(f) != 1} == {}
    assert {f: m for f, m in meanings.items() if len(m) != 1} == {}


def additive_and_mixed_radix(layout):
    """Whether strides alone could say it: decided from the addresses."""
    table = layout.addresses()
    origin = int(table.flat[0])
    axes = []
    for dim in range(table.ndim):
        index = [0] * table.ndim
        index[dim] = slice(None)
        axes.append(table[tuple(index)] - origin)
    total = sum(np.ix_(*axes)) if len(axes) > 1 else axes[0]
    return np.array_equal(table, total + origin) and all(map(mixed_radix, axes))


def mixed_radix(steps):
    """Whether steps are digits times strides: runs of one stride, repeated at one more."""
    if len(steps) == 1:
        return True
    stride = steps[1]
    run = next((i for i, s in enumerate(steps) if s != i * stride), len(steps))
    if len(steps) % run:
        return False
    blocks = steps.reshape(-1, run)
    return np.array_equal(blocks, blocks[:, :1] + np.arange(run) * stride) and mixed_radix(
        blocks[:, 0]
    )


def test_a_swizzle_is_gone_exactly_where_strides_can_say_it():
    fits = {True: 0, False: 0}
    for args in families():
        layout = legal(*args)
        if layout is not None:
            wanted = additive_and_mixed_radix(layout)
            assert layout.fits_view().fits is wanted, layout
            fits[wanted] += 1
    assert min(fits.values()) > 100


def test_a_tiled_dimension_that_continues_is_a_plain_one():
    assert Layout((((4, 16), (16, 1)), ((8, 64),))).same_as(Layout.of((64, 8), (1, 64)))
    assert not Layout.of((64, 8)).same_as(Layout.of((8, 64)))


def test_a_swizzle_that_only_meets_zero_bits_is_a_stride():
    aside = Layout.of((4, 4), (16, 1), swizzle=Swizzle.xor(bits=2, base=2, shift=2))
    assert aside.same_as(Layout.of((4, 4), (20, 1)))


# -- parts ----------------------------------------------------------------------------------------


@given(layouts(), st.data())
@settings(CASES, max_examples=300)
def test_parts_keep_their_addresses(layout, data):
    table = layout.addresses()
    dim = data.draw(st.integers(0, table.ndim - 1))
    size = table.shape[dim]
    at = data.draw(st.integers(0, size - 1))
    assert np.array_equal(layout.select(dim, at).addresses(), np.take(table, at, dim))

    start = data.draw(st.integers(0, size - 1))
    step = data.draw(st.integers(1, size))
    count = data.draw(st.integers(1, (size - 1 - start) // step + 1))
    try:
        found = layout.slice(dim, start, count, step)
    except ValueError:
        assume(False)
    wanted = np.take(table, range(start, start + count * step, step), dim)
    assert np.array_equal(found.addresses(), wanted)


@given(layouts(), st.data())
@settings(CASES)
def test_tiles_and_permutations_keep_their_addresses(layout, data):
    table = layout.addresses()
    dim = data.draw(st.integers(0, table.ndim - 1))
    order = data.draw(st.permutations(range(table.ndim)))
    assert np.array_equal(layout.permute(order).addresses(), table.transpose(order))

    size = data.draw(st.integers(1, table.shape[dim]))
    try:
        found = layout.tile(dim, size)
    except ValueError:
        assume(False)
    shape = (*table.shape[:dim], table.shape[dim] // size, size, *table.shape[dim + 1 :])
    assert np.array_equal(found.addresses(), table.reshape(shape))


@pytest.mark.parametrize(("start", "count", "step"), [(0, 8, 1), (2, 2, 1), (4, 4, 1), (1, 4, 2)])
def test_aligned_rows_of_a_swizzled_tile_are_a_layout(start, count, step):
    found = ROWS.slice(0, start, count, step)
    assert np.array_equal(found.addresses(), ROWS.addresses()[start : start + count * step : step])


def test_rows_that_cut_through_the_swizzle_are_rejected():
    with pytest.raises(ValueError, match=r"3 steps of 64 below bit 9.*expected a power of two"):
        ROWS.slice(0, 1, 3)


# -- composition and inverse ----------------------------------------------------------------------


@st.composite
def indices_of(draw, outer):
    """Tiles and columns of the row-major indices of `outer`, with steps that it may not have."""
    inner = Layout.of((outer.size,))
    for _ in range(draw(st.integers(1, 4))):
        dim = draw(st.integers(0, len(inner.dims) - 1))
        size = inner.shape[dim]
        step = draw(st.sampled_from([n for n in range(1, size + 1) if size % n == 0]))
        if draw(st.booleans()):
            inner = inner.tile(dim, step)
        else:
            inner = inner.slice(dim, draw(st.integers(0, step - 1)), size // step, step)
    return inner.permute(draw(st.permutations(range(len(inner.dims)))))


@given(layouts().flatmap(lambda outer: st.tuples(st.just(outer), indices_of(outer))))
@settings(CASES, max_examples=400)
def test_a_composition_goes_through_both(both):
    outer, inner = both
    try:
        found = outer.after(inner)
    except ValueError:
        assume(False)
    through = outer.addresses().ravel()
    assert np.array_equal(found.addresses(), through[inner.addresses()])


@given(layouts())
@settings(CASES, max_examples=200)
def test_a_composition_with_any_layout_goes_through_both_or_is_rejected(inner):
    outer = Layout.of((1024,), (4,), offset=1 << 12)
    reach = inner.addresses()
    if reach.min() >= 0 and reach.max() < 1024:
        assert np.array_equal(outer.after(inner).addresses(), (1 << 12) + 4 * reach)
    else:
        with pytest.raises(ValueError, match=r"leave|outside"):
            outer.after(inner)


@given(st.permutations([0, 1, 2]), st.sampled_from([(4, 2, 6), (8, 3, 2), (2, 2, 4)]), layouts())
@settings(CASES)
def test_row_major_after_any_order_is_that_order(order, shape, inner):
    outer = Layout.of(shape).permute(order)
    strides = Layout.of(outer.shape)
    assert np.array_equal(outer.after(strides).addresses(), outer.addresses())


def test_a_swizzle_goes_through_a_power_of_two_step():
    bytes_of = Layout.of((512,), (4,)).after(ROWS)
    assert np.array_equal(bytes_of.addresses(), 4 * ROWS.addresses())


@pytest.mark.parametrize(
    ("outer", "inner", "says"),
    [
        (Layout.of((8,)), Layout.of((9,)), "9 steps of 1 do not stay in digits of sizes \\[8\\]"),
        (Layout.of((8,)), Layout.of((2,), offset=8), "index 8 is outside the 8"),
        (Layout.of((4, 3), (1, 4)), Layout.of((4,), (2,)), "4 steps of 2 do not stay"),
        (Layout.of((4, 4), (1, 8)), Layout.of((4, 2), (1, 2)), "neither carry"),
        (Layout.of((512,), (3,)), ROWS, "power-of-two step, whose size and offset are multiples"),
        (Layout.of((256,)), ROWS, "multiples of 512 steps"),
    ],
)
def test_a_composition_that_is_no_layout_is_rejected(outer, inner, says):
    with pytest.raises(ValueError, match=says):
        outer.after(inner)


@given(st.permutations(range(7)), st.integers(1, 3), SWIZZLES, st.booleans())
@settings(CASES, max_examples=300)
def test_an_inverse_undoes_its_layout(bits, ranks, moved, plain):
    dims = tuple(tuple((2, 1 << b) for b in bits[at::ranks]) for at in range(ranks))
    layout = Layout(dims, 0, Swizzle() if plain else moved)
    try:
        found = layout.inverse()
    except ValueError:
        assume(False)
    assert np.array_equal(found.addresses()[layout.addresses().ravel()], np.arange(128))


def test_a_swizzled_tile_has_an_inverse_and_so_has_a_mirrored_one():
    mirrored = Layout.of((4, 3), (-3, 1), offset=9)
    for layout in (ROWS, mirrored, Layout.of((3, 4, 5)).permute((2, 0, 1))):
        found = layout.inverse().addresses()[layout.addresses().ravel()]
        assert np.array_equal(found, np.arange(layout.size))


@pytest.mark.parametrize(
    "layout",
    [Layout.of((4,), (2,)), Layout.of((4,), offset=1), Layout.of((4, 2), (1, 0)),
     Layout.of((2, 2), (3, 1)), Layout.of((8, 8), (1, 0), swizzle=Swizzle.xor(1, 0, 1))],
)  # fmt: skip
def test_what_is_not_one_to_one_has_no_inverse(layout):
    with pytest.raises(ValueError, match=r"takes each of 0 to .* once has an inverse"):
        layout.inverse()


def test_an_inverse_that_mixes_upwards_is_rejected():
    transposed = ROWS.permute((1, 0))
    with pytest.raises(ValueError, match="mix lower bits of the index into higher ones"):
        transposed.inverse()


# -- bad input ------------------------------------------------------------------------------------

XOR = Swizzle.xor(bits=2, base=0, shift=2)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Layout.of((4, 4), (4,)), "one stride per dimension; got shape"),
        (lambda: Layout.of((4, 0)), "sizes of a layout are at least 1"),
        (lambda: Layout.of((3, 4), swizzle=XOR), "dimension 0 has 3 steps of 4 below bit 4"),
        (lambda: Layout.of((4, 4), (3, 1), swizzle=XOR),
         "bit 1 of dimension 0 and bit 0 of dimension 0 both step over address bit 1"),
        (lambda: Layout.of((4,), offset=2, swizzle=XOR),
         "bit 1 of dimension 0 and the offset both step over address bit 1"),
        (lambda: Layout.of((4,), (-1,), swizzle=XOR),
         "bit 1 of dimension 0 and bit 0 of dimension 0 both step over address bit 3"),
        (lambda: Layout.of((4,)).select(1, 0), "dimension 1 does not exist; expected 0 <= dim < 1"),
        (lambda: Layout.of((4,)).slice(0, 2, 3), "3 indices from 2 by 1 are not in dimension 0"),
        (lambda: Layout((((2, 9), (4, 1)),)).slice(0, 2, 4), "cut through blocks of 4"),
        (lambda: Layout((((2, 9), (6, 1)),)).tile(0, 4), "tiles of 4 do not divide a dimension"),
        (lambda: Layout.of((6,)).tile(0, 4), "tiles of 4 do not divide dimension 0 of 6"),
        (lambda: Layout.of((2, 2)).permute((0, 0)), "is not a permutation of 2 dimensions"),
        (lambda: Layout.of((2, 2)).address((0, 2)), "is outside shape"),
        (lambda: Layout.of((2, 2)).address((0,)), "is outside shape"),
    ],
)  # fmt: skip
def test_bad_input_is_rejected_with_what_was_expected(make, says):
    with pytest.raises(ValueError, match=says):
        make()


@pytest.mark.parametrize("module", [factors, descriptor, swizzle], ids=lambda m: m.__name__)
def test_docstring_examples_run(module):
    results = doctest.testmod(module)
    assert results.attempted and results.failed == 0


def test_a_reshape_keeps_the_addresses_in_row_major_order():
    rng = random.Random(7)
    reshaped, rejected = 0, 0
    for _ in range(300):
        shape = tuple(rng.choice((1, 2, 3, 4, 8)) for _ in range(rng.randint(1, 3)))
        wide = tuple(n * rng.choice((1, 1, 2)) for n in shape)
        strides = tuple(prod(wide[d + 1 :]) for d in range(len(wide)))
        dims = rng.sample(range(len(shape)), len(shape))
        layout = Layout.of(shape, strides).permute(dims)
        size = prod(shape)
        inner = rng.choice([d for d in range(1, size + 1) if size % d == 0])
        new = (size // inner, inner)
        try:
            found = layout.reshape(new)
        except ValueError:
            rejected += 1
            continue
        reshaped += 1
        assert (found.addresses() == layout.addresses().reshape(new)).all(), (layout, new)
    assert reshaped > 200 and rejected
    with pytest.raises(ValueError, match=r"6 indices do not have shape \(4, 2\)"):
        Layout.of((6,)).reshape((4, 2))
