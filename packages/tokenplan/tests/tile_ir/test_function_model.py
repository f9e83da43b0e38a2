"""Bytecode as the planner sees it: an order is kept, or an assumption is listed."""

from dataclasses import replace

import pytest
from packages.tokenplan.tests.tile_ir.bytecode_cases import (
    NO_FLAGS,
    POINTER,
    WEAK,
    Body,
    explained,
    function,
    lost,
)

from tokenplan.tile_ir import bytecode, compiler, explain_bytecode
from tokenplan.tile_ir.bytecode import BytecodeError
from tokenplan.tile_ir.bytecode.building import I32
from tokenplan.tile_ir.bytecode.types import DYNAMIC, FIELD_NAMES, TOKEN, Type, pointer, tile
from tokenplan.tile_ir.bytecode.verification import verify
from tokenplan.tile_ir.bytecode_report import reported

WIDE = ((4096, 64), (64, 1), (4, 64))
"""Shape, strides and tile of a view."""


def iterations(trips, index, view=WIDE, base=None):
    """Loads and stores one tile per iteration; `index` and `base` are made from the variable."""

    def build(body, p):
        zero, start = body.integer(0), body.one("make_token", TOKEN)
        outside = body.view(p, *view)

        def repeated(k, token):
            found = body.view(base(body, p, k), *view) if base else outside
            at = [index(body, k), zero]
            return [body.copied(found, at, at, token)]

        body.loop(trips, repeated, [start])

    return function(build, POINTER)


def scaled(body, k, factor):
    return body.one("muli", I32, NO_FLAGS, lhs=k, rhs=body.integer(factor))


# -- memory orders ---------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["acquire", "relaxed"])
def test_an_acquire_is_before_all_that_follows(order):
    def build(body, flag, data):
        zero = [body.integer(0)] * 2
        _, token = body.load(body.view(flag, *WIDE), zero, order=order)
        body.load(body.view(data, *WIDE), zero, token)

    kept = explained(function(build, POINTER, POINTER), num_bytes=(2**30,) * 2,
                     distinct=[("p0", "p1")])  # fmt: skip
    assert f"{int(order == 'acquire')} orders to keep" in kept


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("orders", [("relaxed", "relaxed"), ("weak", "relaxed"),
                                    ("relaxed", "weak"), ("weak", "weak")])  # fmt: skip
def test_two_loads_of_one_location_stay_in_order_unless_both_are_weak(orders, same):
    """Coherence: the second load gives no older value than the first."""

    def build(body, p):
        token, view, zero = None, body.view(p, *WIDE), body.integer(0)
        for n, order in enumerate(orders):
            _, token = body.load(view, [body.integer(0 if same else n), zero], token, order)

    is_kept = same and orders != ("weak", "weak")
    assert f"{int(is_kept)} orders to keep" in explained(function(build, POINTER))


@pytest.mark.parametrize("order", ["relaxed", "weak"])
def test_two_loads_of_arrays_that_may_share_bytes_stay_in_order_unless_both_are_weak(order):
    def build(body, p, q):
        zero = [body.integer(0)] * 2
        _, token = body.load(body.view(p, *WIDE), zero, order=order)
        body.load(body.view(q, *WIDE), zero, token)

    data = function(build, POINTER, POINTER)
    for options in ({}, {"may_alias": [("p0", "p1")]}):
        text = explained(data, num_bytes=(2**30,) * 2, **options)
        assert f"{int(order == 'relaxed')} orders to keep" in text


def test_two_relaxed_loads_without_a_token_are_found():
    def build(body, p):
        view = body.view(p, *WIDE)
        for _ in range(2):
            body.load(view, [body.integer(0)] * 2, order="relaxed")

    assert "share byte 0 of parameter 0" in lost(function(build, POINTER))[0]


def test_an_atomic_operation_acquires_and_releases():
    def build(body, data, counter):
        zero, one = [body.integer(0)] * 2, body.constant(tile("f32"), 1.0)
        view = body.view(data, *WIDE)
        value = body.constant(tile("f32", 4, 64), 0.0)
        token = body.store(view, zero, value)
        attributes = {"order": "acq_rel", "scope": "device", "mode": "addf"}
        _, token = body.add("atomic_rmw_tko", (tile("f32"), TOKEN), attributes, pointers=counter,
                            value=one, token=token)  # fmt: skip
        body.store(view, [body.integer(1), zero[0]], value, token)

    text = explained(function(build, POINTER, POINTER), num_bytes=(2**30,) * 2)
    assert "store -> atomic  in" in text and "atomic -> store.2  in" in text
    assert "2 orders to keep" in text


# -- elements and bytes ----------------------------------------------------------------------------


def test_static_strides_that_overlap_keep_the_order():
    def build(body, p):
        zero, one = body.integer(0), body.integer(1)
        view = body.view(p, (64, 64), (2, 1), (1, 16))
        body.copied(view, [zero, zero], [one, zero])

    assert "1 orders to keep" in explained(function(build, POINTER))


@pytest.mark.parametrize("strides", [(64, 1), (1, 64)])
@pytest.mark.parametrize(("most", "kept"), [(None, 1), (65, 1), (64, 0)])
def test_rows_longer_than_a_constant_stride_keep_the_order(strides, most, kept):
    def build(body, p, n):
        size = n if most is None else limited(body, n, 1, most)
        view = body.view(p, (DYNAMIC, DYNAMIC), strides, (4, 64), [size, size])
        body.copied(view, [body.integer(0)] * 2, [body.integer(1), body.integer(0)])

    text, _ = explain_bytecode(function(build, POINTER, I32))
    assert f"{kept} orders to keep" in text and "assumed: different" not in text


