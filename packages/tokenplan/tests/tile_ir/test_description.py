"""Descriptions that break a rule of Tile IR, by the name of the access; memory orders."""

from contextlib import ExitStack

import pytest

from neuroncore.layout import Layout
from tokenplan.tile_ir import (
    DescriptionError,
    Order,
    TileKernel,
    bytecode,
    compiler,
    emit,
    orders_of,
)
from tokenplan.tile_ir.bytecode.reader import DEEPEST
from tokenplan.tile_ir.verdicts import ARCHITECTURES, DTYPES_SINCE, architecture, first_target


@pytest.mark.parametrize(
    ("tile", "options", "message"),
    [
        ((48, 64), {}, "load: extents of a tile are powers of two"),
        ((64,), {}, "load: array a has 2 dimensions"),
        (
            (64, 64),
            {"order": "release", "scope": "device"},
            "load: load cannot have order 'release'",
        ),
        ((64, 64), {"order": "weak", "scope": "device"}, "load: order weak with scope device"),
        ((64, 64), {"order": "acquire"}, "load: order acquire with scope None"),
        ((64, 64), {"hints": {"latencyy": 3}}, "load: unknown hint latencyy"),
        ((64, 64), {"hints": {"latency": 11}}, r"load: latency is one of \[1, 2, 3"),
        ((64, 64), {"padding": "one"}, "load: unknown padding 'one'"),
    ],
)
def test_a_mistake_is_named(tile, options, message):
    kernel = TileKernel("mistakes")
    a = kernel.array("a", (256, 64))

    with pytest.raises(DescriptionError, match=message):
        kernel.load(a, (0, 0), tile, **options)


def test_unknown_kernel_hints_dtypes_and_operations_are_named():
    with pytest.raises(DescriptionError, match="the kernel: unknown hint occupance"):
        TileKernel("k", occupance=2)
    kernel = TileKernel("k", occupancy=2)
    for dtype in ("f17", "ptr", "f4e2m1fn", "token"):
        with pytest.raises(DescriptionError, match=f"array a has the unknown dtype '{dtype}'"):
            kernel.array("a", (4,), dtype)
    with pytest.raises(DescriptionError, match="unknown operation expp"):
        kernel.compute("expp", kernel.full((4, 4), 1.0))


@pytest.mark.parametrize(("target", "kept"), [("sm_89", {}), ("sm_90", {"num_cta_in_cga": 4})])
def test_a_hint_that_a_target_does_not_have_is_noted_and_left_out(target, kept, caplog):
    """tileiras makes the same binary for sm_80 and sm_89 with clusters and without."""
    kernel = TileKernel("clusters", num_cta_in_cga=4, occupancy=2)
    a = kernel.array("a", (64, 64))
    kernel.store(a, (0, 0), kernel.full((64, 64), 1.0))
    found = orders_of(kernel.described(), target=target)
    with caplog.at_level("INFO", "neuroncore.notes"):
        module = emit(found.described, found.kernel, found.kept, target=target)

    assert module.functions[0].hints == {target: {**kept, "occupancy": 2}}
    assert ("num_cta_in_cga changes nothing here: sm_89 does not have it" in caplog.text) == (
        not kept
    )


def fenced(store_order="weak", load_order="weak"):
    """A store to a, then a load of b, twice."""
    kernel = TileKernel("fenced")
    a, b = kernel.array("a", (64, 64)), kernel.array("b", (64, 64))
    scope = {"weak": None}
    with kernel.loop("k", 2):
        kernel.store(a, (0, 0), kernel.full((64, 64), 1.0), order=store_order,
                     scope=scope.get(store_order, "device"))  # fmt: skip
        kernel.load(b, (0, 0), (64, 64), order=load_order, scope=scope.get(load_order, "device"))
    return orders_of(kernel.described())


def test_a_release_waits_for_all_before_it_and_an_acquire_precedes_all_after_it():
    own = Order("store", "store", "k", 1)

    assert set(fenced().kept) == {own}
    assert Order("load", "store", "k", 1) in fenced("release").needed
    assert Order("store", "load") not in fenced("release").needed
    assert Order("load", "store", "k", 1) in fenced("weak", "acquire").needed


