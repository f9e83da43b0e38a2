"""Bytecode: what is written is read again, and damage is an error with a name."""

import random

import pytest
from packages.tokenplan.tests.tile_ir import kernels
from packages.tokenplan.tests.tile_ir.random_kernels import random_kernel
from packages.tokenplan.tests.tile_ir.test_layouts import LAYOUT_KERNELS

from tokenplan.tile_ir import bytecode, emit, explain_bytecode, orders_of
from tokenplan.tile_ir.bytecode import Block, Type
from tokenplan.tile_ir.bytecode.types import DYNAMIC, TOKEN, pointer, tile

VERSIONS = [(13, 1), (13, 2), (13, 3), (13, 4)]
QUICK, MUTATIONS = 100, 2_000
SEED = 27


def module(version=(13, 3)):
    found = orders_of(kernels.recurrence().described())
    return emit(found.described, found.kernel, found.kept, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_module_is_read_as_it_was_written(version):
    written = bytecode.write(module(version))

    assert bytecode.read(written) == module(version)
    assert bytecode.write(bytecode.read(written)) == written


@pytest.mark.parametrize("version", VERSIONS)
def test_the_compiler_accepts_every_version(tileiras, version):
    assert tileiras.compile_bytecode(bytecode.write(module(version)), "sm_90").cubin


def test_operations_carry_the_line_that_made_them():
    (function,) = bytecode.read(bytecode.write(module())).functions
    lines = {op.name: op.place.line for op in function.body.walk() if op.place}

    assert function.place and function.place.file.endswith("kernels.py")
    assert lines["load_view_tko"] == lines["exp2"] == lines["store_view_tko"]


def test_a_remark_belongs_to_one_operation_of_several_in_a_line(tileiras):
    kernel = kernels.TileKernel("pairs")
    a, b = (kernel.array(name, (64, 64), alignment=n) for name, n in (("a", 16), ("b", 4)))
    c = kernel.array("c", (64, 64))
    x = [kernel.load(array, (0, 0), (64, 64)) for array in (a, b)]
    kernel.store(c, (0, 0), kernel.compute("mma", *x, kernel.full((64, 64), 0.0)))
    found = orders_of(kernel.described())
    made = emit(found.described, found.kernel, found.kept)
    remarks = tileiras.compile_bytecode(bytecode.write(made), "sm_90").remarks
    said = {}
    for name, number, remark in tileiras.by_operation(made, remarks):
        said.setdefault((number, name), []).append(f"{remark.name} {remark.text}")
    loads = [" ".join(said[place]) for place in sorted(said) if place[1] == "load_view_tko"]

    assert len(loads) == 2, said
    assert "TMA Load" in loads[0] and "base pointer not 16-byte aligned" in loads[1]


def test_text_names_operations_types_and_lines():
    shown = bytecode.text(module())

    assert "entry recurrence(%0: tile<ptr<f32>>)" in shown
    assert "load_view_tko(view=%4, index=" in shown
    assert "partition_view<64x128, dim_map=(0, 1), tensor_view<8192x128xf32" in shown


def test_a_view_of_13_3_is_rejected_in_13_1():
    kernel = kernels.TileKernel("strided")
    a = kernel.array("a", (256, 64))
    kernel.load(a, (0, 0), (64, 64), traversal=(32, 64))
    found = orders_of(kernel.described())

    with pytest.raises(bytecode.BytecodeError, match=r"13\.1 has no .*strided_view"):
        bytecode.write(emit(found.described, found.kernel, found.kept, (13, 1)))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: b"\x7fELF" + data, "not Tile IR bytecode"),
        (lambda data: data[:8] + b"\x0d\x05" + data[10:], r"13\.5 is not supported"),
        (lambda data: data[:60], "truncated"),
        (lambda data: data[:12] + b"\x00", "no section of functions"),
        (lambda data: data + b"\x00", "the end section is not the last one"),
        (lambda data: data + data[12:], "the end section is not the last one"),
    ],
)
def test_foreign_newer_and_truncated_files_are_rejected_by_name(damage, message):
    with pytest.raises(bytecode.BytecodeError, match=message):
        bytecode.read(damage(bytecode.write(module())))