@pytest.mark.parametrize(
    ("shape", "strides", "extents", "sink"),
    [
        ((DYNAMIC, 64), (0, 1), (1, 64), (1, 0)),
        ((DYNAMIC, 64), (32, 1), (1, 64), (1, 0)),
        ((64, DYNAMIC), (2, 1), (4, 64), (1, 0)),
        ((64, DYNAMIC), (2, 1), (1, 2), (0, 1)),
        ((DYNAMIC, DYNAMIC), (0, 0), (4, 64), (1, 0)),
        ((DYNAMIC, DYNAMIC), (1, 1), (1, 2), (1, 0)),
        ((DYNAMIC, 4, 64), (128, 64, 1), (1, 4, 64), (1, 0, 0)),
    ],
)
def test_static_strides_that_overlap_under_a_dynamic_extent_keep_the_order(
    shape, strides, extents, sink
):
    def build(body, p, n):
        view = body.view(p, shape, strides, extents, [n] * shape.count(DYNAMIC))
        source = [body.integer(0)] * len(shape)
        body.copied(view, source, [body.integer(at) for at in sink])

    text = explained(function(build, POINTER, I32), [128])
    assert "1 orders to keep" in text


def limited(body, n, low=0, high=None):
    return body.one("assume", n.type, {"predicate": bytecode.Bounded(low, high)}, value=n)


def two_rows(stride):
    """Two stores to rows 0 and 1 of 8 elements, whose strides are operands."""

    def build(body, p, n, m):
        view = body.view(p, (4, 8), (DYNAMIC, DYNAMIC), (1, 8), steps=stride(body, n, m))
        value = body.constant(tile("f32", 1, 8), 0.0)
        zero, one = body.integer(0), body.integer(1)
        body.store(view, [one, zero], value, body.store(view, [zero, zero], value))

    return function(build, POINTER, I32, I32)


def converted(body, value):
    return body.one("trunci", I32, NO_FLAGS, source=body.constant(tile("i64"), value))


@pytest.mark.parametrize(
    "strides",
    [
        lambda body, n, m: [body.integer(4), body.integer(1)],
        lambda body, n, m: [converted(body, 2**32 + 4), body.integer(1)],
        lambda body, n, m: [body.integer(0), body.integer(1)],
        lambda body, n, m: [n, n],
        lambda body, n, m: [n, limited(body, n)],
        lambda body, n, m: [limited(body, n, 0, 7), body.integer(1)],
        lambda body, n, m: [body.multiple(limited(body, n, 0, 15), 16), body.integer(1)],
        lambda body, n, m: [scaled(body, n, 0), body.integer(1)],
    ],
)
def test_strides_that_the_file_contradicts_are_not_assumed_to_be_disjoint(strides):
    """Constants, limits, one parameter twice, and numbers that the function calculates."""
    text = explained(two_rows(strides), [1, 1])
    kept = "store -> store.2  in the same iteration\n1 tokens that it has"
    assert kept in text and "different bytes" not in text


@pytest.mark.parametrize(("stride", "is_listed"), [(8, False), (None, True)])
def test_strides_that_may_be_disjoint_are_listed_if_they_are_parameters(stride, is_listed):
    text = explained(
        two_rows(lambda body, n, m: [body.integer(stride) if stride else n, body.integer(1)]),
        [8, 1],
    )
    assert "0 orders to keep" in text
    assert ("different elements of p0 are different bytes" in text) == is_listed


def rows_of_two(most, other, extra):
    """Rows of one array whose stride is n, of at most `most`, and tiles of another: 8 columns whose
    stride is `other`, in rows whose stride is n as well."""

    def build(body, p, q, n):
        extra(body, n)
        n, zero, one = limited(body, n, 1, most), body.integer(0), body.integer(1)
        views = [body.view(p, (4, 4), (DYNAMIC, 1), (1, 1), steps=[n]),
                 body.view(q, (4, 8), (DYNAMIC, other), (1, 1), steps=[n])]  # fmt: skip
        for view in views:
            body.copied(view, [zero, one], [one, zero])

    return function(build, POINTER, POINTER, I32)


def in_a_loop(body, n):
    body.loop(n, lambda k: (limited(body, n, 0, 28), [])[1], [])


@pytest.mark.parametrize(
    ("most", "other", "extra", "kept"),
    [
        (28, 4, lambda body, n: None, 1),  # 8 columns of stride 4 need 29, or 1 with rows inside
        (29, 4, lambda body, n: None, 0),
        (2**30, 4, in_a_loop, 1),
    ],
)
def test_assumptions_that_cannot_be_together_are_not_made(most, other, extra, kept):
    text, _ = explain_bytecode(rows_of_two(most, other, extra), distinct=[("p0", "p1")])
    assert f"{kept} orders to keep" in text and "different elements of p0 are" in text
    assert ("different elements of p1 are" in text) == (not kept)
    assert ("no sizes keep its elements disjoint" in text) == bool(kept)


@pytest.mark.parametrize(
    ("factor", "more", "columns", "kept"),
    [(1, 0, 2**19, 0), (1, 0, 2**21, 1), (1, 2**20, 2**19, 1), (128, 0, 2**12, 0),
     (128, 0, 2**14, 1), (128, -(2**20), 2**14 - 1, 0)],
)  # fmt: skip
def test_a_stride_is_not_assumed_to_exceed_the_iterations_that_a_loop_is_assumed_to_have(
    factor, more, columns, kept
):
    """The loop has n * factor + more."""

    def build(body, p, n):
        view, zero = body.view(p, (4, columns), (DYNAMIC, 1), (1, 1), steps=[n]), body.integer(0)
        body.copied(view, [zero, body.integer(1)], [body.integer(1), zero])
        number = scaled(body, n, factor) if factor != 1 else n
        if more:
            number = body.one("addi", I32, NO_FLAGS, lhs=number, rhs=body.integer(more))
        body.loop(number, lambda k: [], [])

    text, _ = explain_bytecode(function(build, POINTER, I32), unchecked=True)
    assert f"{kept} orders to keep" in text


