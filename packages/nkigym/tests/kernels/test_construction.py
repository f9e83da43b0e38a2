"""What is made quickly is what the constructors make."""

from dataclasses import FrozenInstanceError

import pytest

from neuroncore.enums import MemorySpace
from neuroncore.errors import Place
from neuroncore.program import Access, Affine, Allocate, Buffer, Call, Indirect, Loop, make_call
from nki_dtypes import bfloat16, int32
from nkigym.kernels.construction import (
    new_access,
    new_affine,
    new_allocate,
    new_buffer,
    new_call,
    new_loop,
)

INDEX = Access("index", Affine(), (1, 1), (1, 1), int32)
LIKE = Access("old", Affine(3), (128, 2, 64), (512, 128, 1), bfloat16, Indirect("scalar", INDEX, 1))


def test_an_access_made_quickly_is_one():
    offset = Affine.variable("i", 2)

    made = new_access(LIKE, "new", offset, (256, 64, 1))

    assert type(made) is Access
    assert made == Access("new", offset, LIKE.shape, (256, 64, 1), LIKE.dtype, LIKE.indirect)
    assert hash(made) == hash(
        Access("new", offset, LIKE.shape, (256, 64, 1), LIKE.dtype, LIKE.indirect)
    )
    with pytest.raises(FrozenInstanceError):
        setattr(made, "buffer", "other")  # noqa: B010


def test_a_call_made_quickly_is_one():
    like = make_call("memset", name="clear", dst=LIKE, value=0.0)
    operands = {**like.operands, "value": 1.0}

    made = new_call(like, operands)

    assert type(made) is Call
    assert made == Call(like.instruction, operands, like.attrs, like.name, like.origin)
    assert made.origin is like.origin
    with pytest.raises(FrozenInstanceError):
        setattr(made, "name", "other")  # noqa: B010


def test_an_allocation_made_quickly_is_one():
    like = Allocate(Buffer("old", (128, 64), bfloat16, MemorySpace.sbuf, (0, 512)))

    made = new_allocate(like, new_buffer(like.buffer, "new", (128, 2, 64)))

    assert type(made) is Allocate and type(made.buffer) is Buffer
    assert made == Allocate(Buffer("new", (128, 2, 64), bfloat16, MemorySpace.sbuf, (0, 512)))
    assert made.origin is like.origin
    with pytest.raises(FrozenInstanceError):
        setattr(made.buffer, "name", "other")  # noqa: B010


def test_an_offset_made_quickly_is_one():
    made = new_affine(3, (("i", 2),))

    assert type(made) is Affine
    assert made == 2 * Affine.variable("i") + 3 and hash(made) == hash(Affine(3, (("i", 2),)))


def test_a_loop_made_quickly_is_one():
    like = Loop("i", 2, 9, (), 3, Place("kernel.py", 4))
    body = (Allocate(Buffer("t", (128, 64), bfloat16, MemorySpace.sbuf)),)

    made = new_loop(like, body)

    assert type(made) is Loop
    assert made == Loop("i", 2, 9, body, 3)
    assert made.origin is like.origin
    with pytest.raises(FrozenInstanceError):
        setattr(made, "body", ())  # noqa: B010
