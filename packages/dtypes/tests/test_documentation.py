"""The README and the docstrings say what happens."""

import doctest
from pathlib import Path

import pytest

from nki_dtypes import casts, info, promotion


def test_the_readme_runs():
    readme = Path(__file__).parents[1] / "README.md"
    results = doctest.testfile(str(readme), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert results.attempted > 10
    assert results.failed == 0


@pytest.mark.parametrize("module", [casts, info, promotion], ids=lambda m: m.__name__)
def test_docstring_examples_run(module):
    results = doctest.testmod(module)
    assert results.attempted
    assert results.failed == 0
