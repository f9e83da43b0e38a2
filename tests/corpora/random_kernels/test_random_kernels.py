"""Random kernels that are called complete run and give the same; no file crashes or moves twice."""

from __future__ import annotations

import pytest
from tests.corpora.random_kernels.trial import BAD, PRELOAD, try_seeds

from tokenplan.executors import InProcess, Limits, pool

SEEDS = {"facts": range(30), "source": range(30)}
MANY = {"facts": range(10_000, 12_000), "source": range(20_000, 22_000)}


def check(tried: dict[int, tuple[str, str]]) -> None:
    wrong = [f"seed {seed}: {word} {why}" for seed, (word, why) in tried.items() if word in BAD]

    assert wrong == []
    assert any(word == "verified" for word, _ in tried.values())


@pytest.mark.parametrize("how", SEEDS)
def test_what_is_complete_runs_and_is_equal(how):
    check(try_seeds(SEEDS[how], InProcess(), with_facts=how == "facts"))


@pytest.mark.thorough
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("how", MANY)
def test_thousands_of_kernels_are_equal(how):
    check(try_seeds(MANY[how], pool(2, preload=PRELOAD), with_facts=how == "facts"))


def test_a_pool_finds_what_one_process_finds():
    seeds = range(40, 46)

    alone = try_seeds(seeds, InProcess(), with_facts=False)

    assert list(alone) == list(seeds)
    assert try_seeds(seeds, pool(2, preload=PRELOAD), with_facts=False) == alone


def test_a_seed_that_ends_at_its_limit_is_a_crash():
    executor = pool(1, Limits(seconds=0.001), PRELOAD)

    assert try_seeds([40], executor, with_facts=False) == {
        40: ("crash", "time: stopped after 0.001 s, its limit")
    }