@pytest.mark.parametrize(("stride", "kept"), [(2**62, 1), (2**60, 0)])
def test_addresses_that_wrap_keep_the_order(stride, kept):
    """Of two rows of float32 that are 2^64 bytes apart."""

    def build(body, p):
        view = body.view(p, (2, 8), (stride, 1), (1, 8))
        body.copied(view, [body.integer(0)] * 2, [body.integer(1), body.integer(0)])

    text, _ = explain_bytecode(function(build, POINTER))
    assert f"{kept} orders to keep" in text


def test_the_stride_of_a_single_element_is_not_needed():
    def build(body, p, n):
        view, zero = body.view(p, (1, 64), (DYNAMIC, 1), (1, 4), steps=[n]), body.integer(0)
        body.copied(view, [zero, zero], [zero, body.integer(1)])

    text = explained(function(build, POINTER, I32), [3])
    assert "0 orders to keep" in text and "assumed" not in text


@pytest.mark.parametrize(("least", "number", "kept"), [(None, -56, 1), (0, 100, 0)])
def test_a_parameter_with_more_bits_is_the_same_number_if_it_is_not_negative(least, number, kept):
    """The stride -56 in 8 bits is 200; in 64 bits, 256 less."""

    def build(body, p, n):
        zero, one, four = map(body.integer, (0, 1, 4))
        given = n if least is None else limited(body, n, least)
        more = body.one("exti", tile("i64"), {"signedness": "signed"}, source=n)
        views = [body.view(p, (4, 8), (DYNAMIC, 64), (1, 1), steps=[stride])
                 for stride in (given, more)]  # fmt: skip
        value, token = body.load(views[0], [one, zero])
        body.store(views[1], [one, four], value, token)

    assert f"{kept} orders to keep" in explained(function(build, POINTER, tile("i8")), [number])


@pytest.mark.parametrize(("kind", "kept"), [("i32", 0), ("i64", 2)])
def test_a_negative_index_is_outside_of_an_extent_with_as_many_bits(kind, kept):
    """Tile 2^32 - 1 of 4 rows is beyond 2^32 rows, and not beyond 2^64."""

    def build(body, p, n):
        zero, view = body.integer(0), body.view(p, (DYNAMIC, 64), *WIDE[1:], [n])

        def repeated(k, token):
            source, sink = (body.one(name, I32, NO_FLAGS, lhs=k, rhs=body.integer(by))
                            for name, by in (("subi", 1), ("addi", 16)))  # fmt: skip
            return [body.copied(view, [source, zero], [sink, zero], token)]

        body.loop(8, repeated, [body.one("make_token", TOKEN)])

    assert f"{kept} orders to keep" in explained(function(build, POINTER, tile(kind)), [128])


@pytest.mark.parametrize(("columns", "kept"), [(2**62, 1), (2**58, 0)])
def test_a_stride_is_not_assumed_to_be_so_great_that_addresses_wrap(columns, kept):
    """Rows of float32 that are 2^64 bytes long or more."""

    def build(body, p, n):
        view, zero = body.view(p, (4, columns), (DYNAMIC, 1), (1, 1), steps=[n]), body.integer(0)
        body.copied(view, [zero, body.integer(1)], [body.integer(1), zero])

    text, _ = explain_bytecode(function(build, POINTER, tile("i64")), unchecked=True)
    assert f"{kept} orders to keep" in text


@pytest.mark.parametrize(("most", "kept"), [(63, 1), (64, 0)])
def test_a_stride_is_assumed_to_exceed_the_first_tile_of_an_extent(most, kept):
    def build(body, p, n, stride):
        steps = [limited(body, stride, 0, most)]
        view, zero = body.view(p, (4, DYNAMIC), (DYNAMIC, 1), (1, 64), [n], steps), body.integer(0)
        body.copied(view, [zero, zero], [body.integer(1), zero])

    text, _ = explain_bytecode(function(build, POINTER, I32, I32), unchecked=True)
    assert f"{kept} orders to keep" in text


@pytest.mark.parametrize(
    ("kind", "number", "kept"), [("i8", -56, 1), ("i8", 100, 0), ("i32", 200, 1), ("i16", 128, 0)]
)
def test_extents_and_strides_are_numbers_without_a_sign(kind, number, kept):
    """-56 in 8 bits is 200, which is longer than a row of 128."""

    def build(body, p):
        size = body.constant(tile(kind), number)
        view, zero = body.view(p, (4, DYNAMIC), (128, 1), (1, 1), [size]), body.integer(0)
        body.copied(view, [zero, body.integer(128)], [body.integer(1), zero])

    assert f"{kept} orders to keep" in explained(function(build, POINTER))


def test_an_index_is_a_number_without_a_sign():
    """Rows -56 of 8 bits and 200 are one; row -56 of 32 bits is outside of the array."""

    def build(kind):
        def made(body, p):
            view, zero = body.view(p, (1024, 64), *WIDE[1:]), body.integer(0)
            byte = body.constant(tile("i8"), 0)
            index = [body.constant(tile(kind), -56), byte if kind == "i8" else zero]
            value, token = body.load(view, index)
            body.store(view, [body.integer(200), zero], value, token)

        return function(made, POINTER)

    assert "1 orders to keep" in explained(build("i8"))
    assert "0 orders to keep" in explained(build("i32"))


