"""Plans applied to lines give what the concrete syntax tree gives."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from nki_migrate.engine import migration
from nki_migrate.engine.migration import migrate_source
from nki_migrate.rewriting.plan.application import apply_plan
from nki_migrate.rewriting.plan.changes import Change, apply_to_lines
from nki_migrate.settings.request import Request

ROOT = Path(__file__).parents[5]
FILES = [
    *sorted((ROOT / "examples").glob("beta1*/*.py")),
    *sorted((ROOT / "tests" / "corpora" / "styles" / "kernels").glob("*.py")),
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_both_ways_give_the_same_text(path, monkeypatch):
    def both(text, tree, changes):
        lines = apply_to_lines(text, tree, changes)
        assert lines in (None, apply_plan(text, tree, changes))
        return lines

    monkeypatch.setattr(migration, "apply_to_lines", both)

    migrate_source(path.read_text(), path.name, Request())


TEXT = """\
def f(x):
  # above
  a = 1  # behind

  # of b
  b = 2

  if x:  # header
    c = 3
    # at the end
  elif a:
    d = 4
  else:
    # of e
    e = 5
  return b
"""


def plan(**changes: Change) -> tuple[ast.Module, dict[ast.stmt, Change]]:
    tree = ast.parse(TEXT)
    names = {
        n.targets[0].id: n  # pyrefly: ignore
        for n in ast.walk(tree)
        if isinstance(n, ast.Assign)
    } | {"if_": next(n for n in ast.walk(tree) if isinstance(n, ast.If))}
    return tree, {names[name]: change for name, change in changes.items()}


@pytest.mark.parametrize(
    "changes",
    [
        {"a": Change(lines=["p = g(\n    1,\n)", "q = 2"])},
        {"a": Change(lines=[])},
        {"b": Change(lines=[]), "a": Change(lines=[])},
        {"b": Change(comments=["# TODO(nki-migrate NKI1134): why"])},
        {"c": Change(lines=[])},
        {"d": Change(lines=["if y:\n    z = 1"]), "e": Change(before=["w = 0"])},
        {"if_": Change(header="if not x:", before=["y = 1"], comments=["# said"])},
        {"a": Change(lines=["for i in range(2):\n    g(\n        i,\n    )"])},
    ],
    ids=str,
)
def test_comments_blank_lines_and_indentation_are_those_of_the_syntax_tree(changes):
    tree, mapped = plan(**changes)

    assert apply_to_lines(TEXT, tree, mapped) == apply_plan(TEXT, tree, mapped)


@pytest.mark.parametrize(
    "line", ["a = 1; b = 2\n", "if x: a = 1\n", "try:\n    a = 1\nfinally:\n    b = 2\n"]
)
def test_what_shares_a_line_is_left_to_the_syntax_tree(line):
    tree = ast.parse(line)
    node = next(n for n in ast.walk(tree) if isinstance(n, ast.Assign))

    assert apply_to_lines(line, tree, {node: Change(lines=["c = 3"])}) is None
