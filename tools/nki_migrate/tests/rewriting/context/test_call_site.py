"""Arguments of 0.1 calls by parameter name."""

from __future__ import annotations

import ast

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