F32 = Type("f32")
VECTOR = Type("tensor_view", (F32, (4,), (1,), None))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (tile(tile("f32")), "a type has tile<f32> as element"),
        (tile(TOKEN), "a type has token as element"),
        (tile(VECTOR), "a type has tensor_view<4xf32, .* as element"),
        (tile(Type("ptr", (pointer("f32"), None))), "a type has ptr<f32> as number"),
        (tile(pointer("i4")), "a type has i4 as number"),
        (Type("tensor_view", (pointer("f32"), (4,), (1,), None)), "a type has ptr<f32> as number"),
        (Type("partition_view", ((4,), F32, (0,), None)), "a type has f32 as tensor"),
        (Type("partition_view", ((3,), VECTOR, (0,), None)), "powers of two, not .3."),
        (tile("f32", 4, 0), "extents of a tile are powers of two, not .4, 0."),
        (tile("f32", DYNAMIC), "extents of a tile are powers of two"),
        (tile("f32", 4), "a parameter of k is not a scalar"),
        (TOKEN, "a parameter of k is not a scalar"),
    ],
    ids=str,
)
@pytest.mark.parametrize("is_nested", [False, True])
def test_a_type_that_the_compiler_rejects_is_rejected_by_name(kind, message, is_nested):
    """Of a parameter, or of any type of the table."""
    kinds = [tile("i32"), Type("function", ((kind,), ())) if is_nested else kind]
    if is_nested and "parameter" in message:
        message = "a parameter of k is not a scalar"
    body = Block(
        tuple(bytecode.Value(n, k) for n, k in enumerate(kinds)),
        (bytecode.Operation("return", {"values": ()}, (), {}),),
    )
    data = bytecode.write(bytecode.Module((bytecode.Function("k", body),)))

    with pytest.raises(bytecode.BytecodeError, match=message):
        explain_bytecode(data)


def test_a_number_that_does_not_fit_its_field_is_not_written():
    kind = Type("tensor_view", (F32, (2**63,), (1,), None))
    body = Block((bytecode.Value(0, kind),), ())
    with pytest.raises(bytecode.BytecodeError, match="9223372036854775808 does not fit into 64"):
        bytecode.write(bytecode.Module((bytecode.Function("k", body),)))


def originals():
    """Files with views of every kind, pointers, atomic updates, fences and nests of loops."""
    made = [kernels.recurrence(), kernels.litmus("acq_rel"), layouts_of("gather", "rows_xor"),
            layouts_of("scatter", "chunks_xor"),
            *(random_kernel(seed, extended=True) for seed in range(4))]  # fmt: skip
    return [kernels.bytes_of(kernel) for kernel in made]


def layouts_of(family, name):
    return dict(LAYOUT_KERNELS[family].cases(dtype="f32"))[name]


def mutated(seed, number):
    """So many damaged files."""
    rng, good = random.Random(seed), originals()
    for n in range(number):
        data = bytearray(good[n % len(good)])
        for _ in range(rng.choice((1, 1, 2, 4))):
            data[rng.randrange(8, len(data))] = rng.choice(
                (0, 1, 2, 0x7F, 0xFF, rng.randrange(256))
            )
        cut = rng.randrange(len(data)) if rng.random() < 0.2 else len(data)
        yield bytes(data[:cut])


def is_rejected(data):
    """Whether the reader, or the report on what it reads, rejects the file by name."""
    try:
        explain_bytecode(data, budget=1_000)
    except bytecode.BytecodeError:
        return True
    return False


def rejected(mutations):
    return sum(map(is_rejected, mutated(SEED, mutations)))


def test_no_mutation_crashes_the_reader_or_the_report():
    assert QUICK // 4 < rejected(QUICK) < QUICK


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_no_mutation_of_many_crashes_the_reader_or_the_report():
    assert MUTATIONS // 4 < rejected(MUTATIONS) < MUTATIONS
