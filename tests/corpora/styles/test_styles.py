"""Kernels in many styles compute what their references compute, before and after the migration."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.corpora.styles.harness import (
    HERE,
    all_cases,
    difference,
    expected,
    run_old,
    try_file,
)

FILES = sorted((HERE / "kernels").glob("*.py"))


@pytest.mark.filterwarnings("default:dma_copy")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_old_kernels_agree_with_their_references(path: Path):
    for case in all_cases():
        if case.path == path:
            ran, _ = run_old(path, case)
            assert not ran.error, case.kernel
            assert not difference(case, ran, expected(case)), case.kernel


def test_every_file_has_cases():
    assert {case.path for case in all_cases()} == set(FILES)


@pytest.mark.thorough
@pytest.mark.filterwarnings("default:dma_copy")
@pytest.mark.parametrize("with_facts", [True, False], ids=["facts", "source"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_is_called_complete_is_verified(path: Path, with_facts: bool):
    cases = [case for case in all_cases() if case.path == path]

    tried = try_file(path, cases, with_facts=with_facts)

    assert [t for t in tried if t.word not in ("verified", "todo")] == []
