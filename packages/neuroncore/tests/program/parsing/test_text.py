"""What a program prints parses back to the same program."""

from __future__ import annotations

import string
from dataclasses import replace
from math import inf, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuroncore.enums import (
    DgeMode,
    DmaEngine,
    MatmulPerfMode,
    MemorySpace,
    NcVersion,
    OobMode,
    ReduceCmd,
)
from neuroncore.errors import KernelError, SignatureError
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.program import (
    Access,
    Affine,
    Allocate,
    Buffer,
    Call,
    Indirect,
    Loop,
    Program,
    Statement,
    access_at,
    make_call,
    parse_program,
    print_program,
    subscript,
    whole,
)
from neuroncore.program.ir.subscripts import Slice
from nki_dtypes import ALL, float32, int32, uint8

DOUBLE = """\
program("trn2", "0.6")
def double(x: float32[256, 512]):
    out = buffer(float32[256, 512], shared_hbm)
    for i in range(2):
        t = buffer(float32[128, 512], sbuf)
        dma_copy(dst=t[:, :], src=x[128*i : 128*i + 128, :])
        tensor_scalar(dst=t[:, :], data=t[:, :], operand0=2.0, op0=multiply)
        dma_copy(dst=out[128*i : 128*i + 128, :], src=t[:, :])
    return out
"""
T = Buffer("t", (128, 4, 64), float32, MemorySpace.sbuf)
X = Buffer("x", (128, 4, 64), float32, MemorySpace.hbm)


def shown(access: Access, *buffers: Buffer) -> str:
    """How the access prints, as the source of a copy."""
    body = (make_call("tensor_copy", dst=whole(T), src=access),)
    text = print_program(Program("p", (X, *buffers), (Allocate(T), *body), ()))
    return text.partition("src=")[2].partition(")\n")[0]


def test_a_program_reads_like_a_kernel():
    assert print_program(parse_program(DOUBLE)) == DOUBLE


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ([Slice(Affine(), 128), Slice(Affine(), 4), Slice(Affine(), 64)], "t[:, :, :]"),
        ([Slice(Affine(), 128), Affine(3), Slice(Affine(8), 16)], "t[:, 3, 8:24]"),
        ([Slice(Affine(), 1), Slice(Affine(), 2, 3), Affine()], "t[0:1, 0:4:3, 0]"),
    ],
)
def test_a_box_prints_as_a_subscript(items, text):
    assert shown(access_at(T, items)) == text


def test_starts_follow_loop_variables_with_the_largest_step_first():
    start = 128 * Affine.variable("m") - Affine.variable("k") + 5

    assert str(start) == "128*m - k + 5"
    assert subscript(access_at(X, [start, Affine(), Slice(Affine(), 64)]), X) is not None


def test_an_access_that_is_no_box_prints_its_strides():
    assert shown(Access("t", Affine(5), (128, 8), (256, 0))) == "t.ap([[256, 128], [0, 8]], 5)"
    assert (
        shown(Access("t", Affine(), (128, 1024), (1024, 1), uint8))
        == "t.ap([[1024, 128], [1, 1024]], dtype=uint8)"
    )


def test_an_indirect_access_prints_its_index():
    rows = Buffer("rows", (128, 1), int32, MemorySpace.sbuf)
    moved = Access("x", Affine(), (128, 256), (0, 1), indirect=Indirect("vector", whole(rows)))

    assert shown(moved, rows) == "x.ap([[0, 128], [1, 256]], vector_offset=rows[:, :], dim=0)"


# -- every program --------------------------------------------------------------------------------

NAMES = st.text(string.ascii_lowercase, min_size=1, max_size=3).map("v_".__add__)
SMALL = st.integers(-3, 300)
NUMBERS = st.one_of(
    st.integers(-(2**40), 2**40), st.floats(allow_nan=True), st.sampled_from([inf, -inf, nan, -0.0])
)
CANDIDATES = [
    None, True, False, 0, 1, 2, 7, -1.5, (), (0, 0), (32, 32), [1, 2], ((1, 8), (-2, 4)),
    tuple(range(32)), "add", "maximum", "exp", "relu", "bitwise_and", (2, 0, 1),
    *DgeMode, *DmaEngine, *MatmulPerfMode, *NcVersion, *OobMode, *ReduceCmd,
]  # fmt: skip


def legal_values(convert, default) -> list:
    """The candidates that an attribute takes, converted."""
    found = []
    for candidate in [default, *CANDIDATES]:
        try:
            found.append(convert(candidate))
        except (KernelError, TypeError, ValueError, IndexError):
            continue
    return found


ATTRIBUTES = {
    record.name: {n: legal_values(a.convert, a.default) for n, a in record.attrs.items()}
    for record in INSTRUCTIONS.values()
}


