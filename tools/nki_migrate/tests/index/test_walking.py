"""Walking a tree gives what `ast.walk` gives, without what has no place in the file."""

import ast

import pytest

from nki_migrate.index import children, walk

PLACELESS = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)
TEXTS = {
    "expressions": "a = [-x + 1 if y and not z else f(*p, k=2, **q), {**m, 1: 2}, w[0:n, ...]]",
    "statements": "import a.b as c\nfor i in r:\n    x += 1\nelse:\n    assert f'{x!r:>{w}}', 'm'",
    "functions": "@d(1)\nasync def f(a, /, b: int = 1, *c, e, g=2, **h) -> None:\n    global q",
    "patterns": "match x:\n    case A(c, b=1) | [*d]: pass\n    case {1: e, **r} if r: pass",
    "handlers": "try:\n    pass\nexcept E as e:\n    raise X from e\nfinally:\n    lambda: (yield)",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_walk_meets_what_ast_walk_meets_in_its_order(text: str) -> None:
    tree = ast.parse(text)
    assert walk(tree) == [n for n in ast.walk(tree) if not isinstance(n, PLACELESS)]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_children_are_those_of_ast(text: str) -> None:
    for node in ast.walk(ast.parse(text)):
        expected = [n for n in ast.iter_child_nodes(node) if not isinstance(n, PLACELESS)]
        assert children(node) == expected