@pytest.mark.parametrize(("size", "stride", "kept"), [(5, 4, 1), (4, 4, 0)])
def test_an_extent_that_is_a_constant_operand_is_known(size, stride, kept):
    def build(body, p):
        zero, one = body.integer(0), body.integer(1)
        view = body.view(p, (8, DYNAMIC), (stride, 1), (1, 2), [body.integer(size)])
        body.copied(view, [zero, body.integer(2)], [one, zero])

    text = explained(function(build, POINTER))
    assert f"{kept} orders to keep" in text and "assumed: different" not in text


@pytest.mark.parametrize(("most", "is_exact"), [(2**20, True), (2**22, False)])
def test_the_iterations_of_a_loop_are_as_many_as_the_function_limits_them_to(most, is_exact):
    """Of more than 2^20, an index of 2^11 elements each wraps."""

    def build(body, p, n):
        zero, view = body.integer(0), body.view(p, *WIDE)

        def repeated(k, token):
            at = scaled(body, k, 2**10)
            return [body.copied(view, [at, zero], [at, zero], token)]

        body.loop(limited(body, n, 0, most), repeated, [body.one("make_token", TOKEN)])

    text = explained(function(build, POINTER, I32), [3])
    assert ("store -> load  1 iteration of loop later" not in text.partition("tokens that")[0]
            ) == is_exact  # fmt: skip
    assert "at most 2^20 iterations" not in text


def narrowed(body, n):
    body.one("trunci", tile("i8"), NO_FLAGS, source=n)


def limited_in_an_empty_loop(body, n):
    def repeated(k, token):
        limited(body, n, 0, 100)
        return [token]

    body.loop(body.integer(0), repeated, [body.one("make_token", TOKEN)])


@pytest.mark.parametrize("other", [narrowed, limited_in_an_empty_loop])
def test_what_is_not_sure_to_limit_a_parameter_leaves_its_iterations(other):
    """The checker executes numbers within each limit, sure or not, and so no 200 iterations."""

    def build(body, p, n):
        other(body, n)
        view = body.view(p, (4096,), (1,), (1,))

        def repeated(k, token):
            before = body.one("subi", I32, NO_FLAGS, lhs=k, rhs=body.integer(200))
            return [body.copied(view, [before], [k], token)]

        body.loop(n, repeated, [body.one("make_token", TOKEN)])

    text, _ = explain_bytecode(function(build, POINTER, I32), unchecked=True)
    assert "store -> load  200 iterations of" in text.partition("tokens that")[0]


@pytest.mark.parametrize(("signedness", "listed"), [("signed", True), ("unsigned", False)])
def test_a_stride_is_a_parameter_where_its_conversion_keeps_the_number(signedness, listed):
    def build(body, p, n):
        wide = body.one("exti", tile("i64"), {"signedness": signedness}, source=n)
        view = body.view(p, (64, 64), (DYNAMIC, 1), (1, 64), steps=[wide])
        body.copied(view, [body.integer(0)] * 2, [body.integer(1), body.integer(0)])

    text, _ = explain_bytecode(function(build, POINTER, I32))
    assert ("assumed: different" in text) == listed
    assert f"{int(not listed)} orders to keep" in text


def test_a_dynamic_extent_of_the_greatest_stride_needs_no_assumption():
    def build(body, p, n):
        zero, one = body.integer(0), body.integer(1)
        view = body.view(p, (DYNAMIC, 64), (64, 1), (4, 64), [n])
        body.copied(view, [zero, zero], [one, zero])

    text = explained(function(build, POINTER, I32), [4096])
    assert "0 orders to keep" in text and "assumed" not in text


def test_a_view_that_is_made_in_a_loop_differs_between_iterations():
    def base(body, p, k):
        back = body.one("subi", I32, NO_FLAGS, lhs=body.integer(256 * 64), rhs=scaled(body, k, 256))
        return body.one("offset", POINTER, pointers=p, offsets=back)

    text = explained(iterations(64, lambda body, k: k, base=base))
    assert "store -> load  1 iteration of loop later" in text


def test_a_view_that_is_made_in_a_loop_from_constants_is_one_view():
    def base(body, p, k):
        return body.one("assume", POINTER, {"predicate": bytecode.DivBy(16)}, value=p)

    text = explained(iterations(64, lambda body, k: k, base=base))
    assert "1 orders to keep\n  load -> store  in the same iteration" in text


# -- wraps -----------------------------------------------------------------------------------------


def twice(body, k):
    return scaled(body, scaled(body, k, 2**16), 2**16)


def truncated(body, k):
    byte = body.one("trunci", tile("i8"), NO_FLAGS, source=k)
    return body.one("exti", I32, {"signedness": "unsigned"}, source=byte)


@pytest.mark.parametrize(
    ("index", "trips"),
    [(lambda body, k: scaled(body, k, 2**30), 64), (twice, 64), (truncated, 512)],
)
def test_an_index_that_wraps_keeps_the_order(index, trips):
    text = explained(iterations(trips, index), num_bytes=(2**40,))
    assert "store -> load  1 iteration of loop later" in text


def test_an_index_that_is_back_in_its_range_is_known():
    def index(body, k):
        far = body.one("addi", I32, NO_FLAGS, lhs=k, rhs=body.integer(2**31 - 1))
        return body.one("subi", I32, NO_FLAGS, lhs=far, rhs=body.integer(2**31 - 1))

    for known in (iterations(64, index), iterations(100, truncated)):
        assert "1 orders to keep\n  load -> store  in the same iteration" in explained(known)


