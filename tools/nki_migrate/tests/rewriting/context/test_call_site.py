"""Arguments of 0.1 calls by parameter name."""

from __future__ import annotations

import ast

import pytest

from neuroncore.surface import instruction_names, signature
from nki_migrate.rewriting.context.call_site import NOWHERE, bind


def call(text: str) -> ast.Call:
    node = ast.parse(text, mode="eval").body
    assert isinstance(node, ast.Call)
    return node


def test_arguments_are_named_by_the_documented_signature():
    site = bind("nisa.dma_transpose", call("f(tile, axes=order)"), NOWHERE)

    assert site is not None
    named = {name: ast.unparse(node) for name, node in site.arguments.items()}
    assert named == {"src": "tile", "axes": "order"}


def test_an_argument_that_is_given_twice_is_not_bound():
    assert bind("nisa.dma_transpose", call("f(tile, other, axes=order)"), NOWHERE) is None


def test_arguments_of_unknown_number_are_not_bound():
    assert bind("nisa.dma_transpose", call("f(*tiles)"), NOWHERE) is None
    assert bind("nisa.dma_transpose", call("f(tile, **options)"), NOWHERE) is None


def test_parameters_behind_the_star_are_not_bound_by_position():
    for text in ("f(tile, mask)", "f(tile, mask, dtype, engine)"):
        assert bind("nisa.nc_transpose", call(text), NOWHERE) is None
    assert bind("nisa.dma_copy", call("f(tile, source)"), NOWHERE) is None


@pytest.mark.parametrize("name", instruction_names("0.1"))
def test_as_many_arguments_are_bound_by_position_as_a_signature_lists(name):
    found = signature(name, "0.1")
    assert found is not None
    positional = [p.name for p in found.params if not p.keyword_only]
    texts = ", ".join(f"v{place}" for place in range(len(positional)))

    site = bind(f"nisa.{name}", call(f"f({texts})"), NOWHERE)

    assert site is not None
    assert list(site.arguments) == positional
    assert bind(f"nisa.{name}", call(f"f({texts}{', ' * bool(texts)}more)"), NOWHERE) is None
