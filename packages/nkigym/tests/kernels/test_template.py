"""A block written out by a template is the block rewritten."""

import pytest
from packages.nkigym.tests.loop_functions import SMALL

from neuroncore.enums import MemorySpace
from neuroncore.program import (
    Access,
    Affine,
    Allocate,
    Buffer,
    Indirect,
    Loop,
    make_call,
    walk,
)
from nki_dtypes import float32, int32
from nkigym.baseline import baseline_kernel
from nkigym.kernels.template import Template
from nkigym.kernels.tree import rewritten

VALUES = (Affine(3), Affine(0), Affine(2, (("row", 4),)), Affine(-1, (("a", 1), ("z", 7))))


@pytest.mark.parametrize("function", SMALL, ids=lambda f: f.__name__)
def test_every_loop_of_a_kernel_is_written_with_each_value(function):
    program = baseline_kernel(function, *SMALL[function])
    loops = [s for s in walk(program.body) if isinstance(s, Loop)]
    for loop in loops:
        made = [s.buffer.name for s in walk(loop.body) if isinstance(s, Allocate)]
        template = Template(loop.body, (loop.variable,), made)
        for number, value in enumerate(VALUES):
            names = {name: f"{name}_{number}" for name in made}
            values = {loop.variable: value}

            assert template.written(values, names) == rewritten(loop.body, values, names)


def test_two_variables_and_an_index_on_the_device():
    i, j = Affine.variable("i"), Affine.variable("j")
    index = Access("index", 2 * i, (1, 1), (1, 1), int32)
    source = Access("x", 8 * i + j, (16, 4), (64, 1), None, Indirect("scalar", index, 1))
    copy = make_call("dma_copy", dst=Access("t", 4 * j, (16, 4), (8, 1)), src=source)
    body = (Allocate(Buffer("t", (16, 8), float32, MemorySpace.sbuf)), copy)
    template = Template(body, ("i", "j"), ["t"])

    for value in VALUES:
        values, names = {"i": value, "j": Affine(5)}, {"t": "u"}
        assert template.written(values, names) == rewritten(body, values, names)


def test_what_does_not_change_is_shared():
    program = baseline_kernel(lambda a, b: a + b, "f32[128, 64]", "f32[128, 64]")

    written = Template(program.body, ("no_loop",), ()).written({"no_loop": Affine(1)}, {})

    assert all(
        a is b for a, b in zip(written, program.body, strict=True) if not isinstance(a, Loop)
    )