# -- loops that may be empty -----------------------------------------------------------------------


@pytest.mark.parametrize("trips", [0, 5])
def test_an_order_through_a_loop_that_may_be_empty_is_kept(trips):
    def build(body, p, n):
        zero, view = body.integer(0), body.view(p, *WIDE)
        value, token = body.load(view, [zero, zero])

        def repeated(k, token):
            return [body.store(view, [k, zero], value, token)]

        (token,) = body.loop(n, repeated, [token])
        body.store(view, [zero, zero], value, token)

    text = explained(function(build, POINTER, I32), [trips])
    assert "load -> store.2  in the same iteration" in text
    assert "loop loop has at most 2^20 iterations" in text


def nested(body, inner, after=None):
    """Four iterations of a loop whose inner one has an iteration in the first alone."""
    one = body.integer(1)

    def outer(j, token):
        def within(k, token):
            return [inner(j, k, token)]

        left = body.one("subi", I32, NO_FLAGS, lhs=one, rhs=j)
        (token,) = body.loop(left, within, [token])
        return [after(j, token) if after else token]

    body.loop(4, outer, [body.one("make_token", TOKEN)])


def test_an_operation_of_the_sinks_loop_implies_nothing_in_an_earlier_iteration():
    """The inner loop, which loads two rows, is empty in the first five iterations."""

    def build(body, p):
        zero, one, value = body.integer(0), body.integer(1), body.constant(tile("f32", 1, 1), 0.0)
        cells = body.view(p, (4096, 2), (2, 1), (1, 1))
        rows = Type("tensor_view", (Type("f32"), (4096, 2), (2, 1), None))
        pairs = body.one(
            "make_strided_view", Type("strided_view", ((2, 2), (1, 2), rows, (0, 1), None)),
            tensor_view=body.one("make_tensor_view", rows, base=p, shape=(), strides=()),
        )  # fmt: skip

        def outer(i, token):
            token = body.store(cells, [i, zero], value, token)
            before = body.one("subi", I32, NO_FLAGS, lhs=i, rhs=one)
            trips = body.one("subi", I32, NO_FLAGS, lhs=i, rhs=body.integer(4))
            (token,) = body.loop(
                trips, lambda k, token: [body.load(pairs, [before, zero], token)[1]], [token]
            )
            return [body.store(cells, [i, one], value, token)]

        body.loop(8, outer, [body.one("make_token", TOKEN)])

    needed = explained(function(build, POINTER)).partition("tokens that")[0]
    assert "store -> load  1 iteration of loop later" in needed


def test_an_iteration_without_the_source_does_not_wait_for_its_earlier_ones():
    """The store of all rows is in the first iteration alone; each loads one row and replaces it."""

    def build(body, p):
        zero, value = body.integer(0), body.constant(tile("f32", 4, 64), 0.0)
        all_rows, rows = body.view(p, *WIDE[:2], (16, 64)), body.view(p, *WIDE)
        wide = body.constant(tile("f32", 16, 64), 0.0)

        def inner(j, k, token):
            return body.store(all_rows, [zero, zero], wide, token)

        def after(j, token):
            _, token = body.load(rows, [j, zero], token)
            return body.store(rows, [j, zero], value, token)

        nested(body, inner, after)

    text = explained(function(build, POINTER))
    assert "store -> load  1 iteration of loop later" in text


def test_an_order_inside_a_loop_that_may_be_empty_implies_orders_of_its_own_operations():
    """A sink that runs is in an iteration of the inner loop, as the load before it is."""

    def build(body, p):
        zero, view = body.integer(0), body.view(p, *WIDE)
        nested(body, lambda j, k, token: body.copied(view, [k, zero], [k, zero], token))

    text = explained(function(build, POINTER))
    kept, _ = text.split("tokens that it has")
    assert "store -> load  1 iteration of loop later" in kept
    assert "store -> store" not in kept and "load -> store  in the same iteration" in kept


# -- pointers and tokens of several operands -------------------------------------------------------


def test_a_tile_of_pointers_into_two_parameters_accesses_both():
    def build(body, p, q):
        wide = [tile(pointer("f32"), n) for n in (1, 64, 128)]
        lanes = body.one("iota", tile("i32", 64))

        def pointers(base):
            one = body.one("reshape", wide[0], source=base)
            spread = body.one("broadcast", wide[1], source=one)
            return body.one("offset", wide[1], pointers=spread, offsets=lanes)

        first, second = map(pointers, (p, q))
        both = body.one("cat", wide[2], {"dim": 0}, lhs=first, rhs=second)
        _, token = body.add("load_ptr_tko", (tile("f32", 64), TOKEN), WEAK, source=second)
        value = body.constant(tile("f32", 128), 1.0)
        body.add("store_ptr_tko", (TOKEN,), WEAK, pointers=both, value=value, token=token)

    text, _ = explain_bytecode(function(build, POINTER, POINTER))
    assert "store writes p0 or p1" in text and "load -> store  in" in text


def test_a_tile_with_unknown_pointers_is_rejected_by_name():
    def build(body, p, n):
        other = body.one("int_to_ptr", POINTER, source=n)
        either = body.one("select", POINTER, condition=body.one("trunci", tile("i1"), NO_FLAGS,
                          source=n), if_true=p, if_false=other)  # fmt: skip
        body.add("load_ptr_tko", (tile("f32"), TOKEN), WEAK, source=either)

    with pytest.raises(BytecodeError, match="load is not an access to parameters"):
        explain_bytecode(function(build, POINTER, tile("i64")))