def test_arrays_of_one_alias_group_stay_in_order():
    kernel = TileKernel("aliases")
    a = kernel.array("a", (64, 64), alias_group="g")
    b = kernel.array("b", (64, 64), alias_group="g")
    kernel.store(a, (0, 0), kernel.full((64, 64), 1.0))
    kernel.load(b, (0, 0), (64, 64))
    found = orders_of(kernel.described())

    assert found.kept == (Order("store", "load"),)
    assert [d.code for d in found.graph.diagnostics] == ["W6"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hints": {"allow_tma": 0}}, r"allow_tma is one of \[False, True\]"),
        ({"hints": {"latency": True}}, "latency is one of"),
        ({"traversal": (0, 64)}, "a traversal has 2 steps of 1 or more"),
        ({"traversal": (64,)}, "a traversal has 2 steps of 1 or more"),
        ({"index": (-1, 0)}, "indices are 0 to 2"),
        ({"index": (2**33, 0)}, "indices are 0 to 2"),
        ({"dtype": "i32", "padding": "nan"}, "integers are padded with zero"),
        ({"alignment": 0}, "aligned to a power of two"),
        ({"alignment": 3}, "aligned to a power of two"),
        ({"alignment": 2**63}, r"aligned to a power of two, at most 2\^62"),
        (
            {"traversal": (2**31, 64)},
            r"load: a traversal has 2 steps of 1 or more, less than 2\^31",
        ),
    ],
)
def test_what_the_compiler_rejects_or_ignores_is_rejected_by_name(options, message):
    kernel = TileKernel("wrong")
    dtype, alignment = options.pop("dtype", "f32"), options.pop("alignment", 16)
    index = options.pop("index", (0, 0))
    with pytest.raises(DescriptionError, match=message):
        kernel.load(kernel.array("a", (256, 64), dtype, alignment=alignment), index, (64, 64),
                    **options)  # fmt: skip


def test_names_of_loops_and_grids_may_repeat():
    kernel = TileKernel("same")
    a = kernel.array("a", (64 * 64, 64))
    g = kernel.grid("k", 2)
    for trips in (4, 63):
        with kernel.loop("k", trips) as i, kernel.loop("k", 1) as j:
            kernel.store(a, (i + j, 0), kernel.load(a, (i + g, 0), (64, 64)))
    found = orders_of(kernel.described())

    assert len(found.kernel.loops()) == 5 and found.kept


def test_what_belongs_to_another_kernel_or_loop_is_rejected():
    kernel, other = TileKernel("one"), TileKernel("other")
    a = kernel.array("a", (256, 64))
    with pytest.raises(DescriptionError, match="not an array of this kernel"):
        kernel.load(other.array("a", (256, 64)), (0, 0), (64, 64))
    with kernel.loop("k", 4) as k:
        pass
    with pytest.raises(DescriptionError, match="k is not a variable of the grid or a loop around"):
        kernel.load(a, (k, 0), (64, 64))
    with pytest.raises(DescriptionError, match="array h contains f16"):
        kernel.store(kernel.array("h", (64, 64), "f16"), (0, 0), kernel.load(a, (0, 0), (64, 64)))
    with pytest.raises(DescriptionError, match="0 to 2"), kernel.loop("n", -3):
        pass


@pytest.mark.parametrize(
    ("dtype", "mode", "options", "message"),
    [
        ("i32", "addf", {}, "atomic: i32 has no atomic 'addf'"),
        ("f32", "max", {}, "atomic: f32 has no atomic 'max'"),
        ("bf16", "addf", {}, "atomic: bf16 has no atomic 'addf'"),
        ("i32", "add", {"order": "weak", "scope": None}, "atomic cannot have order 'weak'"),
        ("i32", "add", {"scope": None}, "order acq_rel with scope None"),
        ("i32", "add", {"padding": "zero"}, "neither padding nor hints"),
        ("i32", "add", {"hints": {"latency": 2}}, "neither padding nor hints"),
    ],
)
def test_an_atomic_update_that_does_not_exist_is_rejected_by_name(dtype, mode, options, message):
    kernel = TileKernel("wrong")
    array, ones = kernel.array("a", (64, 64), dtype), kernel.full((64, 64), 1, dtype)

    with pytest.raises(DescriptionError, match=message):
        kernel.atomic(array, (0, 0), mode, ones, **options)
    with pytest.raises(DescriptionError, match="store: unknown option mode"):
        kernel.store(array, (0, 0), ones, mode="add")


