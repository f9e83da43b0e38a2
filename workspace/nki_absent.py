"""A pytest plugin: the first test after which `nki` is imported fails.

Stage 2 loads it: machine and languages are called directly there, so nothing may have put a
language (ours or the vendor's) under the names that kernels import.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

NAMES = frozenset({"nki", "neuronxcc"})


def imported() -> list[str]:
    """The kernel-facing names that `sys.modules` holds now."""
    return sorted(NAMES.intersection(sys.modules))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """Fail the test that imported one of the names, and the rest after it."""
    yield
    if found := imported():
        pytest.fail(f"{', '.join(found)} in sys.modules: no switch is on in this stage")