def branches(body, condition, token):
    with body.block(()) as one:
        body.add("yield", (), values=[token])
    with body.block(()) as other:
        body.add("yield", (), values=[token])
    return body.add("if", (TOKEN,), {}, (one.block, other.block), condition=condition)[0]


def from_branches():
    def build(body, p, condition):
        zero, view = [body.integer(0)] * 2, body.view(p, *WIDE)
        value, token = body.load(view, zero)
        body.store(view, zero, value, branches(body, condition, token))

    return function(build, POINTER, tile("i1"))


def test_a_token_of_if_is_one_of_its_tokens_and_is_replaced():
    text = explained(from_branches(), [1])
    assert "1 tokens that it has\n  load -> store" in text


def test_the_compiler_accepts_a_rewritten_if_that_had_tokens(tileiras):
    _, new = explain_bytecode(from_branches())
    assert compiler.compile_bytecode(new, "sm_90").cubin


def either(body, condition, one, other=lambda: ("yield", [])):
    """An `if`; each branch adds its operations, and returns what ends it and the values."""
    regions = []
    for branch in (one, other):
        with body.block(()) as region:
            end, values = branch()
            body.add(end, (), values=values)
        regions.append(region.block)
    kinds = [value.type for value in regions[0].operations[-1].operands["values"]]
    is_result = {region.operations[-1].name for region in regions} == {"yield"}
    return body.add("if", kinds if is_result else [], {}, tuple(regions), condition=condition)


def loaded_in_a_branch(in_both):
    """A branch loads what is stored behind it; the other one stores it, or nothing."""

    def build(body, p, condition):
        view, zero = body.view(p, *WIDE), [body.integer(0)] * 2
        value = body.constant(tile("f32", 4, 64), 0.0)
        start = body.one("make_token", TOKEN)
        (token,) = either(
            body, condition, lambda: ("yield", [body.load(view, zero, start)[1]]),
            lambda: ("yield", [body.store(view, zero, value, start) if in_both else start]),
        )  # fmt: skip
        body.store(view, zero, value, token)

    return function(build, POINTER, tile("i1"))


@pytest.mark.parametrize("condition", [0, 1])
def test_an_order_of_a_branch_is_a_result_of_if(condition):
    text = explained(loaded_in_a_branch(False), [condition])
    assert "1 orders to keep\n  load -> store  in the same iteration\n1 tokens" in text


@pytest.mark.parametrize("is_pointer", [True, False])
@pytest.mark.parametrize("condition", [0, 1])
def test_an_address_of_if_is_in_the_parameters_of_both_branches(condition, is_pointer):
    def build(body, p, q, condition):
        zero = [body.integer(0)] * 2
        value = body.constant(tile("f32", 4, 64), 0.0)
        made = [base if is_pointer else body.view(base, *WIDE) for base in (p, q)]
        (found,) = either(body, condition, *(lambda v=v: ("yield", [v]) for v in made))
        token = body.store(body.view(found, *WIDE) if is_pointer else found, zero, value)
        for base in (p, q):
            token = body.load(body.view(base, *WIDE), zero, token)[1]

    data = function(build, POINTER, POINTER, tile("i1"))
    text = explained(data, [condition], (2**30, 2**30), distinct=[("p0", "p1")])
    assert "store writes p0 or p1" in text
    assert "2 orders to keep\n  store -> load  in" in text and "store -> load.2  in" in text


@pytest.mark.parametrize("condition", [0, 1])
def test_two_branches_of_if_need_no_order_of_one_another(condition):
    text = explained(loaded_in_a_branch(True), [condition]).partition("tokens that it has")[0]
    assert "2 orders to keep\n  load -> store.2" in text and "store -> store.2" in text
    assert "load -> store  in" not in text


def test_branches_need_an_order_between_iterations():
    def build(body, p, n):
        view, zero = body.view(p, *WIDE), [body.integer(0)] * 2
        value = body.constant(tile("f32", 4, 64), 0.0)

        def repeated(k, token):
            is_less = {"comparison": "lt", "signedness": "signed"}
            condition = body.one("cmpi", tile("i1"), is_less, lhs=k, rhs=n)
            return either(body, condition, lambda: ("yield", [body.load(view, zero, token)[1]]),
                          lambda: ("yield", [body.store(view, zero, value, token)]))  # fmt: skip

        body.loop(4, repeated, [body.one("make_token", TOKEN)])

    for n in (0, 2, 5):
        text = explained(function(build, POINTER, I32), [n]).partition("tokens that it has")[0]
        assert "load -> store  1 iteration of loop later" in text
        assert "store -> load  1 iteration of loop later" in text
        assert "load -> store  in the same iteration" not in text


@pytest.mark.parametrize("condition", [0, 1])
def test_an_order_through_a_branch_is_kept(condition):
    """Store, store if the condition is true, store: the first is before the last in any case."""

    def build(body, p, condition):
        view, zero = body.view(p, *WIDE), [body.integer(0)] * 2
        value = body.constant(tile("f32", 4, 64), 0.0)
        first = body.store(view, zero, value)
        (token,) = either(body, condition,
                          lambda: ("yield", [body.store(view, zero, value, first)]),
                          lambda: ("yield", [first]))  # fmt: skip
        body.store(view, zero, value, token)

    text = explained(function(build, POINTER, tile("i1")), [condition])
    kept = text.partition("tokens that it has")[0]
    assert "3 orders to keep" in kept and "store -> store.3  in the same iteration" in kept


ENDS = {"continue": "for", "break": "loop", "return": "loop"}


