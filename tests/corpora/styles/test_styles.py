"""Kernels in many styles compute what their references compute, before and after the migration."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.corpora.styles.harness import HERE, all_cases, difference, expected, run_old

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
