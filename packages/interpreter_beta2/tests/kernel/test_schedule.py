"""`kernel.with_schedule`: edges by name are held to, or rejected."""

import numpy as np
import pytest

from neuroncore.checks import watching
from neuroncore.errors import AttributeValueError, LaunchError, SignatureError, UnsupportedError
from neuroncore.program import capture

X = np.full((4, 8), 3, np.float32)


def kernel(lang, *names):
    """One that clears tiles by instructions of these names, then gives its argument."""
    nl, nisa = lang.nl, lang.nisa

    def body(x):
        for name in names:
            nisa.memset(nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.sbuf), 0.0, name=name)
        tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x, name="load")
        return lang.out(tile)

    return lang.nki.jit(body)


@pytest.mark.parametrize("edges", [
    [("b", "a")], [("c", ["a", "b"])], [("b", "a"), ("c", "b"), ("load", ("a", "c"))], [],
], ids=str)  # fmt: skip
def test_edges_that_agree_with_program_order_change_no_value(every, edges):
    assert np.array_equal(kernel(every, "a", "b", "c").with_schedule(edges)(X), X)


def test_every_launch_and_core_begins_anew(now):
    scheduled = kernel(now, "a", "b").with_schedule([("b", "a")])

    assert np.array_equal(scheduled(X), scheduled(X))
    assert np.array_equal(scheduled[1](X), X)


def test_a_schedule_is_added_to_another_and_leaves_the_kernel_as_it_was(now):
    plain = kernel(now, "a", "b")
    both = plain.with_schedule([("b", "a")]).with_schedule([("a", "b")])

    assert np.array_equal(plain(X), X)
    with pytest.raises(AttributeValueError, match="'a' is to run after 'b' and has run before it"):
        both(X)


def test_an_edge_against_program_order_is_rejected_at_the_instruction(every):
    scheduled = kernel(every, "a", "b").with_schedule([("a", "b")])

    with pytest.raises(AttributeValueError, match="'a' is to run after 'b'") as caught:
        scheduled(X)

    assert "nisa.memset" in str(caught.value)


def test_a_name_that_no_instruction_has_is_rejected(every):
    with pytest.raises(LaunchError, match="no instruction is called 'z'"):
        kernel(every, "a").with_schedule([("load", "z")])(X)


def test_a_name_that_two_instructions_have_is_rejected(every):
    with pytest.raises(LaunchError, match="two instructions are called 'a'"):
        kernel(every, "a", "a").with_schedule([("load", "a")])(X)


@pytest.mark.parametrize("wrong", ["ab", 3, [("a",)], [("a", 1)], [("a", [])], [("a", ["b", 2])]],
                         ids=str)  # fmt: skip
def test_what_are_no_pairs_of_names_is_rejected(every, wrong):
    with pytest.raises(SignatureError, match="with_schedule takes pairs of names"):
        kernel(every, "a").with_schedule(wrong)


def test_an_instruction_does_not_run_after_itself(every):
    with pytest.raises(AttributeValueError, match="'a' runs after itself"):
        kernel(every, "a").with_schedule([("a", ["b", "a"])])


def test_a_program_rejects_an_edge(now):
    with pytest.raises(UnsupportedError, match="with_schedule, which no program says"):
        capture(kernel(now, "a", "b").with_schedule([("b", "a")]), X)


def test_checks_see_the_kernel_as_ever(now):
    with watching("memory", "race") as report:
        kernel(now, "a", "b").with_schedule([("b", "a")])(X)

    assert not list(report)


def test_a_kernel_inside_a_kernel_keeps_no_edges(now):
    inner = kernel(now, "a", "b").with_schedule([("b", "a")])

    with pytest.raises(UnsupportedError, match="is called from a kernel"):
        now.nki.jit(lambda x: inner(x))(X)