def left_early(end):
    """A loop of a store, an early end if the condition is true, and a load; then a store."""

    def build(body, p, condition):
        view, zero = body.view(p, *WIDE), [body.integer(0)] * 2
        value = body.constant(tile("f32", 4, 64), 0.0)

        def repeated(*arguments):
            done = body.store(view, zero, value, arguments[-1])
            either(body, condition, lambda: (end, [] if end == "return" else [done]))
            last = [body.load(view, zero, done)[1]]
            if ENDS[end] == "loop":
                either(body, condition, lambda: ("yield", []), lambda: ("break", last))
            return last

        start = [body.one("make_token", TOKEN)]
        if ENDS[end] == "for":
            (token,) = body.loop(2, repeated, start)
        else:
            with body.block([TOKEN]) as region:
                body.add("continue", (), values=repeated(*region.arguments))
            (token,) = body.add("loop", [TOKEN], {}, (region.block,), inits=start)
        body.store(view, zero, value, token)

    return function(build, POINTER, tile("i1"))


@pytest.mark.parametrize("condition", [0, 1])
@pytest.mark.parametrize("end", [*ENDS])
def test_an_early_end_passes_the_tokens_on(end, condition):
    text = explained(left_early(end), [condition])
    kept = text.partition("tokens that it has")[0]
    assert "store -> load  in the same iteration" in kept
    assert "load -> store  1 iteration of loop later" in kept
    assert "store -> store.2  in the same iteration" in kept


@pytest.mark.parametrize("has_access", [True, False])
def test_a_loop_that_ends_with_what_is_loaded_is_executed(has_access):
    """Without accesses inside, no size is left out."""

    def build(body, p, counts):
        view, zero = body.view(p, *WIDE), [body.integer(0)] * 2
        number, _ = body.add("load_ptr_tko", (I32, TOKEN), WEAK, source=counts)
        is_less = {"comparison": "lt", "signedness": "signed"}
        condition = body.one("cmpi", tile("i1"), is_less, lhs=number, rhs=zero[0])
        with body.block([TOKEN]) as region:
            (token,) = region.arguments
            done = body.copied(view, zero, zero, token) if has_access else token
            either(body, condition, lambda: ("yield", []), lambda: ("break", [done]))
            body.add("continue", (), values=[done])
        start = [body.one("make_token", TOKEN)]
        body.add("loop", [TOKEN], {}, (region.block,), inits=start)

    text, _ = explain_bytecode(function(build, POINTER, tile(pointer("i32"))))
    assert f"checked at {4 if has_access else 6} concrete sizes" in text


@pytest.mark.parametrize("condition", [0, 1])
def test_a_branch_that_returns_needs_no_order_of_what_follows(condition):
    """No execution has both."""

    def build(body, p, condition):
        view, zero = body.view(p, *WIDE), [body.integer(0)] * 2
        value = body.constant(tile("f32", 4, 64), 0.0)

        def early():
            body.store(view, zero, value)
            return "return", []

        either(body, condition, early)
        body.load(view, zero)

    text = explained(function(build, POINTER, tile("i1")), [condition])
    assert "0 orders to keep" in text and "checked at 6 concrete sizes" in text


@pytest.mark.parametrize("data", [loaded_in_a_branch(True), *map(left_early, ENDS)])
def test_the_compiler_accepts_rewritten_branches(tileiras, data):
    _, new = explain_bytecode(data)
    assert bytecode.read(new) == bytecode.read(bytecode.write(bytecode.read(new)))
    assert compiler.compile_bytecode(new, "sm_90").cubin


@pytest.mark.parametrize("is_early", [True, False])
def test_an_assume_behind_an_early_end_is_not_sure(is_early):
    """Without it, the index leaves 32 bits."""

    def build(body, p, n):
        view, zero = body.view(p, *WIDE), body.integer(0)
        if is_early:
            is_less = {"comparison": "lt", "signedness": "signed"}
            condition = body.one("cmpi", tile("i1"), is_less, lhs=n, rhs=zero)
            either(body, condition, lambda: ("return", []))
        limited(body, n, 0, 3)

        def repeated(k, token):
            return [body.copied(view, [scaled(body, k, 2**29), zero], [k, zero], token)]

        body.loop(n, repeated, [body.one("make_token", TOKEN)])

    text, _ = explain_bytecode(function(build, POINTER, I32), unchecked=True)
    assert (
        "store -> load  1 iteration of loop later" in text.partition("tokens that")[0]
    ) == is_early


def between_arrays(second_is_fence=False):
    """A load of one array, then a store to another, with a token."""

    def build(body, p, q):
        zero = [body.integer(0)] * 2
        order = "acquire" if second_is_fence else "weak"
        value, token = body.load(body.view(p, *WIDE), zero, order=order)
        body.store(body.view(q, *WIDE), zero, value, token)

    return function(build, POINTER, POINTER)


def test_arrays_that_tokens_order_may_share_bytes_unless_they_are_distinct():
    text = explained(between_arrays(), num_bytes=(2**30,) * 2)
    assert "1 orders to keep\n  load -> store" in text
    assert "its tokens order p0 and p1, which may share bytes; --distinct p0,p1" in text

    text = explained(between_arrays(), num_bytes=(2**30,) * 2, distinct=[("p1", "p0")])
    assert "0 orders to keep" in text and "which may share bytes" not in text
    with pytest.raises(BytecodeError, match="kernel has no pointer p7"):
        explain_bytecode(between_arrays(), distinct=[("p0", "p7")])


