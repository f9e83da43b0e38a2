"""Which tests of a file are run: drawn by a seed, of all sizes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T")


def draw(sizes: Sequence[tuple[T, int]], seed: str, count: int) -> list[T]:
    """`count` of the tests, one from each of as many ranges of sizes; then the others, shuffled.

    The others replace tests that turn out to be skipped when they run.
    """
    randomness = random.Random(seed)
    ordered = [test for test, _ in sorted(sizes, key=lambda pair: pair[1])]
    edges = [round(i * len(ordered) / count) for i in range(count + 1)]
    ranges = (ordered[a:b] for a, b in pairwise(edges) if b > a)
    drawn = [randomness.choice(tests) for tests in ranges]
    chosen = {id(test) for test in drawn}
    others = [test for test in ordered if id(test) not in chosen]
    randomness.shuffle(others)
    return drawn + others