@st.composite
def affines(draw, loops):
    terms = draw(st.dictionaries(st.sampled_from(loops), st.integers(-600, 600))) if loops else {}
    made = Affine(draw(SMALL))
    for name, coefficient in terms.items():
        made += Affine.variable(name, coefficient)
    return made


@st.composite
def accesses(draw, buffers, loops, deep=True):
    buffer = draw(st.sampled_from(buffers))
    if draw(st.booleans()):
        items = [
            draw(affines(loops))
            if draw(st.booleans()) and d
            else Slice(draw(affines(loops)), draw(st.integers(1, n)), draw(st.integers(1, 3)))
            for d, n in enumerate(buffer.shape)
        ]
        return access_at(buffer, items)
    rank = draw(st.integers(1, 4))
    shape = tuple(draw(st.lists(st.integers(1, 64), min_size=rank, max_size=rank)))
    strides = tuple(draw(st.lists(st.integers(-2, 600), min_size=rank, max_size=rank)))
    indirect = None
    if deep and draw(st.booleans()):
        index = draw(accesses(buffers, loops, deep=False))
        indirect = Indirect(draw(st.sampled_from(["scalar", "vector"])), index, draw(SMALL))
    dtype = draw(st.none() | st.sampled_from(ALL))
    return Access(buffer.name, draw(affines(loops)), shape, strides, dtype, indirect)


@st.composite
def calls(draw, buffers, loops):
    record = draw(st.sampled_from(list(INSTRUCTIONS.values())))
    operand = st.none() | accesses(buffers, loops) | NUMBERS
    fields = {name: draw(operand) for name in record.operands}
    fields |= {n: draw(st.sampled_from(v)) for n, v in ATTRIBUTES[record.name].items()}
    label = draw(st.none() | st.text(max_size=6))
    made = make_call(record.name, label, **fields)
    return Call(made.instruction, made.operands, made.attrs, made.name)


SMALL_SHAPES = st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple)
SHAPES = st.lists(st.integers(1, 300), min_size=1, max_size=4).map(tuple)
BUFFERS = st.tuples(
    SHAPES,
    st.sampled_from(ALL),
    st.sampled_from(list(MemorySpace)),
    st.none() | st.tuples(st.sampled_from([0, 32, 64]), st.integers(0, 4096)),
)


@st.composite
def programs(draw):
    parameters = [
        Buffer(f"x{i}", draw(SHAPES), draw(st.sampled_from(ALL)), MemorySpace.hbm)
        for i in range(draw(st.integers(1, 3)))
    ]
    buffers = list(parameters)

    def block(loops):
        body: list[Statement] = []
        for _ in range(draw(st.integers(0, 3))):
            kind = draw(st.sampled_from(["call", "allocate", "constant", "loop"]))
            if kind == "allocate":
                buffers.append(Buffer(f"b{len(buffers)}", *draw(BUFFERS)))
                body.append(Allocate(buffers[-1]))
            elif kind == "constant":
                blank = Buffer(
                    f"b{len(buffers)}", draw(SMALL_SHAPES), draw(st.sampled_from(ALL)),
                    MemorySpace.shared_hbm,
                )  # fmt: skip
                content = draw(st.binary(min_size=blank.num_bytes, max_size=blank.num_bytes))
                buffers.append(replace(blank, content=content))
                body.append(Allocate(buffers[-1]))
            elif kind == "call":
                body.append(draw(calls(buffers, loops)))
            elif len(loops) < 3:
                variable = draw(NAMES.filter(lambda n: n not in loops))
                start, stop = draw(SMALL), draw(SMALL)
                inner = block([*loops, variable])
                body.append(Loop(variable, start, stop, inner, draw(st.integers(1, 5))))
        return tuple(body)

    body = block([])
    results = draw(st.lists(st.sampled_from(buffers), max_size=2, unique=True))
    target = draw(st.sampled_from(["trn1", "trn2", "trn3"]))
    return Program("p", tuple(parameters), body, tuple(b.name for b in results), target)


@settings(max_examples=150, deadline=None)
@given(programs())
def test_every_program_parses_back_to_itself(program):
    assert parse_program(print_program(program)) == program


@pytest.mark.thorough
@settings(max_examples=5000, deadline=None)
@given(programs())
def test_every_program_parses_back_to_itself_thoroughly(program):
    assert parse_program(print_program(program)) == program


@pytest.mark.parametrize("record", INSTRUCTIONS.values(), ids=lambda r: r.name)
def test_every_attribute_of_every_record_parses_back(record):
    first = {name: values[0] for name, values in ATTRIBUTES[record.name].items()}
    for name, values in ATTRIBUTES[record.name].items():
        for value in values:
            body = (make_call(record.name, **{**first, name: value}),)
            program = Program("p", (), body, ())
            assert parse_program(print_program(program)) == program


def test_an_operation_that_is_not_given_is_asked_for():
    with pytest.raises(SignatureError, match="nothing is given for op0 and op1"):
        make_call("scalar_tensor_tensor")
