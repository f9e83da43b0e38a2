"""python -m tests.corpora.random_kernels: migrate random kernels, run both texts, compare."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.corpora.random_kernels.grammar import random_kernel
from tests.corpora.random_kernels.trial import BAD, try_kernel

EXAMPLE = "example: python -m tests.corpora.random_kernels --seed 0 --count 200"


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when nothing that was called complete fails or differs, and nothing changes twice."""
    parser = argparse.ArgumentParser("python -m tests.corpora.random_kernels", epilog=EXAMPLE)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=200, help="how many seeds")
    parser.add_argument("--facts", action="store_true", help="with facts of a run")
    parser.add_argument("--all", action="store_true", help="print what is left, too")
    options = parser.parse_args(arguments)
    words: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        for seed in range(options.seed, options.seed + options.count):
            tried = try_kernel(random_kernel(seed), Path(name), with_facts=options.facts)
            words[tried.word] += 1
            if tried.word in BAD or (options.all and tried.word == "todo"):
                print(f"{tried.word:10}seed {seed}: {tried.reason}")
                sys.stdout.flush()
    print(f"{options.count} kernels from seed {options.seed}: {dict(words)}")
    return int(any(words[word] for word in BAD))


if __name__ == "__main__":
    sys.exit(main())