def test_an_atomic_update_with_acq_rel_is_between_all_before_and_all_after_it():
    kernel = TileKernel("message")
    data, flag = kernel.array("data", (64, 64)), kernel.array("flag", (1, 1), "i32")
    kernel.store(data, (0, 0), kernel.full((64, 64), 1.0))
    kernel.atomic(flag, (0, 0), "add", kernel.full((1, 1), 1, "i32"))
    kernel.load(data, (0, 0), (64, 64))

    assert orders_of(kernel.described()).kept == (
        Order("store", "atomic"),
        Order("atomic", "load"),
    )


def test_names_indices_and_extents_that_do_not_exist_are_rejected():
    kernel = TileKernel("names")
    a = kernel.array("a", (64, 64))
    for wrong, message in (
        (lambda: TileKernel("two words"), "the name of a kernel is an identifier"),
        (lambda: kernel.array("1st", (64, 64)), "the name of an array is an identifier"),
        (lambda: kernel.array("empty", (0, 64)), "array empty: sizes of a layout"),
        (lambda: kernel.array("scalar", ()), "array scalar has no dimensions"),
        (lambda: kernel.load(a, (0.5, 0), (64, 64)), "an index is an integer"),  # pyrefly: ignore
        (lambda: kernel.load(a, (0, 0), (64, 64), ordre="weak"), "unknown option ordre"),
    ):
        with pytest.raises(DescriptionError, match=message):
            wrong()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda k, a: k.load(a, (0, 0), 64), "load, extents: integers in a sequence"),
        (lambda k, a: k.load(a, (0, 0), (64.0, 64)), "load, extents: integers"),
        (lambda k, a: k.load(a, 0, (64, 64)), "load: an index is an integer"),
        (lambda k, a: k.load(a, (0, 0), (64, 64), hints=[1]), "load: hints are values by name"),
        (lambda k, a: k.load(a, (0, 0), (64, 64), traversal=4), "load, traversal: integers"),
        (lambda k, a: k.array("b", (64, 64), alignment=2.5), "array b, alignment: an integer"),
        (lambda k, a: k.array("b", (None, 64)), "array b, extents: integers"),
        (lambda k, a: k.array("b", 64), "array b, extents: integers"),
        (lambda k, a: k.array("b", (64, 64), strides=(64, 1.0)), "array b, strides: integers"),
        (lambda k, a: k.array("b", a.layout, strides=(64, 1)), "array b: strides beside a layout"),
        (lambda k, a: k.grid("i", 2.5), "grid dimension i, blocks: an integer"),
        (lambda k, a: k.loop("k", 2.5).__enter__(), "loop k, iterations: an integer"),
        (lambda k, a: k.full(4, 1.0), "full, extents: integers"),
        (lambda k, a: k.store(a, (0, 0), k.full((64, 64), 1.0), padding="zero"),
         "store: a store has no padding"),
        (lambda k, a: k.store(a, (0, 0), [[1.0]]), "store: a tile of this kernel"),
        (lambda k, a: k.atomic(a, (0, 0), "addf", 1.0), "atomic: a tile of this kernel"),
        (lambda k, a: k.load("a", (0, 0), (64, 64)), "load: an array of this kernel"),
        (lambda k, a: k.store("a", (0, 0), k.full((64, 64), 1.0)), "store: an array of this"),
        (lambda k, a: k.update(None, k.full((64, 64), 1.0)), "update: a tile of this kernel"),
        (lambda k, a: TileKernel("class"), "the name of a kernel is an identifier"),
        (lambda k, a: k.array(2, (64, 64)), "the name of an array is an identifier"),
    ],
)  # fmt: skip
def test_what_is_not_an_integer_or_a_sequence_is_named(wrong, message):
    kernel = TileKernel("types")
    with pytest.raises(DescriptionError, match=message):
        wrong(kernel, kernel.array("a", (64, 64)))