@pytest.mark.parametrize("in_loop", [False, True])
def test_arrays_that_tokens_order_through_others_may_share_bytes(in_loop):
    """p0 is stored, then p1 is loaded twice, then p2: a path of tokens."""

    def build(body, *arrays):
        zero = [body.integer(0)] * 2
        p, q, r = (body.view(array, *WIDE) for array in arrays)
        token = body.store(p, zero, body.constant(tile("f32", 4, 64), 0.0))

        def through(_, token):
            for view in (q, q, r):
                _, token = body.load(view, zero, token)
            return [token]

        if in_loop:
            body.loop(3, through, [token])
        else:
            through(None, token)

    data = function(build, *[POINTER] * 3)
    text = explained(data, num_bytes=(2**30,) * 3)
    assert "its tokens order p0 and p2" in text and "  store -> load.3  in" in text
    assert "order p1 and p2" not in text  # neither is stored
    text = explained(data, num_bytes=(2**30,) * 3, distinct=[("p0", "p2"), ("p0", "p1")])
    assert "0 orders to keep" in text


@pytest.mark.parametrize("may_alias", [[], [("p0", "p1")]])
def test_parameters_are_not_distinct_from_themselves_or_against_may_alias(may_alias):
    distinct = [("p1", "p0")] if may_alias else [("p0", "p0")]
    with pytest.raises(BytecodeError, match=r"--distinct p.,p0: "):
        explain_bytecode(between_arrays(), may_alias, distinct=distinct)


def test_a_memory_order_between_two_arrays_is_not_an_alias():
    text = explained(between_arrays(second_is_fence=True), num_bytes=(2**30,) * 2)
    assert "1 orders to keep" in text and "may share bytes" not in text


# -- names and rules -------------------------------------------------------------------------------


def test_a_loop_without_results_has_its_own_orders():
    def build(body, p, q):
        zero, views = body.integer(0), [body.view(x, *WIDE) for x in (p, q)]

        def outer(i, token):
            body.loop(4, lambda j: (body.load(views[1], [j, zero]), [])[1], [])
            after = body.one("addi", I32, NO_FLAGS, lhs=i, rhs=body.integer(1))
            return [body.copied(views[0], [i, zero], [after, zero], token)]

        body.loop(4, outer, [body.one("make_token", TOKEN)])

    text = explained(function(build, POINTER, POINTER), num_bytes=(2**30,) * 2)
    assert "store -> load.2  1 iteration of loop later" in text


def with_type(op, **fields):
    """The operation with other fields of its result's type."""
    first, *rest = op.results
    found = tuple(fields.get(n, first.type[n]) for n in FIELD_NAMES[first.type.kind])
    return replace(op, results=(replace(first, type=Type(first.type.kind, found)), *rest))


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("make_tensor_view", {"strides": (64,)}, "has not one stride per dimension"),
        ("make_tensor_view", {"shape": (DYNAMIC, 64)}, "has 0 operands for the shape"),
        ("make_partition_view", {"dim_map": (0, 0)}, "a dim_map that is not a permutation"),
        ("make_partition_view", {"tile": (4,)}, "has a tile that does not fit"),
        ("constant", {"element": bytecode.Type("i64")}, "has 4 bytes for tile<i64>"),
    ],
)
def test_an_operation_that_breaks_a_rule_is_named(name, fields, message):
    """Also where the reader, which decodes each part alone, accepts it."""

    def build(body, p):
        body.load(body.view(p, *WIDE), [body.integer(0)] * 2)

    (found,) = bytecode.read(function(build, POINTER)).functions
    changed = [with_type(op, **fields) if op.name == name else op for op in found.body.operations]
    with pytest.raises(BytecodeError, match=f"{name} .*{message}"):
        verify(replace(found, body=replace(found.body, operations=tuple(changed))))


def test_lost_names_what_is_lost():
    """The check that these tests rest on fails without the token."""

    def build(body: Body, p):
        zero, view = [body.integer(0)] * 2, body.view(p, *WIDE)
        value, _ = body.load(view, zero)
        body.store(view, zero, value)

    assert "share byte 0 of parameter 0" in lost(function(build, POINTER))[0]


# -- what the checker does not execute -------------------------------------------------------------


def never_executed(most):
    """Even rows are loaded, and odd ones stored in iterations of which there are `most`."""

    def build(body, p, n):
        view, zero, two = body.view(p, *WIDE), body.integer(0), body.integer(2)
        few = body.one("mini", I32, {"signedness": "signed"}, lhs=n, rhs=body.integer(most))
        value = body.constant(tile("f32", 4, 64), 0.0)

        def stored(k, token):
            twice = body.one("muli", I32, NO_FLAGS, lhs=k, rhs=two)
            row = body.one("addi", I32, NO_FLAGS, lhs=twice, rhs=body.integer(1))
            return [body.store(view, [row, zero], value, token)]

        _, token = body.load(view, [zero, zero])
        (token,) = body.loop(few, stored, [token])
        body.store(view, [two, zero], value, token)

    return function(build, POINTER, I32)


@pytest.mark.parametrize(("most", "kept"), [(0, 3), (1, 1), (2, 0)])
def test_what_no_execution_contains_keeps_its_orders(most, kept):
    """The store of a loop without iterations stays between the others, as in the file; that of one
    iteration is not executed twice, and follows itself."""
    found = reported(never_executed(most))

    assert not found.unchecked and f"{kept} orders to keep" in found.text
    assert ("none executes store, whose orders are kept" in found.text) == (most < 2)
    assert explain_bytecode(found.data)[0].count("orders to keep") == 1


def test_what_is_not_to_be_checked_keeps_no_order_for_that():
    assert "0 orders to keep" in reported(never_executed(0), unchecked=True).text
