"""Specs: one object each, derived sizes, and their text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroncore.enums import MemorySpace
from neuroncore.spec import Indirection, SpecTextError, make_spec, parse_spec, row_major
from nki_dtypes import ALL, UnknownDTypeError, bfloat16, float32

SHAPES = st.lists(st.integers(1, 9), min_size=1, max_size=5).map(tuple)


@st.composite
def specs(draw):
    shape = draw(SHAPES)
    strides = st.lists(st.integers(-50, 50), min_size=len(shape), max_size=len(shape)).map(tuple)
    return make_spec(
        shape,
        draw(st.just(row_major(shape)) | strides),
        draw(st.sampled_from(ALL)),
        draw(st.sampled_from(list(MemorySpace))),
        start=draw(st.sampled_from([0, 16, 32, 96])),
        mutable=draw(st.booleans()),
        bank_offset=draw(st.sampled_from([0, 4, 1024])),
    )


def text_of(spec):
    start, offset = f"@{spec.start}", f"+{spec.bank_offset}"
    strides = f"strides{spec.strides}" if len(spec.shape) > 1 else f"strides({spec.strides[0]})"
    mark = "" if spec.mutable else "immutable"
    return f"{spec.dtype}{list(spec.shape)} {spec.space.name} {start} {offset} {strides} {mark}"


@given(specs())
def test_text_is_read_as_the_spec_that_it_describes(spec):
    assert parse_spec(text_of(spec)) is spec


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("float32[4,8] sbuf", "float32[4, 8] sbuf"),
        ("  bf16[4]   hbm ", "bfloat16[4] hbm"),
        ("float32[4, 8] psum @32 +1024", "float32[4, 8] psum @32 +1024"),
        ("int8[4, 8] sbuf strides(8, 1)", "int8[4, 8] sbuf"),
        ("int8[4, 8] sbuf strides(16, 2) immutable", "int8[4, 8] sbuf strides(16, 2) immutable"),
        ("uint8[2, 3] shared_hbm", "uint8[2, 3] shared_hbm"),
    ],
)
def test_spaces_aliases_and_defaults_make_no_difference(text, canonical):
    assert parse_spec(text) is parse_spec(canonical)


@pytest.mark.parametrize(
    "text",
    [
        "", "float32", "float32[4, 8]", "float32[4, 8] dram", "float32[] sbuf", "float32[0] sbuf",
        "float32[4, 8] sbuf strides(1)", "float32[4, x] sbuf", "float32[4] sbuf @", "[4] sbuf",
    ],
)  # fmt: skip
def test_other_texts_are_rejected_with_an_example(text):
    with pytest.raises(SpecTextError) as raised:
        parse_spec(text)

    assert "float32[4, 8] sbuf @32" in str(raised.value)


def test_an_unknown_dtype_is_named():
    with pytest.raises(UnknownDTypeError, match="floaty"):
        parse_spec("floaty[4] sbuf")


def test_equal_fields_are_the_same_object_and_other_fields_another():
    spec = parse_spec("float32[4, 8] sbuf")

    assert make_spec((4, 8), (8, 1), float32, MemorySpace.sbuf) is spec
    changes = {
        "shape": (8, 4), "strides": (16, 1), "dtype": bfloat16, "space": MemorySpace.psum,
        "start": 32, "mutable": False, "fresh": True, "bank_offset": 4,
        "indirect": Indirection("scalar", 0, 8),
    }  # fmt: skip
    assert all(spec.but(**{name: value}) is not spec for name, value in changes.items())
    assert all(spec.but(**{n: v}).but(**{n: getattr(spec, n)}) is spec for n, v in changes.items())


def test_sizes_that_follow_from_the_shape():
    spec = parse_spec("bfloat16[4, 2, 8] sbuf")

    assert (spec.partitions, spec.free, spec.size, spec.rank) == (4, 16, 64, 3)
    assert spec.free_bytes == 32


@pytest.mark.parametrize(
    ("text", "contiguous", "repeats"),
    [
        ("float32[4, 8] sbuf strides(100, 1)", True, False),
        ("float32[4, 2, 8] sbuf strides(100, 8, 1)", True, False),
        ("float32[4, 2, 8] sbuf strides(100, 16, 1)", False, False),
        ("float32[4, 1, 8] sbuf strides(100, 99, 1)", True, False),
        ("float32[4, 8] sbuf strides(100, 0)", False, True),
        ("float32[4, 1] sbuf strides(100, 0)", True, False),
    ],
)
def test_contiguity_and_repetition(text, contiguous, repeats):
    spec = parse_spec(text)

    assert spec.free_is_contiguous is contiguous
    assert spec.repeats is repeats