@pytest.mark.parametrize(
    ("shape", "strides", "options", "index", "last"),
    [
        ((256, 64), None, {}, (4, 0), 3),
        ((200, 64), None, {"padding": "zero"}, (4, 0), 3),
        ((256, 64), (1, 256), {}, (4, 0), 3),
        ((256, 64), None, {"traversal": (32, 64)}, (8, 0), 7),
        ((256, 200), None, {}, (0, 4), 3),
    ],
)
def test_an_index_outside_of_a_view_is_rejected(shape, strides, options, index, last):
    """Tile IR does not define the access; a tile that is outside in part is masked."""
    kernel = TileKernel("outside")
    a = kernel.array("a", shape, strides=strides)
    kernel.load(a, tuple(min(n, last) for n in index), (64, 64), **options)

    with pytest.raises(DescriptionError, match=": no element of tile") as found:
        kernel.load(a, index, (64, 64), **options)
    assert f"expected: indices up to {last}" in str(found.value)
    with pytest.raises(DescriptionError, match="no element"), kernel.loop("k", index[0] + 1) as k:
        kernel.load(a, (k, index[1]), (64, 64), **options)
    with kernel.loop("empty", 0) as k:
        kernel.load(a, index, (64, 64), **options)


def test_a_loop_whose_statements_raise_is_not_part_of_the_kernel():
    kernel = TileKernel("interrupted")
    a = kernel.array("a", (256, 64))
    before = kernel.load(a, (0, 0), (64, 64))
    with pytest.raises(DescriptionError), kernel.loop("k", 4) as k:
        inside = kernel.load(a, (k, 0), (64, 64))
        kernel.load(a, (k, 0), (48, 64))

    assert len(kernel.described().body) == 1
    kernel.store(a, (0, 0), before)
    with pytest.raises(DescriptionError, match="is not a tile of this kernel here"):
        kernel.store(a, (0, 0), inside)
    with pytest.raises(DescriptionError, match="carry outside of loops"):
        kernel.carry(before)


@pytest.mark.parametrize(
    ("shape", "strides", "message"),
    [
        ((2**63, 8), None, r"array a: an extent or stride is not less than 2\^63"),
        ((8, 8), (2**63, 1), r"array a: an extent or stride is not less than 2\^63"),
        ((8, 8), (-(2**63), 1), r"array a: an extent or stride is not less than 2\^63"),
        ((8, 2**32, 2**32), None, r"array a: an extent or stride is not less than 2\^63"),
        (Layout.of((8, 8), offset=2**31), None, r"array a: the offset is not less than 2\^31"),
    ],
    ids=str,
)
def test_a_number_that_bytecode_cannot_contain_is_rejected_by_name(shape, strides, message):
    with pytest.raises(DescriptionError, match=message):
        TileKernel("far").array("a", shape, strides=strides)


def test_a_factor_of_an_index_has_32_bits_also_in_a_loop_of_one_iteration():
    kernel = TileKernel("far")
    a = kernel.array("a", (64, 64))
    with kernel.loop("k", 1) as k, pytest.raises(DescriptionError, match="load: indices are 0 to"):
        kernel.load(a, (2**40 * k, 0), (8, 8))


