"""Random kernels that are called complete run and give the same; no file crashes or moves twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.corpora.random_kernels.grammar import random_kernel
from tests.corpora.random_kernels.trial import BAD, try_kernel

SEEDS = {"facts": range(30), "source": range(30)}
MANY = {"facts": range(10_000, 12_000), "source": range(20_000, 22_000)}


def check(seeds: range, folder: Path, *, with_facts: bool) -> None:
    tried = [try_kernel(random_kernel(seed), folder, with_facts=with_facts) for seed in seeds]

    assert [f"{t.kernel}: {t.word} {t.reason}" for t in tried if t.word in BAD] == []
    assert any(t.word == "verified" for t in tried)


@pytest.mark.parametrize("how", SEEDS)
def test_what_is_complete_runs_and_is_equal(tmp_path, how):
    check(SEEDS[how], tmp_path, with_facts=how == "facts")


@pytest.mark.thorough
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("how", MANY)
def test_thousands_of_kernels_are_equal(tmp_path, how):
    check(MANY[how], tmp_path, with_facts=how == "facts")
