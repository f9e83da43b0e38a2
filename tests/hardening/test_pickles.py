"""No command loads a pickle that the code of a user could have written."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from members import ROOT

SOURCES = sorted([*ROOT.glob("packages/*/src/**/*.py"), *ROOT.glob("tools/*/src/**/*.py")])
LOADERS = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
FILTERED = {
    ("tokenplan/executors/messages.py", "Unpickler"): "admits records of the project alone",
    ("tokenplan/executors/execution.py", "dumps"): "writes what messages.py reads",
    ("tokenplan/executors/ray_actors.py", "dumps"): "writes what messages.py reads",
    ("tokenplan/executors/pool_worker.py", "recv"): "the worker reads its parent's jobs",
    ("tokenplan/executors/ray_address.py", "recv"): "compares bytes of a socket",
    ("neuroncore/machine/captured_state.py", "dumps"): "compares, and loads nothing",
}
"""Where a name of a loader may be used, and why no user's code reaches it."""


def uses(tree: ast.AST) -> Iterator[str]:
    """The functions of loaders that a source calls, and `allow_pickle` that is not False."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ast.Name(module), name) if module in LOADERS:
                if not name.endswith("Error"):
                    yield name
            case ast.ImportFrom(module, names) if module in LOADERS:
                yield from (alias.name for alias in names)
            case ast.Attribute(_, "recv"):
                yield "recv"
            case ast.keyword("allow_pickle", value):
                if not (isinstance(value, ast.Constant) and value.value is False):
                    yield "allow_pickle"
            case ast.Call(ast.Attribute(ast.Name("np"), "load"), _, keywords):
                if all(keyword.arg != "allow_pickle" for keyword in keywords):
                    yield "np.load"  # False by default; said where it is relied on


def named(path: Path) -> str:
    return path.as_posix().partition("/src/")[2]


def test_no_command_loads_a_pickle_of_others():
    assert len(SOURCES) > 100
    found = {(named(path), use) for path in SOURCES for use in uses(ast.parse(path.read_text()))}

    assert found == FILTERED.keys()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import pickle; pickle.loads(b)", {"loads"}),
        ("from pickle import load", {"load"}),
        ("np.load(f, allow_pickle=True)", {"allow_pickle"}),
        ("np.load(f)", {"np.load"}),
        ("np.load(f, allow_pickle=False); pickle.PicklingError", set()),
        ("connection.recv()", {"recv"}),
    ],
)
def test_every_way_to_load_one_is_seen(source: str, expected: set[str]):
    assert {*uses(ast.parse(source))} == expected