@pytest.mark.parametrize("dimension", [0, 1, 2])
def test_a_grid_has_as_many_blocks_as_cuda_launches(dimension):
    most = (2**31 - 1, 65_535, 65_535)[dimension]
    for blocks in (most, most + 1):
        kernel = TileKernel("grids")
        for n in range(dimension):
            kernel.grid(f"before{n}", 1)
        if blocks == most:
            kernel.grid("g", blocks)
        else:
            with pytest.raises(DescriptionError, match=f"grid dimension g has 1 to {most:,} block"):
                kernel.grid("g", blocks)


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (Order("missing", "load"), "missing is not an access of the kernel"),
        (Order("store", "missing"), "missing is not an access of the kernel"),
        (Order("store", "load", "q", 1), "q is not a loop around both accesses"),
        (Order("store", "load", "g", 1), "g is not a loop around both accesses"),
        (Order("store", "last", "k", 1), "k is not a loop around both accesses"),
        (Order("store", "load", "k", 0), "the distance is not 1 or more"),
        (Order("load", "store"), "the sink is not after the source"),
        (Order("load", "load"), "the sink is not after the source"),
    ],
    ids=str,
)
def test_an_order_that_no_token_expresses_is_rejected_by_name(order, message):
    kernel = TileKernel("ordered")
    kernel.grid("g", 4)
    a = kernel.array("a", (64, 64))
    with kernel.loop("k", 2):
        kernel.store(a, (0, 0), kernel.full((8, 8), 1.0))
        kernel.load(a, (0, 0), (8, 8))
    kernel.load(a, (0, 0), (8, 8), name="last")
    found = orders_of(kernel.described())

    with pytest.raises(DescriptionError, match=message) as wrong:
        emit(found.described, found.kernel, (order,))
    assert str(order) in str(wrong.value)
    other = orders_of(fenced().described)
    with pytest.raises(DescriptionError, match="ordered is not the kernel of this description"):
        emit(other.described, found.kernel, ())


def test_loops_are_nested_as_deep_as_bytecode_is_read():
    kernel = TileKernel("deep")
    a = kernel.array("a", (8,))
    with ExitStack() as stack:
        for n in range(DEEPEST):
            stack.enter_context(kernel.loop(f"k{n}", 2))
        with pytest.raises(DescriptionError, match="loop more: loops are nested at most 64 deep"):
            stack.enter_context(kernel.loop("more", 2))
        kernel.store(a, (0,), kernel.full((8,), 1.0))
    found = orders_of(kernel.described())

    assert len(found.kept) == DEEPEST
    module = emit(found.described, found.kernel, found.kept)
    assert bytecode.read(bytecode.write(module)) == module


@pytest.mark.parametrize(("dtype", "since"), [*DTYPES_SINCE.items(), ("i8", 80)])
def test_a_dtype_that_a_target_does_not_have_is_rejected_by_name(dtype, since):
    kernel = TileKernel("narrow")
    a, b = kernel.array("a", (64, 64), dtype), kernel.array("b", (64, 64), dtype)
    kernel.store(b, (0, 0), kernel.load(a, (0, 0), (16, 16)))
    described = kernel.described()
    first = first_target(described)
    found = orders_of(described, target=first)

    for target in ARCHITECTURES:
        if architecture(target) >= since:
            assert orders_of(described, target=target).kept == found.kept
            continue
        with pytest.raises(DescriptionError, match=f"array a: {target} does not have {dtype}"):
            orders_of(described, target=target)
        with pytest.raises(DescriptionError, match=f"array a: {target} does not have {dtype}"):
            emit(described, found.kernel, found.kept, target=target)
    assert architecture(first) == max(since, 90) or first == "sm_90"


@pytest.mark.parametrize("dtype", DTYPES_SINCE)
def test_the_compiler_rejects_these_dtypes_too(tileiras, dtype):
    kernel = TileKernel("narrow")
    a, b = kernel.array("a", (64, 64), dtype), kernel.array("b", (64, 64), dtype)
    kernel.store(b, (0, 0), kernel.load(a, (0, 0), (16, 16)))
    described = kernel.described()
    found = orders_of(described, target=first_target(described))
    data = bytecode.write(emit(described, found.kernel, found.kept, target="sm_120"))

    at = next(n for n, t in enumerate(ARCHITECTURES) if architecture(t) >= DTYPES_SINCE[dtype])
    compiler.compile_bytecode(data, ARCHITECTURES[at])
    with pytest.raises(compiler.RejectionError, match="unsupported type"):
        compiler.compile_bytecode(data, ARCHITECTURES[at - 1])
