"""Complexity counts decisions, function by function."""

from __future__ import annotations

import ast

import pytest
from complexity import LIMIT, complexity, functions, source_functions

MOST_COMPLEX_FUNCTIONS = 143  # lower it with every function that is simplified


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("return 1", 1),
        ("return 1 if x else 2", 2),
        ("return x and y or z", 3),
        ("return [i for i in x if i]", 2),
        ("for i in x:\n  if i:\n   assert i", 4),
        ("try:\n  x()\n except A:\n  pass\n except B:\n  pass", 3),
        ("match x:\n  case 1:\n   pass\n  case _:\n   pass", 3),
    ],
)
def test_each_decision_counts_one(body: str, count: int):
    tree = ast.parse(f"def f(x, y, z):\n {body}\n")

    assert complexity(tree.body[0]) == count


def test_a_nested_function_is_counted_by_itself(tmp_path):
    path = tmp_path / "nested.py"
    path.write_text("def f(x):\n  def g(y):\n    return y if y else x\n  return g if x else None\n")

    assert {f.name: f.complexity for f in functions(path)} == {"f": 2, "g": 2}


def test_few_functions_have_many_decisions():
    assert sum(f.complexity > LIMIT for f in source_functions()) <= MOST_COMPLEX_FUNCTIONS
